/** What waits and is turned away, which modes and breakers are on, and what the way back costs the live work. */
import { MappingType } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  BREAKER_STATES,
  IN_FLIGHT_STATES,
  QUEUE_RESULTS,
  SHED_REASONS,
  WORKLOADS,
} from '../../src/core/terms.ts';
import type { Board, Row } from '../board.ts';
import { heatmap, lines, stat, timeline } from '../kinds.ts';
import { boardLink, ofRow } from '../links.ts';
import { type Queries, RANGE, share, sum } from '../queries.ts';
import { table } from '../table.ts';

export const QUEUES_AND_RECOVERY: Board = {
  name: 'queues',
  title: 'Queues and recovery',
  description:
    'What waits and until when is it worth anything, what is turned away, which modes and breakers are on, and does the way back hurt live work?',
  filters: ['priority', 'dependency'],
  rows: (q) => [load(q), waiting(q), degradation(q), breakers(q), recovery(q)],
};

function load(q: Queries): Row {
  return {
    id: 10,
    title: 'Intake',
    panels: [
      lines({
        id: 11,
        title: 'Requests in flight, by where they stand',
        question: 'Is more let in than is finished?',
        shown: 'requests that have not ended. offered = admitted + shed + refused + undecided.',
        action:
          'admitted climbs: execution is slower than admission. undecided climbs: they wait for a permit.',
        unit: 'short',
        noValue: 'no data',
        width: 8,
        height: 9,
        targets: [{ expr: sum(q.series('inFlight'), 'state'), legend: '{{state}}' }],
        stack: 'sum',
        words: IN_FLIGHT_STATES,
        decimals: 0,
      }),
      lines({
        id: 12,
        title: 'Shed requests per second, by reason',
        question: 'What says no, and is it the scarce thing?',
        shown: 'requests refused for lack of room instead of being admitted.',
        action:
          'memory, event_loop: the process itself. pool_wait, concurrency: what it stands before. quota: one caller.',
        unit: 'reqps',
        noValue: 'nothing was shed',
        width: 8,
        height: 9,
        targets: [{ expr: `${sum(q.rate('shed'), 'reason')} > 0`, legend: '{{reason}}' }],
        stack: 'sum',
        words: SHED_REASONS,
      }),
      table({
        id: 13,
        title: 'Refusals of admission gates, by reason',
        question: 'Which gate refuses, and does it hold or only count?',
        shown: 'over the range; enforced no = would have refused, and let in.',
        action: 'Before a gate is enforced: are the requests that it would refuse the right ones?',
        noValue: 'no gate refused anything',
        width: 8,
        height: 9,
        keys: { [q.job]: 'service', queue: 'gate', reason: 'reason', enforced: 'enforced' },
        columns: [
          {
            title: 'refused',
            expr: `${sum(q.increase('gateRefused'), q.job, 'queue', 'reason', 'enforced')} > 0`,
            unit: 'short',
          },
        ],
        sortBy: 'refused',
        links: [boardLink(q.options, 'overview', 'This service', { job: ofRow('service') })],
      }),
    ],
  };
}

function waiting(q: Queries): Row {
  const depth = sum(q.series('queueDepth'), 'queue');
  const drains = `${sum(q.rate('queueLeft'), 'queue')} - ${sum(q.rate('queueEntered'), 'queue')}`;
  return {
    id: 20,
    title: 'Waiting',
    panels: [
      lines({
        id: 21,
        title: 'Queue age: p50, p99 and oldest, against useful life',
        question: 'Is what waits near the end of its useful life?',
        shown:
          'age of what left the queue, and of the oldest that waits; dashed: from there it is not worth starting.',
        action:
          'Oldest near the dashed line: admit less of low priority, or drop the expired heads; depth alone says nothing.',
        unit: 's',
        noValue: 'no queue',
        width: 10,
        height: 9,
        targets: [
          { expr: q.quantile(0.5, 'queueAge', ['queue']), legend: 'p50 {{queue}}' },
          { expr: q.quantile(0.99, 'queueAge', ['queue']), legend: 'p99 {{queue}}' },
          { expr: `max by (queue) (${q.series('queueOldest')})`, legend: 'oldest {{queue}}' },
          { expr: `min by (queue) (${q.series('queueUsefulLife')})`, legend: 'useful life {{queue}}' },
        ],
        limits: ['useful life'],
      }),
      stat({
        id: 22,
        title: 'Time until the backlog is gone, at the present rates',
        question: 'When is it drained, if at all?',
        shown: 'depth ÷ (what leaves − what enters per second).',
        action:
          'Does not drain: cut attempts first, then admission. Longer than the useful life: most of it is lost already.',
        unit: 's',
        noValue: 'nothing waits',
        width: 4,
        height: 9,
        targets: [{ expr: `(${depth} > 0) / clamp_min(${drains}, 0)`, legend: '{{queue}}' }],
        mappings: [
          {
            type: MappingType.RangeToText,
            options: { from: 1e9, to: null, result: { text: 'does not drain', color: 'red', index: 0 } },
          },
        ],
        decimals: 0,
        hasGraph: false,
      }),
      lines({
        id: 23,
        title: 'Depth of queues',
        question: 'How much waits?',
        shown: 'what waits now, over all chosen instances.',
        action:
          'Read it with age and drain time: a deep queue that moves is fine, a short one that stands is not.',
        unit: 'short',
        noValue: 'no queue',
        width: 5,
        height: 9,
        targets: [{ expr: depth, legend: '{{queue}}' }],
        decimals: 0,
      }),
      lines({
        id: 24,
        title: 'What entered queues and what left them per second, by how',
        question: 'Does waiting end in work?',
        shown: 'entered as a line; left by result, stacked.',
        action:
          'expired and too_old: the queue is longer than its time. caller_gone: nobody waited that long.',
        unit: 'ops',
        noValue: 'nothing had to wait',
        width: 5,
        height: 9,
        targets: [
          { expr: sum(q.rate('queueEntered')), legend: 'entered' },
          { expr: `${sum(q.rate('queueLeft'), 'result')} > 0`, legend: '{{result}}' },
        ],
        stack: 'sum',
        words: QUEUE_RESULTS,
        limits: ['entered'],
      }),
    ],
  };
}

function degradation(q: Queries): Row {
  return {
    id: 30,
    title: 'Degradation',
    panels: [
      timeline({
        id: 31,
        title: 'Degraded modes over time, with their triggers',
        question: 'Which mode is on, since when, and by which trigger?',
        shown: 'each declared mode: on in at least one instance, or off.',
        action:
          'Still on though its trigger is over: the exit is broken. On and off and on: enter and exit lie too close.',
        unit: 'none',
        noValue: 'no degraded mode is declared',
        width: 16,
        height: 7,
        targets: [
          {
            expr: `max by (mode, trigger) (${q.series('degradedActive')})`,
            legend: '{{mode}} ({{trigger}})',
          },
        ],
        mappings: [
          {
            type: MappingType.ValueToText,
            options: {
              '0': { text: 'off', color: 'green', index: 0 },
              '1': { text: 'on', color: 'orange', index: 1 },
            },
          },
        ],
        thresholds: [
          { value: null, color: 'green' },
          { value: 1, color: 'orange' },
        ],
      }),
      table({
        id: 32,
        title: 'Changes of degraded modes over the range',
        question: 'How often did a mode come and go?',
        shown: 'times that a mode was entered and left, over all chosen instances.',
        action: 'Many changes: hysteresis or the least time on is too small.',
        noValue: 'no mode changed',
        width: 8,
        height: 7,
        keys: { [q.job]: 'service', mode: 'mode', trigger: 'trigger', change: 'change' },
        columns: [
          {
            title: 'times',
            expr: `${sum(q.increase('degradedChanges'), q.job, 'mode', 'trigger', 'change')} > 0`,
            unit: 'short',
          },
        ],
        sortBy: 'times',
      }),
    ],
  };
}

function breakers(q: Queries): Row {
  return {
    id: 40,
    title: 'Breakers and fallbacks',
    panels: [
      lines({
        id: 41,
        title: 'Circuit breakers, by state',
        question: 'Which breakers are open, in how many processes?',
        shown: 'breakers of the chosen dependencies over all instances, by the state they are in.',
        action: 'Open everywhere: the dependency. Open in one instance: that instance, or its network.',
        unit: 'short',
        noValue: 'no breaker',
        width: 6,
        height: 9,
        targets: [{ expr: sum(q.series('breakerState'), 'state'), legend: '{{state}}' }],
        stack: 'sum',
        words: BREAKER_STATES,
        decimals: 0,
      }),
      lines({
        id: 42,
        title: 'Attempts per second that breakers stopped, and probes let through',
        question: 'How much is held back, and how much is tried meanwhile?',
        shown: 'blocked and probes by dependency, over all instances.',
        action: 'Probes are bounded per process only: many instances probe like a client of their own.',
        unit: 'cps',
        noValue: 'no breaker',
        width: 6,
        height: 9,
        targets: [
          { expr: sum(q.rate('breakerBlocked'), 'dependency'), legend: 'blocked {{dependency}}' },
          { expr: sum(q.rate('breakerProbes'), 'dependency'), legend: 'probes {{dependency}}' },
        ],
      }),
      heatmap({
        id: 43,
        title: 'Attempts after a breaker closed, by time since',
        question: 'Does everything come at once when it closes?',
        shown: 'attempts per second that it let through in the ten seconds after, by how long after.',
        action: 'A dark bottom line is a wave: let the rate grow instead of opening at once.',
        unit: 's',
        noValue: 'no breaker closed',
        width: 6,
        height: 9,
        targets: [{ expr: q.buckets('breakerAfterClose'), legend: '{{le}}' }],
      }),
      table({
        id: 44,
        title: 'Fallbacks over the range, by the dependency they stand in for',
        question: 'Does the fallback help, or call the same dependency again?',
        shown: 'fallbacks by result; shares yes = it called what had failed.',
        action: 'shares yes: it fails together with what it replaces, and adds to its load.',
        noValue: 'no fallback',
        width: 6,
        height: 9,
        keys: { dependency: 'dependency', result: 'result', shares_dependency: 'shares' },
        columns: [
          {
            title: 'fallbacks',
            expr: `${sum(q.increase('fallbacks'), 'dependency', 'result', 'shares_dependency')} > 0`,
            unit: 'short',
          },
        ],
        sortBy: 'fallbacks',
      }),
    ],
  };
}

function recovery(q: Queries): Row {
  const { job } = q;
  const execution = (workload: string) => sum(q.rate('workloadExecution', workload), 'workload');
  return {
    id: 50,
    title: 'Recovery',
    panels: [
      lines({
        id: 51,
        title: 'Admitted requests per second, by workload',
        question: 'How much of the load is live, and how much is the way back?',
        shown: 'requests as they were admitted: live, retry, replay, probe, background.',
        action: 'replay while live suffers: slow the replay down, it can wait.',
        unit: 'reqps',
        noValue: 'no traffic',
        width: 6,
        height: 9,
        targets: [{ expr: `${sum(q.rate('workloadAdmitted'), 'workload')} > 0`, legend: '{{workload}}' }],
        stack: 'sum',
        words: WORKLOADS,
      }),
      lines({
        id: 52,
        title: 'Useful share of ended requests, by workload',
        question: 'Does recovery work hurt live work?',
        shown: 'useful ÷ ended, each workload for itself.',
        action: 'Stop condition of a replay: live falls while replay runs.',
        unit: 'percentunit',
        noValue: 'no traffic',
        width: 6,
        height: 9,
        targets: [
          {
            expr: share(
              sum(q.rate('workloadCompleted', 'outcome="useful"'), 'workload'),
              sum(q.rate('workloadCompleted'), 'workload'),
            ),
            legend: '{{workload}}',
          },
        ],
        words: WORKLOADS,
        min: 0,
        max: 1,
      }),
      lines({
        id: 53,
        title: 'Peak admissions per second in 100 ms, by workload',
        question: 'Is the load as even as its mean says?',
        shown: 'busiest 100 ms of the last half to one minute, of the busiest instance.',
        action: 'A peak far above the mean is a wave: spread it, by jitter or by admission.',
        unit: 'reqps',
        noValue: 'no traffic',
        width: 6,
        height: 9,
        targets: [{ expr: `max by (workload) (${q.series('workloadPeak')})`, legend: '{{workload}}' }],
        words: WORKLOADS,
      }),
      lines({
        id: 54,
        title: 'Places of dependencies taken by work that is not live and original',
        question: 'What do repeats and recovery cost the dependencies?',
        shown:
          'seconds per second that dependencies are busy for it, by workload; retry: repeats of live work.',
        action: 'Compare with all work in flight on Budget path; what it takes is missing for live work.',
        unit: 'short',
        noValue: 'nothing but live work',
        width: 6,
        height: 9,
        targets: [{ expr: `${execution('')} > 0`, legend: '{{workload}}' }],
        stack: 'sum',
        words: WORKLOADS,
      }),
      table({
        id: 55,
        title: 'Calls per second that are not live and original, by dependency and workload',
        question: 'Which dependency carries the recovery?',
        shown: 'calls over the range: repeats, and calls of requests of another workload.',
        action: 'Take the largest first; a replay is paused, a retry is budgeted.',
        noValue: 'nothing but live work',
        width: 12,
        height: 8,
        keys: { [job]: 'service', dependency: 'dependency', workload: 'workload' },
        columns: [
          {
            title: 'calls/s',
            expr: `${sum(q.rate('workloadCalls', '', RANGE), job, 'dependency', 'workload')} > 0`,
            unit: 'cps',
          },
        ],
        sortBy: 'calls/s',
        links: [
          boardLink(q.options, 'retries', 'Its repeats', {
            job: ofRow('service'),
            dependency: ofRow('dependency'),
          }),
        ],
      }),
      table({
        id: 56,
        title: 'Arrivals told to be repeats, by who repeats',
        question: 'Do users, or services, send again?',
        shown: 'requests over the range that the service itself has told to be repeats.',
        action:
          'user: people press the button again, tell them what is going on. service: its own retries, see Retries.',
        noValue: 'none was told to be one',
        width: 12,
        height: 8,
        keys: { [job]: 'service', owner: 'owner' },
        columns: [
          {
            title: 'repeats',
            expr: `${sum(q.increase('arrivalRepeats'), job, 'owner')} > 0`,
            unit: 'short',
          },
        ],
        sortBy: 'repeats',
      }),
    ],
  };
}
