/** How one operation spends its time: from arrival over its calls to the place where it ran out. */
import { EXPIRY_CAUSES, PHASES, VERDICTS } from '../../src/core/terms.ts';
import { ATTR, POINTS } from '../../src/telemetry/names.ts';
import type { Board, Row } from '../board.ts';
import { barGauge, heatmap, lines } from '../kinds.ts';
import { ledger, TRACE_ID } from '../ledger.ts';
import { boardLink, ofRow, ofSeries, traceLinks } from '../links.ts';
import { type Queries, RANGE, sum } from '../queries.ts';
import { table } from '../table.ts';
import { textBox } from '../variables.ts';
import { shortCallers } from './short-callers.ts';

export const BUDGET_PATH: Board = {
  name: 'path',
  title: 'Budget path',
  description:
    'How does an operation spend its time: on arrival, before and after its calls, and where does it run out?',
  filters: ['caller', 'operation', 'dependency'],
  variables: () => [textBox(TRACE_ID, 'Trace id', '')],
  rows: (q) => [arrival(q), path(q), expiry(q), execution(q), ledger(q)],
};

function arrival(q: Queries): Row {
  return {
    id: 10,
    title: 'Arrival',
    panels: [
      lines({
        id: 11,
        title: 'Budget received, by caller',
        question: 'How much time do callers give?',
        shown: 'p10 and p50 of the budget as it came, of requests that brought one.',
        action:
          'A step down is a change at the caller. Compare with the latency of useful requests on Overview.',
        unit: 's',
        noValue: 'no request brought a budget',
        width: 9,
        height: 9,
        targets: [
          { expr: q.quantile(0.5, 'received', ['caller']), legend: 'p50 {{caller}}' },
          { expr: q.quantile(0.1, 'received', ['caller']), legend: 'p10 {{caller}}' },
        ],
        links: traceLinks(q.options, [[ATTR.caller, ofSeries('caller')]]),
      }),
      lines({
        id: 12,
        title: 'Requests per second by entry verdict',
        question:
          'What did the entry make of the budgets: accepted, defaulted, clamped, invalid, none at all?',
        shown: 'requests by the one verdict each gets, per second.',
        action:
          'absent: the caller sends none and no default is set. invalid or untrusted: see docs/trust.md.',
        unit: 'reqps',
        noValue: 'no traffic',
        width: 7,
        height: 9,
        targets: [{ expr: `${sum(q.rate('verdicts'), 'verdict')} > 0`, legend: '{{verdict}}' }],
        stack: 'sum',
        words: VERDICTS,
        links: traceLinks(q.options, [[ATTR.verdict, ofSeries('verdict')]]),
      }),
      shortCallers(q, {
        id: 13,
        title: 'Too little time ÷ offered, by caller',
        question: 'Who sends requests that cannot end in time however fast we are?',
        shown: 'requests with less time than the operation usually takes ÷ offered.',
        action: 'Talk to that caller: raise its budget, or do not send what is too late already.',
      }),
    ],
  };
}

function path(q: Queries): Row {
  const { job } = q;
  return {
    id: 20,
    title: 'Path',
    panels: [
      barGauge({
        id: 21,
        title: 'Median time left at each point of each service',
        question: 'How does the budget shrink from hop to hop?',
        shown:
          'p50 over the range of what was left on arrival, before and after calls; an overrun counts as 0.',
        action:
          'Read from the service that receives most to the one that receives least: the big step is where time goes.',
        unit: 's',
        noValue: 'no request with a budget',
        width: 9,
        height: 10,
        targets: [
          {
            expr: `sort_desc(${q.quantile(0.5, 'remaining', [job, 'point'], '', RANGE)})`,
            legend: `{{${job}}} {{point}}`,
          },
        ],
        words: POINTS,
        min: 0,
        links: [boardLink(q.options, 'path', 'This service alone', { job: ofSeries(job) })],
      }),
      lines({
        id: 22,
        title: 'Time left at each point, p10',
        question: 'Since when is the time before calls, or after them, too short?',
        shown: 'the tenth of requests that has least left, by service and point.',
        action:
          'before_call falls: time is lost in this service. after_call falls alone: the calls got slower.',
        unit: 's',
        noValue: 'no request with a budget',
        width: 7,
        height: 10,
        targets: [{ expr: q.quantile(0.1, 'remaining', [job, 'point']), legend: `{{${job}}} {{point}}` }],
        links: [boardLink(q.options, 'path', 'This service alone', { job: ofSeries(job) })],
      }),
      heatmap({
        id: 23,
        title: 'Share of the budget left before calls',
        question: 'The same without a scale: are operations with different budgets alike?',
        shown: 'calls per second by left ÷ effective budget when the call was made.',
        action: 'Mass at the bottom: most of the budget is gone before anybody is asked.',
        unit: 'percentunit',
        noValue: 'no call under a budget',
        width: 8,
        height: 10,
        targets: [{ expr: q.buckets('remainingRatio', 'point="before_call"'), legend: '{{le}}' }],
      }),
      table({
        id: 24,
        title: 'Share of the budget spent before the first call, by service and operation',
        question: 'Which services use up most of their budget before they ask anybody?',
        shown:
          'over the range: from arrival until the first call ÷ effective budget; and what it was spent on.',
        action: 'queue: admission, workers, event loop. processing: own code. The dependency is innocent.',
        noValue: 'no call under a budget',
        width: 14,
        height: 9,
        keys: { [job]: 'service', operation: 'operation' },
        columns: [
          {
            title: 'median',
            expr: q.quantile(0.5, 'localSpend', [job, 'operation'], '', RANGE),
            unit: 'percentunit',
            isShare: true,
          },
          {
            title: 'p95',
            expr: q.quantile(0.95, 'localSpend', [job, 'operation'], '', RANGE),
            unit: 'percentunit',
            isShare: true,
          },
          {
            title: 'queue p95',
            expr: q.quantile(0.95, 'queue', [job, 'operation'], '', RANGE),
            unit: 's',
          },
          {
            title: 'processing p95',
            expr: q.quantile(0.95, 'processing', [job, 'operation'], '', RANGE),
            unit: 's',
          },
        ],
        sortBy: 'median',
        links: [
          boardLink(q.options, 'path', 'This operation alone', {
            job: ofRow('service'),
            operation: ofRow('operation'),
          }),
        ],
      }),
      lines({
        id: 25,
        title: 'Own time of requests: queue against processing, p95',
        question: 'Is the time in this service spent waiting or working?',
        shown:
          'queue: from arrival until the handler starts. processing: from there to the end, calls included.',
        action: 'queue up: more arrives than is worked on; see calls in flight below.',
        unit: 's',
        noValue: 'no traffic',
        width: 10,
        height: 9,
        targets: [
          { expr: q.quantile(0.95, 'queue'), legend: 'queue' },
          { expr: q.quantile(0.95, 'processing'), legend: 'processing' },
        ],
        words: ['queue'],
      }),
    ],
  };
}

function expiry(q: Queries): Row {
  return {
    id: 30,
    title: 'Expiry',
    panels: [
      lines({
        id: 31,
        title: 'Expiries per second by phase',
        question: 'In which phase does the time run out, and who owns that phase?',
        shown: 'budgets and calls that ran out, by the phase in progress at that moment.',
        action:
          'pool_wait, queue, local, event_loop: this service. connect, tls, dns: the network. request, response: the dependency.',
        unit: 'ops',
        noValue: 'nothing ran out of time',
        width: 8,
        height: 9,
        targets: [{ expr: `${sum(q.rate('expiries'), 'phase')} > 0`, legend: '{{phase}}' }],
        stack: 'sum',
        words: PHASES,
        links: traceLinks(q.options, [[ATTR.expiryPhase, ofSeries('phase')]]),
      }),
      table({
        id: 32,
        title: 'Expiries by dependency and phase',
        question: 'At which dependency does the time run out?',
        shown: 'expiries over the range; dependency none = no call was in progress.',
        action: 'Open the dependency; its phases stand on Dependencies and callers.',
        noValue: 'nothing ran out of time',
        width: 8,
        height: 9,
        keys: { [q.job]: 'service', dependency: 'dependency', phase: 'phase' },
        columns: [
          {
            title: 'expiries',
            expr: `${sum(q.increase('expiries'), q.job, 'dependency', 'phase')} > 0`,
            unit: 'short',
          },
        ],
        sortBy: 'expiries',
        links: [
          boardLink(q.options, 'dependencies', 'This dependency', {
            job: ofRow('service'),
            dependency: ofRow('dependency'),
          }),
        ],
      }),
      heatmap({
        id: 33,
        title: 'Time past the deadline of requests that ended after it',
        question: 'How late does late work end?',
        shown: 'late requests per second by how long after their deadline they ended.',
        action:
          'A narrow band: a timeout somewhere is longer than the budget. A wide one: nothing stops the work.',
        unit: 's',
        noValue: 'nothing ended late',
        width: 8,
        height: 9,
        targets: [{ expr: q.buckets('overrun'), legend: '{{le}}' }],
      }),
      lines({
        id: 34,
        title: 'Expired, refused and late requests per second by cause',
        question: 'Why, and since when?',
        shown:
          'requests by the one cause that the service decided on from its ledger and from what is usual.',
        action:
          'docs/concepts.md says how each is decided; undetermined = too little is known of what is usual.',
        unit: 'reqps',
        noValue: 'nothing ran out of time',
        width: 24,
        height: 8,
        targets: [{ expr: `${sum(q.rate('expiryCauses'), 'cause')} > 0`, legend: '{{cause}}' }],
        stack: 'sum',
        words: EXPIRY_CAUSES,
        links: traceLinks(q.options, [[ATTR.expiryCause, ofSeries('cause')]]),
      }),
    ],
  };
}

function execution(q: Queries): Row {
  return {
    id: 40,
    title: 'Execution',
    panels: [
      lines({
        id: 41,
        title: 'Work in flight, by dependency',
        question: 'How much does each dependency, or admission gate, carry for us at a time?',
        shown:
          'calls that were made and have not ended; under the name of a gate, requests whose work has not ended.',
        action: 'A line that climbs and stays: the dependency got slower, or nobody ends the calls.',
        unit: 'short',
        noValue: 'no call yet',
        width: 12,
        height: 8,
        targets: [{ expr: sum(q.series('executing'), 'dependency'), legend: '{{dependency}}' }],
        decimals: 0,
      }),
      lines({
        id: 42,
        title: 'Permits held against permits there are, and work really in flight',
        question: 'Does the limiter count what the resource pays for?',
        shown:
          'of bulkheads and admission gates: permits in use, their limit (dashed), and what executes under that name.',
        action:
          'Executing above used: work goes on after its permit was given back. Used at the limit: it is full.',
        unit: 'short',
        noValue: 'no bulkhead or gate',
        width: 12,
        height: 8,
        targets: [
          { expr: sum(q.series('concurrencyUsed'), 'dependency'), legend: 'used {{dependency}}' },
          { expr: sum(q.series('concurrencyLimit'), 'dependency'), legend: 'limit {{dependency}}' },
          {
            expr: `${sum(q.series('executing'), 'dependency')} and on (dependency) ${sum(q.series('concurrencyLimit'), 'dependency')}`,
            legend: 'executing {{dependency}}',
          },
        ],
        limits: ['limit'],
        decimals: 0,
      }),
    ],
  };
}
