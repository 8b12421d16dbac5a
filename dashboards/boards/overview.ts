/** First screen for whoever is on call: refusing on purpose or collapsing, why, and where. */
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import { EXPIRY_CAUSES, OUTCOMES } from '../../src/core/terms.ts';
import { ATTR } from '../../src/telemetry/names.ts';
import type { Board, Row } from '../board.ts';
import { barGauge, lines, stat } from '../kinds.ts';
import { boardLink, ofRow, ofSeries, runbookLinks, traceLinks } from '../links.ts';
import { type Queries, RANGE, share, shares, sum } from '../queries.ts';
import { BURN_FACTORS, UNUSEFUL } from '../recorded.ts';
import { table } from '../table.ts';
import { choice, NO_SPLIT } from '../variables.ts';

/** What was never let in ended nothing. */
const ADMITTED = 'outcome!~"shed|refused"';
const NOT_LET_IN = 'outcome=~"shed|refused"';
const COMPLETED = 'outcome=~"useful|late|degraded"';
const COUNTERS = ['offered', 'admitted', 'shed', 'retried', 'completed', 'expired'] as const;

export const OVERVIEW: Board = {
  name: 'overview',
  title: 'Overview',
  description: 'Is the system refusing on purpose or collapsing, why does time run out, and where?',
  filters: ['caller', 'operation', 'priority'],
  variables: ({ jobLabel }) => [
    choice('split', 'Split by', [NO_SPLIT, jobLabel, 'caller', 'operation', 'priority']),
  ],
  rows: (q) => [verdict(q), refusalOrCollapse(q), where(q)],
};

function usefulShare(q: Queries): string {
  return share(sum(q.rate('outcomes', 'outcome="useful"')), sum(q.rate('outcomes', ADMITTED)));
}

function refusedShare(q: Queries): string {
  return share(sum(q.rate('outcomes', NOT_LET_IN)), sum(q.rate('offered')));
}

function verdict(q: Queries): Row {
  const { objective } = q.options;
  const budget = 1 - objective;
  return {
    id: 10,
    title: 'Verdict',
    panels: [
      stat({
        id: 11,
        title: 'Useful ÷ admitted',
        question: 'Is the work that was let in still worth doing?',
        shown: 'useful ÷ all that were admitted and have ended. Refused ones are not in it.',
        action:
          'Below the objective: look which of the two pictures below it is, then open the cause on the right.',
        unit: 'percentunit',
        noValue: 'no traffic',
        width: 4,
        height: 7,
        targets: [{ expr: usefulShare(q), legend: 'useful' }],
        thresholds: [
          { value: null, color: 'red' },
          { value: objective, color: 'orange' },
          { value: rounded(objective + budget / 2), color: 'green' },
        ],
        min: 0,
        max: 1,
        decimals: 1,
        links: [boardLink(q.options, 'path', 'Where the time went'), ...runbookLinks(q.options)],
      }),
      stat({
        id: 12,
        title: 'Refused ÷ offered',
        question: 'How much was refused on purpose, before any work?',
        shown: 'shed and refused ÷ offered. A refusal is no failure, so no colour judges it.',
        action:
          'High while the useful share is high: the protection works; find the load. High at ordinary load: capacity.',
        unit: 'percentunit',
        noValue: 'no traffic',
        width: 4,
        height: 7,
        targets: [{ expr: refusedShare(q), legend: 'refused' }],
        min: 0,
        max: 1,
        decimals: 1,
      }),
      stat({
        id: 13,
        title: 'Burn rate ÷ ended',
        question: 'How fast is the allowance of 30 days used up? 1 = exactly used up at the end.',
        shown: `share of ended requests that were not useful ÷ (1 − ${objective}), worst operation, over 1 h and 6 h.`,
        action: 'Above 14.4 over an hour a page is due. Needs the recording rules.',
        unit: 'none',
        noValue: 'no recording rules, or no traffic',
        width: 4,
        height: 7,
        targets: UNUSEFUL.map(({ window, name }) => ({
          expr: `max(${q.recorded(name, ['operation'])}) / ${rounded(budget)}`,
          legend: window,
        })),
        thresholds: [null, ...BURN_FACTORS].map((value, index) => ({
          value,
          color: ['green', 'yellow', 'orange', 'red'][index] ?? 'red',
        })),
        decimals: 1,
        hasGraph: false,
        links: runbookLinks(q.options),
      }),
      stat({
        id: 15,
        title: 'Degraded modes',
        question: 'Which declared modes are active now?',
        shown: 'every mode that is on in an instance, with what turned it on, and in how many instances.',
        action: 'Look since when on Queues and recovery; its answers count as degraded, not as useful.',
        unit: 'short',
        noValue: 'none',
        width: 4,
        height: 7,
        targets: [
          {
            expr: `${sum(q.series('degradedActive'), 'mode', 'trigger')} > 0`,
            legend: '{{mode}} by {{trigger}}',
            isInstant: true,
          },
        ],
        thresholds: [
          { value: null, color: 'green' },
          { value: 1, color: 'orange' },
        ],
        decimals: 0,
        hasGraph: false,
        links: [boardLink(q.options, 'queues', 'Since when')],
      }),
      barGauge({
        id: 14,
        title: 'Why time ran out: causes ÷ expired, refused and late',
        question: 'Whose turn is it: the caller, a dependency, or this service?',
        shown:
          'requests with this cause ÷ all with a cause, over the range. The service decides it per request.',
        action:
          'caller_budget_too_small: talk to the caller. slow_dependency: its owner. The others: this service.',
        unit: 'percentunit',
        noValue: 'nothing ran out of time',
        width: 8,
        height: 7,
        targets: [
          {
            expr: `sort_desc(${shares(sum(q.increase('expiryCauses'), 'cause'), sum(q.increase('expiryCauses')))} > 0)`,
            legend: '{{cause}}',
          },
        ],
        words: EXPIRY_CAUSES,
        min: 0,
        max: 1,
        decimals: 0,
        links: [
          boardLink(q.options, 'dependencies', 'Slow dependency or impatient caller'),
          ...traceLinks(q.options, [[ATTR.expiryCause, ofSeries('cause')]]),
        ],
      }),
    ],
  };
}

function refusalOrCollapse(q: Queries): Row {
  const split = (name: (typeof COUNTERS)[number], vector: string) => ({
    expr: `sum by ($split) (${vector})`,
    legend: `{{$split}} ${name}`,
  });
  return {
    id: 20,
    title: 'Controlled refusal or collapse',
    panels: [
      lines({
        id: 21,
        title: 'Requests per second: offered, admitted, shed, retried, completed, expired',
        question:
          'Is this controlled refusal (shed up, completed flat) or collapse (expired up, completed down)?',
        shown: 'each state counted when it happens, per second. completed = useful, late and degraded.',
        action: 'Split by caller, operation or priority on top. Retried up: open Retries.',
        unit: 'reqps',
        noValue: 'no traffic',
        width: 12,
        height: 10,
        targets: [
          split('offered', q.rate('offered')),
          split('admitted', q.rate('admitted')),
          split('shed', q.rate('shed')),
          split('retried', q.rate('retried')),
          split('completed', q.rate('outcomes', COMPLETED)),
          split('expired', q.rate('outcomes', 'outcome="expired"')),
        ],
        words: [...COUNTERS],
      }),
      lines({
        id: 22,
        title: 'Throughput against goodput: ended requests per second, and what lies between',
        question: 'Is throughput up while goodput falls?',
        shown: 'ended and useful as lines; the gap between them by outcome, stacked.',
        action:
          'A growing gap is work for nobody: by its colour open Budget path (expired, late) or Wasted work (cancelled).',
        unit: 'reqps',
        noValue: 'no traffic',
        width: 12,
        height: 10,
        targets: [
          { expr: sum(q.rate('outcomes', ADMITTED)), legend: 'ended' },
          { expr: sum(q.rate('outcomes', 'outcome="useful"')), legend: 'useful' },
          {
            expr: `${sum(q.rate('outcomes', 'outcome!~"useful|shed|refused"'), 'outcome')} > 0`,
            legend: '{{outcome}}',
          },
        ],
        stack: 'sum',
        words: ['ended', ...OUTCOMES.filter((word) => word !== 'shed' && word !== 'refused')],
        overrides: ['ended', 'useful'].map((name) => ({
          matcher: { id: 'byName', options: name },
          properties: [
            { id: 'custom.stacking', value: { mode: 'none', group: 'lines' } },
            { id: 'custom.fillOpacity', value: 0 },
            { id: 'custom.lineWidth', value: 2 },
          ],
        })),
        links: traceLinks(q.options, [[ATTR.outcome, ofSeries('outcome')]]),
      }),
      lines({
        id: 23,
        title: 'Latency of useful requests, beside the refused share of offered',
        question: 'Did latency get better only because more is refused?',
        shown:
          'quantiles of the duration of useful requests alone; on the right axis shed and refused ÷ offered.',
        action: 'Never read one line without the other: fast answers for few are no recovery.',
        unit: 's',
        noValue: 'no useful request',
        width: 12,
        height: 9,
        targets: [
          { expr: q.quantile(0.5, 'usefulDuration'), legend: 'p50' },
          { expr: q.quantile(0.99, 'usefulDuration'), legend: 'p99' },
          { expr: refusedShare(q), legend: 'refused' },
        ],
        words: ['refused'],
        overrides: [
          {
            matcher: { id: 'byName', options: 'refused' },
            properties: [
              { id: 'unit', value: 'percentunit' },
              { id: 'min', value: 0 },
              { id: 'max', value: 1 },
              { id: 'custom.axisPlacement', value: 'right' },
              { id: 'custom.fillOpacity', value: 20 },
              { id: 'custom.lineWidth', value: 0 },
            ],
          },
        ],
      }),
      lines({
        id: 24,
        title: 'Original demand per second, against arrivals, useful and uncertain ends',
        question: 'More customers, or the same customers again? Does their number of useful results fall?',
        shown:
          'originals = offered − retried; both denominators: arrivals are attempts, originals are operations.',
        action:
          'Arrivals up and originals flat: repeats, open Retries. unknown: outcomes to reconcile by hand.',
        unit: 'reqps',
        noValue: 'no traffic',
        width: 12,
        height: 9,
        targets: [
          { expr: `${sum(q.rate('offered'))} - ${sum(q.rate('retried'))}`, legend: 'originals' },
          { expr: sum(q.rate('offered')), legend: 'offered' },
          { expr: sum(q.rate('outcomes', 'outcome="useful"')), legend: 'useful' },
          { expr: sum(q.rate('outcomes', 'outcome="unknown"')), legend: 'unknown' },
        ],
        words: ['originals', 'offered', 'useful', 'unknown'],
      }),
    ],
  };
}

function where(q: Queries): Row {
  const { job } = q;
  const perJob = (more: string) => sum(q.rate('outcomes', more, RANGE), job);
  return {
    id: 30,
    title: 'Where',
    panels: [
      table({
        id: 31,
        title: 'Services by useful share of admitted requests',
        question: 'Which service is it?',
        shown:
          'over the range: useful ÷ admitted and ended; expired per second; median share of the budget gone before the first call.',
        action:
          'Open the row: the worst one is often the one that waits, not the one that is slow; follow it down.',
        noValue: 'no traffic',
        width: 10,
        height: 9,
        keys: { [job]: 'service' },
        columns: [
          {
            title: 'useful share',
            expr: share(perJob('outcome="useful"'), perJob(ADMITTED)),
            unit: 'percentunit',
            isShare: true,
          },
          { title: 'expired/s', expr: perJob('outcome="expired"'), unit: 'reqps' },
          {
            title: 'before first call',
            expr: q.quantile(0.5, 'localSpend', [job], '', RANGE),
            unit: 'percentunit',
            isShare: true,
          },
        ],
        sortBy: 'useful share',
        isAscending: true,
        links: [
          boardLink(q.options, 'path', 'Where its time goes', { job: ofRow('service') }),
          boardLink(q.options, 'dependencies', 'Its dependencies and callers', { job: ofRow('service') }),
        ],
      }),
      table({
        id: 32,
        title: 'Firing and pending alerts on time budgets',
        question: 'What has been judged already?',
        shown: 'alerts of the rules of this package, with what they are about.',
        action: 'Read the runbook of the alert; the others of the same service may follow from it.',
        noValue: 'no alert, or no alert rules',
        width: 14,
        height: 9,
        keys: {
          alertname: 'alert',
          alertstate: 'state',
          severity: 'severity',
          [job]: 'service',
          operation: 'operation',
          dependency: 'dependency',
          caller: 'caller',
        },
        columns: [
          {
            title: 'value',
            expr: `max by (alertname, alertstate, severity, ${job}, operation, dependency, caller) (ALERTS{component="time-budget",${q.service}})`,
            unit: 'none',
            isHidden: true,
          },
        ],
        sortBy: 'state',
        isAscending: true,
        links: runbookLinks(q.options),
        overrides: [
          {
            matcher: { id: 'byName', options: 'alert' },
            properties: [{ id: 'custom.minWidth', value: 190 }],
          },
          {
            matcher: { id: 'byName', options: 'state' },
            properties: [
              { id: 'custom.cellOptions', value: { type: 'color-text' } },
              {
                id: 'mappings',
                value: [
                  {
                    type: 'value',
                    options: {
                      firing: { text: 'firing', color: 'red', index: 0 },
                      pending: { text: 'pending', color: 'yellow', index: 1 },
                    },
                  },
                ],
              },
              { id: 'color', value: { mode: FieldColorModeId.Thresholds } },
            ],
          },
        ],
      }),
    ],
  };
}

/** Without the dust of binary fractions. */
function rounded(value: number): number {
  return Number(value.toFixed(6));
}
