/** What repeats cost, whether the retry budget bounds them, and who makes them. */
import {
  ATTEMPT_KINDS,
  DEPOSIT_SOURCES,
  EMPTY_BEHAVIOURS,
  HEDGE_RESULTS,
  REPEAT_RESULTS,
  WITHDRAWAL_RESULTS,
} from '../../src/core/terms.ts';
import { ATTR } from '../../src/telemetry/names.ts';
import type { Board, Row } from '../board.ts';
import { lines, stat } from '../kinds.ts';
import { boardLink, ofRow, ofSeries, runbookLinks, traceLinks } from '../links.ts';
import { type Queries, RANGE, share, sum } from '../queries.ts';
import { table } from '../table.ts';

/** A connection that was made anew loads nothing again. */
const SENT = 'kind!="reconnect"';

export const RETRIES: Board = {
  name: 'retries',
  title: 'Retries',
  description:
    'Do retry budgets bound the repeats, what do the repeats cost, do they help, and who makes them?',
  filters: ['operation', 'dependency'],
  rows: (q) => [budget(q), amplification(q), effect(q)],
};

function budget(q: Queries): Row {
  return {
    id: 10,
    title: 'Budget',
    panels: [
      table({
        id: 13,
        title: 'Retry budgets: unit, feed, behaviour on empty, floor',
        question: 'What is a budget made of, and does only its floor pay at the moment?',
        shown:
          'the definition in force; floor in its unit; low success = 1 while successes do not pay for one attempt.',
        action: 'low success with refusals: the dependency fails nearly always; no budget repairs that.',
        noValue: 'no retry budget is configured',
        width: 24,
        height: 5,
        keys: { dependency: 'budget', unit: 'unit', feed: 'feed', on_empty: 'on empty' },
        columns: [
          {
            title: 'instances',
            expr: `count by (dependency, unit, feed, on_empty) (${q.series('retryBudgetInfo')})`,
            unit: 'none',
          },
          {
            title: 'least floor',
            expr: onInfo(q, `min by (dependency) (${q.series('retryFloor')})`),
            unit: 'none',
          },
          {
            title: 'low success',
            expr: onInfo(q, `max by (dependency) (${q.series('retryLowSuccess')})`),
            unit: 'none',
          },
        ],
        sortBy: 'low success',
      }),
      lines({
        id: 11,
        title: 'Retry budget: balance ÷ capacity, lowest',
        question: 'Is a budget draining?',
        shown:
          'what could be withdrawn now ÷ what it would be had nothing been withdrawn; each process has its own.',
        action:
          'Going down: more repeats are made than earned. Find out why first attempts fail (Dependencies and callers).',
        unit: 'percentunit',
        noValue: 'no retry budget is configured',
        width: 12,
        height: 9,
        targets: [
          {
            expr: `min by (dependency) (${q.series('retryBalance')} / (${q.series('retryCapacity')} > 0))`,
            legend: '{{dependency}}',
          },
        ],
        min: 0,
        max: 1,
        links: runbookLinks(q.options),
      }),
      lines({
        id: 12,
        title: 'Time with an empty budget ÷ time',
        question: 'How long could no repeat be paid for, between two scrapes as well?',
        shown: 'seconds without enough for one usual attempt ÷ seconds × instances.',
        action: 'Exhausted is a symptom: do not enlarge the budget during the fault.',
        unit: 'percentunit',
        noValue: 'no retry budget is configured',
        width: 12,
        height: 9,
        targets: [
          {
            expr: `${sum(q.rate('retryExhausted'), 'dependency')} / count by (dependency) (${q.series('retryBalance')})`,
            legend: '{{dependency}}',
          },
        ],
        min: 0,
        max: 1,
        links: runbookLinks(q.options),
      }),
      lines({
        id: 14,
        title: 'Repeats that asked the budget, per second: granted and refused',
        question: 'What did the budget decide?',
        shown:
          'withdrawals; refused = it was empty, and nothing else. In observe they are made all the same.',
        action: 'refused and arrivals unchanged: somebody repeats without asking, see owners below.',
        unit: 'ops',
        noValue: 'nobody asked a retry budget',
        width: 12,
        height: 9,
        targets: [{ expr: sum(q.rate('retryWithdrawals'), 'result'), legend: '{{result}}' }],
        stack: 'sum',
        words: WITHDRAWAL_RESULTS,
        links: traceLinks(q.options, [[ATTR.refusalReason, 'retry_budget_empty']]),
      }),
      lines({
        id: 15,
        title: 'Deposits per second, by source',
        question: 'What feeds the budget while little succeeds?',
        shown: 'deposits by original, success or refund.',
        action: 'Fed by successes alone and success near 0: only the floor pays, for all callers together.',
        unit: 'ops',
        noValue: 'no retry budget is configured',
        width: 12,
        height: 9,
        targets: [{ expr: sum(q.rate('retryDeposits'), 'source'), legend: '{{source}}' }],
        stack: 'sum',
        words: DEPOSIT_SOURCES,
      }),
      lines({
        id: 16,
        title: 'Repeats refused by an empty budget per second, by what became of their operation',
        question: 'What happens to operations that may not be tried again?',
        shown:
          'refused repeats by the declared behaviour: the original error, the background, a degraded answer.',
        action: 'managed_background: the load is put off, not gone; see what is owed beside it.',
        unit: 'ops',
        noValue: 'no repeat was refused',
        width: 12,
        height: 7,
        targets: [{ expr: sum(q.rate('retryDispositions'), 'on_empty'), legend: '{{on_empty}}' }],
        stack: 'sum',
        words: EMPTY_BEHAVIOURS,
      }),
      lines({
        id: 17,
        title: 'Repeats owed by the background',
        question: 'How much load is still to come?',
        shown: 'repeats handed to the background of the service that are not settled yet.',
        action: 'Growing: it is a private queue of retries. Bound it, and give it a useful life.',
        unit: 'short',
        noValue: 'no retry budget is configured',
        width: 12,
        height: 7,
        targets: [{ expr: sum(q.series('retryOwed'), 'dependency'), legend: '{{dependency}}' }],
        decimals: 0,
      }),
    ],
  };
}

/** A number of a budget beside its definition. */
function onInfo(q: Queries, vector: string): string {
  return `group by (dependency, unit, feed, on_empty) (${q.series('retryBudgetInfo')}) * on (dependency) group_left () (${vector})`;
}

function amplification(q: Queries): Row {
  const attempts = (more: string) => q.rate('attempts', more);
  return {
    id: 20,
    title: 'Amplification (a diagnostic, not a target)',
    panels: [
      lines({
        id: 21,
        title: 'Attempts per original operation, by dependency',
        question: 'How many calls does one operation cost?',
        shown:
          'attempts without reconnects ÷ originals; dashed: the most that an owner of repeats may make; two owners multiply.',
        action:
          'A diagnostic, not a target: 1.0 can also mean that nothing is tried again at all. Compare with the useful results.',
        unit: 'none',
        noValue: 'no call over HTTP yet',
        width: 8,
        height: 9,
        targets: [
          {
            expr: share(sum(attempts(SENT), 'dependency'), sum(attempts('kind="original"'), 'dependency')),
            legend: '{{dependency}}',
          },
          {
            expr: `max by (dependency) (${q.series('permittedAttempts')})`,
            legend: 'worst case {{dependency}}',
          },
        ],
        limits: ['worst case'],
        min: 0,
        decimals: 2,
        links: traceLinks(q.options, [[ATTR.dependency, ofSeries('dependency')]]),
      }),
      lines({
        id: 22,
        title: 'Arrivals per original request, by service',
        question: 'How do the rings grow: what does one request of a customer cost at each depth?',
        shown: 'offered ÷ (offered − retried): every arrival over those that no tier before had repeated.',
        action:
          'A bound multiplies: three tiers of three attempts are 27 at the bottom. Let one tier repeat, the outermost.',
        unit: 'none',
        noValue: 'no traffic',
        width: 8,
        height: 9,
        targets: [
          {
            expr: share(
              sum(q.rate('offered'), q.job),
              `(${sum(q.rate('offered'), q.job)} - ${sum(q.rate('retried'), q.job)})`,
            ),
            legend: `{{${q.job}}}`,
          },
        ],
        min: 0,
        decimals: 2,
        links: [boardLink(q.options, 'overview', 'This service', { job: ofSeries(q.job) })],
      }),
      lines({
        id: 23,
        title: 'Attempts per second, by kind: originals against repeats',
        question: 'A surge of customers, or of retries?',
        shown: 'calls over HTTP by the kind of attempt that they are.',
        action:
          'Originals flat and repeats up: the load is home-made. Repeats by their reason stand on the spans.',
        unit: 'cps',
        noValue: 'no call over HTTP yet',
        width: 8,
        height: 9,
        targets: [{ expr: `${sum(attempts(''), 'kind')} > 0`, legend: '{{kind}}' }],
        stack: 'sum',
        words: ATTEMPT_KINDS,
        links: traceLinks(q.options, [[ATTR.attemptKind, ofSeries('kind')]]),
      }),
      table({
        id: 24,
        title: 'Repeats per second, by owner',
        question: 'Who repeats, and do two of them repeat the same?',
        shown:
          'repeats over the range by service, dependency, operation and owner; unknown = detected, not declared.',
        action: 'Two owners on one dependency multiply: switch one of them off.',
        noValue: 'no repeat',
        width: 14,
        height: 9,
        keys: { [q.job]: 'service', dependency: 'dependency', operation: 'operation', owner: 'owner' },
        columns: [
          {
            title: 'repeats/s',
            expr: `${sum(q.rate('attempts', 'kind!~"original|reconnect"', RANGE), q.job, 'dependency', 'operation', 'owner')} > 0`,
            unit: 'cps',
          },
        ],
        sortBy: 'repeats/s',
        links: [
          boardLink(q.options, 'retries', 'This dependency alone', {
            job: ofRow('service'),
            dependency: ofRow('dependency'),
          }),
        ],
      }),
      stat({
        id: 25,
        title: 'Layers that repeat one operation, found',
        question: 'Do two layers repeat the same operation?',
        shown: 'violations double_owner over the range.',
        action: 'Above 0: see the owners on the left, and docs/attempts.md.',
        unit: 'short',
        noValue: 'no data',
        width: 10,
        height: 9,
        targets: [{ expr: sum(q.increase('violations', 'kind="double_owner"')), legend: 'found' }],
        decimals: 0,
        links: runbookLinks(q.options),
      }),
    ],
  };
}

function effect(q: Queries): Row {
  return {
    id: 30,
    title: 'Effect',
    panels: [
      lines({
        id: 31,
        title: 'Attempts sent, against repeats refused',
        question: 'Does an empty budget change what arrives at the limited resource?',
        shown: 'attempts without reconnects, and withdrawals refused, on one axis.',
        action:
          'Refusals up and attempts unchanged: the budget has no effect. Look for a second owner or a private queue.',
        unit: 'cps',
        noValue: 'no call over HTTP yet',
        width: 8,
        height: 9,
        targets: [
          { expr: sum(q.rate('attempts', SENT)), legend: 'attempts' },
          { expr: sum(q.rate('retryWithdrawals', 'result="refused"')), legend: 'refused' },
        ],
        words: ['refused'],
      }),
      lines({
        id: 32,
        title: 'Attempts against useful requests',
        question: 'Are attempts growing while useful completions fall?',
        shown: 'attempts without reconnects on the left axis, requests with outcome useful on the right.',
        action: 'Diverging lines feed each other: lower the attempts at the outermost owner first.',
        unit: 'cps',
        noValue: 'no traffic',
        width: 8,
        height: 9,
        targets: [
          { expr: sum(q.rate('attempts', SENT)), legend: 'attempts' },
          { expr: sum(q.rate('outcomes', 'outcome="useful"')), legend: 'useful' },
        ],
        words: ['useful'],
        overrides: [
          {
            matcher: { id: 'byName', options: 'useful' },
            properties: [
              { id: 'unit', value: 'reqps' },
              { id: 'custom.axisPlacement', value: 'right' },
            ],
          },
        ],
      }),
      lines({
        id: 33,
        title: 'Results of repeats ÷ repeats',
        question: 'Are the repeats worth what they cost?',
        shown: 'repeats per second by how they ended, stacked to 100 %; reconnects are not in it.',
        action: 'Few useful ones: repeat less. Many late ones: the time for another attempt was not there.',
        unit: 'cps',
        noValue: 'no repeat',
        width: 8,
        height: 9,
        targets: [{ expr: `${sum(q.rate('repeatResults'), 'result')} > 0`, legend: '{{result}}' }],
        stack: 'percent',
        words: REPEAT_RESULTS,
      }),
      lines({
        id: 34,
        title: 'Hedges per second, by what became of them',
        question: 'Do second attempts beside a running one win?',
        shown:
          'hedges that won, lost, failed, and those that were not sent because they did not fit or nobody paid.',
        action: 'Mostly lost: they start too early, and are load for nothing.',
        unit: 'cps',
        noValue: 'no hedge',
        width: 12,
        height: 8,
        targets: [{ expr: sum(q.rate('hedges'), 'result'), legend: '{{result}}' }],
        stack: 'sum',
        words: HEDGE_RESULTS,
      }),
      lines({
        id: 35,
        title: 'Places of dependencies taken by attempts that had lost their race',
        question: 'What do the losers cost?',
        shown: 'seconds per second that calls went on after another attempt had won.',
        action: 'Pass the signal of the hedge to the call, so that the loser stops.',
        unit: 'short',
        noValue: 'no hedge',
        width: 12,
        height: 8,
        targets: [{ expr: sum(q.rate('hedgeLost'), 'dependency'), legend: '{{dependency}}' }],
        stack: 'sum',
      }),
    ],
  };
}
