/** Slow dependency or unrealistic caller? They look alike from the outside and are two incidents. */
import { BINDING_TERMS, REFUSAL_REASONS } from '../../src/core/terms.ts';
import { ATTR } from '../../src/telemetry/names.ts';
import type { Board, Row } from '../board.ts';
import { heatmap, lines } from '../kinds.ts';
import { boardLink, ofRow, ofSeries, traceLinks } from '../links.ts';
import type { Draft } from '../panel.ts';
import { type Queries, RANGE, share, sum } from '../queries.ts';
import { table } from '../table.ts';
import { slowness, verdictTable } from '../verdict-table.ts';
import { shortCallers } from './short-callers.ts';

export const DEPENDENCIES_AND_CALLERS: Board = {
  name: 'dependencies',
  title: 'Dependencies and callers',
  description:
    'Did a dependency get slow, or does a caller give too little time? Which limit decided, and which phase took it?',
  filters: ['caller', 'dependency'],
  rows: (q) => [verdict(q), dependency(q), caller(q)],
};

function verdict(q: Queries): Row {
  return {
    id: 10,
    title: 'Verdict',
    panels: [
      verdictTable(q, { id: 11, width: 24, height: 8 }),
      shortCallers(q, {
        id: 12,
        title: "Caller's side: too little time ÷ offered",
        question: 'Did the budgets of a caller move?',
        shown: 'requests with less time than the operation usually takes ÷ offered, by caller.',
        action: 'This one up and the one on the right flat: talk to the caller, wake nobody here.',
      }),
      lines({
        id: 13,
        title: "Dependency's side: p95 ÷ usual p95",
        question: 'Did a dependency get slower than it usually is?',
        shown: 'p95 of 5 minutes ÷ median of it over the day before, one hour back. 1 = as usual.',
        action:
          'This one up and the one on the left flat: call the owner of the dependency. Needs the recording rules.',
        unit: 'none',
        noValue: 'no recording rules, or no day to compare with',
        width: 8,
        height: 9,
        targets: [
          { expr: `max by (dependency) (${slowness(q)})`, legend: '{{dependency}}' },
          { expr: `vector(${q.options.slowFactor})`, legend: `limit of the alert` },
        ],
        limits: ['limit of the alert'],
        min: 0,
        decimals: 2,
        links: traceLinks(q.options, [[ATTR.dependency, ofSeries('dependency')]]),
      }),
      lines({
        id: 14,
        title: 'Limit that decided ÷ calls',
        question: 'Is it the time that is left (the caller), or a limit of the dependency?',
        shown: 'calls per second by binding term, stacked to 100 %. none = nothing limits them.',
        action:
          'remaining_minus_reserve grows: less arrives. dependency_cap, own_timeout: the limit of the call itself.',
        unit: 'cps',
        noValue: 'no call yet',
        width: 8,
        height: 9,
        targets: [{ expr: `${sum(q.rate('calls'), 'binding_term')} > 0`, legend: '{{binding_term}}' }],
        stack: 'percent',
        words: [...BINDING_TERMS, 'none'],
        links: traceLinks(q.options, [[ATTR.bindingTerm, ofSeries('binding_term')]]),
      }),
      lines({
        id: 15,
        title: 'Allowance of calls against what they take',
        question: 'Does the time handed down cover what the dependency needs?',
        shown: 'p10 and p50 of the allowance; p50 and p95 of the duration, calls that were cut off included.',
        action: 'Allowance p10 under duration p95: one call in ten is given less than the slow ones need.',
        unit: 's',
        noValue: 'no call yet',
        width: 12,
        height: 9,
        targets: [
          { expr: q.quantile(0.1, 'allowance'), legend: 'allowance p10' },
          { expr: q.quantile(0.5, 'allowance'), legend: 'allowance p50' },
          { expr: q.quantile(0.5, 'callDuration'), legend: 'duration p50' },
          { expr: q.quantile(0.95, 'callDuration'), legend: 'duration p95' },
        ],
      }),
      lines({
        id: 16,
        title: 'Cut off ÷ calls, by dependency',
        question: 'How far can the latencies here be believed?',
        shown: 'calls ended by a timeout or a cancel ÷ all calls. Their duration says when we gave up.',
        action: 'Above a few percent the quantiles beside it show our limits, not the dependency.',
        unit: 'percentunit',
        noValue: 'no call yet',
        width: 12,
        height: 9,
        targets: [
          {
            expr: share(sum(q.rate('cutOff'), 'dependency'), sum(q.count('callDuration'), 'dependency')),
            legend: '{{dependency}}',
          },
        ],
        min: 0,
        max: 1,
        links: [boardLink(q.options, 'waste', 'What goes on after it')],
      }),
    ],
  };
}

function dependency(q: Queries): Row {
  const phase = (id: number, name: string, phases: string, action: string): Draft =>
    lines({
      id,
      title: `${name} per call: p50, p99`,
      question: `Does ${name.toLowerCase()} eat the time of the call?`,
      shown: 'time of calls that had this phase; a reused connection has none.',
      action,
      unit: 's',
      noValue: 'no call with this phase',
      width: 6,
      height: 8,
      targets: [
        { expr: q.quantile(0.5, 'callPhase', ['dependency'], phases), legend: 'p50 {{dependency}}' },
        { expr: q.quantile(0.99, 'callPhase', ['dependency'], phases), legend: 'p99 {{dependency}}' },
      ],
      links: traceLinks(q.options, [[ATTR.dependency, ofSeries('dependency')]]),
    });
  return {
    id: 20,
    title: 'Dependency',
    panels: [
      phase(
        21,
        'Pool wait',
        'phase="pool_wait"',
        'Who holds connections? The dependency has not been reached yet.',
      ),
      phase(
        22,
        'Connect',
        'phase=~"connect|tls|dns"',
        'Connections are made too often, or the network or its listener is slow.',
      ),
      phase(
        23,
        'Request',
        'phase=~"request|db_execution"',
        'From the send to the first byte: the dependency itself.',
      ),
      phase(24, 'Response', 'phase="response"', 'The tail: large answers, or a reader that is too slow.'),
      heatmap({
        id: 25,
        title: 'Calls per second by duration',
        question: 'Is it the whole distribution that moved, or its tail?',
        shown: 'all calls of the chosen dependencies by how long they took.',
        action:
          'A second band is a second kind of work, or a timeout: compare its height with the caps beside it.',
        unit: 's',
        noValue: 'no call yet',
        width: 8,
        height: 9,
        targets: [{ expr: q.buckets('callDuration'), legend: '{{le}}' }],
      }),
      lines({
        id: 26,
        title: 'Reserve and cap over the latency of calls',
        question: 'Are the reserve and the cap right?',
        shown: 'p95 and p99 of calls by dependency, with its reserve and cap in force as dashed lines.',
        action: 'A cap under p99 cuts healthy calls off; one far above p99 protects nobody.',
        unit: 's',
        noValue: 'no call yet',
        width: 8,
        height: 9,
        targets: [
          { expr: q.quantile(0.95, 'callDuration', ['dependency']), legend: 'p95 {{dependency}}' },
          { expr: q.quantile(0.99, 'callDuration', ['dependency']), legend: 'p99 {{dependency}}' },
          { expr: `max by (dependency) (${q.series('reserve')})`, legend: 'reserve {{dependency}}' },
          { expr: `max by (dependency) (${q.series('dependencyCap')})`, legend: 'cap {{dependency}}' },
        ],
        limits: ['reserve', 'cap'],
      }),
      lines({
        id: 27,
        title: 'Refused before dispatch: first, repeat',
        question: 'How much work was never started, and why?',
        shown:
          'calls not made for lack of budget, by attempt and reason; in observe, calls that would not have been made.',
        action:
          'first: too little time arrives, see the callers. repeat: the retries end in time, as they should.',
        unit: 'cps',
        noValue: 'nothing was refused',
        width: 8,
        height: 9,
        targets: [
          { expr: `${sum(q.rate('refused'), 'attempt', 'reason')} > 0`, legend: '{{attempt}} {{reason}}' },
        ],
        stack: 'sum',
        words: REFUSAL_REASONS,
        links: traceLinks(q.options, [[ATTR.refusalReason, ofSeries('reason')]]),
      }),
    ],
  };
}

function caller(q: Queries): Row {
  const { job } = q;
  const verdicts = (more: string) => sum(q.rate('verdicts', more, RANGE), job, 'caller');
  return {
    id: 30,
    title: 'Caller',
    panels: [
      table({
        id: 31,
        title: 'Callers by share of offered requests with too little time',
        question: 'Who should raise its budget, or send one at all?',
        shown:
          'over the range: too little time ÷ offered; requests without any budget ÷ all verdicts; median budget.',
        action:
          'Take the median budget and the latency of useful requests (Overview) to the owner of the caller.',
        noValue: 'no traffic',
        width: 24,
        height: 9,
        keys: { [job]: 'service', caller: 'caller' },
        columns: [
          {
            title: 'too little time',
            expr: share(
              sum(q.rate('insufficient', '', RANGE), job, 'caller'),
              sum(q.rate('offered', '', RANGE), job, 'caller'),
            ),
            unit: 'percentunit',
            isShare: true,
          },
          {
            title: 'no budget',
            expr: share(verdicts('verdict="absent"'), verdicts('')),
            unit: 'percentunit',
            isShare: true,
          },
          {
            title: 'median budget',
            expr: q.quantile(0.5, 'received', [job, 'caller'], '', RANGE),
            unit: 's',
          },
          { title: 'requests/s', expr: sum(q.rate('offered', '', RANGE), job, 'caller'), unit: 'reqps' },
        ],
        sortBy: 'too little time',
        links: [
          boardLink(q.options, 'path', 'What this caller gets', {
            job: ofRow('service'),
            caller: ofRow('caller'),
          }),
        ],
      }),
    ],
  };
}
