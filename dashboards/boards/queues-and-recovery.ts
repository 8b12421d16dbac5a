/** What waits and is turned away, which modes and breakers are on, and what the way back costs the live work. */
import { MappingType, type ValueMapping } from '@grafana/grafana-foundation-sdk/dashboard';
import {
  BREAKER_STATES,
  IN_FLIGHT_STATES,
  QUEUE_RESULTS,
  RECONCILED_RESULTS,
  SHED_REASONS,
  WORKLOADS,
} from '../../src/core/terms.ts';
import type { Board, Row } from '../board.ts';
import { heatmap, lines, stat, timeline } from '../kinds.ts';
import { boardLink, ofRow } from '../links.ts';
import { type Queries, RANGE, share, sum } from '../queries.ts';
import { table } from '../table.ts';

const ON_OFF: readonly ValueMapping[] = [
  {
    type: MappingType.ValueToText,
    options: {
      '0': { text: 'off', color: 'green', index: 0 },
      '1': { text: 'on', color: 'orange', index: 1 },
    },
  },
];
const ON_OFF_STEPS = [
  { value: null, color: 'green' },
  { value: 1, color: 'orange' },
];

export const QUEUES_AND_RECOVERY: Board = {
  name: 'queues',
  title: 'Queues and recovery',
  description:
    'What waits and until when is it worth anything, what is turned away, which modes and breakers are on, and does the way back hurt live work?',
  filters: ['priority', 'dependency'],
  rows: (q) => [load(q), waiting(q), saturation(q), degradation(q), breakers(q), recovery(q)],
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
        title: 'Backlog gone in',
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
        title: 'Entered, and left by how',
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
      lines({
        id: 25,
        title: 'Model, not measured: drained in',
        question: 'When would it be gone if the rates of the last minute went on?',
        shown: 'fluid model of the service: depth ÷ (served − entering); absent where it does not drain.',
        action: 'Longer than the useful life: work on what is fresh first, and drop what is too old.',
        unit: 's',
        noValue: 'no backlog, or by the model it does not drain',
        width: 6,
        height: 8,
        targets: [{ expr: `max by (queue) (${q.series('modelTimeToDrain')})`, legend: '{{queue}}' }],
      }),
      lines({
        id: 26,
        title: 'Model, not measured: break-even',
        question: 'Do the repeats alone keep the backlog from draining?',
        shown:
          'repeats entering per second as measured; dashed, by the model: at that many it neither drains nor grows.',
        action:
          'Repeats at or above the dashed line: bound the attempts, or it never drains, whatever the original demand.',
        unit: 'ops',
        noValue: 'no queue tells its repeats',
        width: 6,
        height: 8,
        targets: [
          { expr: sum(q.rate('queueRepeats'), 'queue'), legend: 'repeats {{queue}}' },
          { expr: `min by (queue) (${q.series('modelBreakEven')})`, legend: 'break even {{queue}}' },
        ],
        limits: ['break even'],
      }),
      lines({
        id: 27,
        title: 'Recovery lag, since the largest backlog',
        question: 'How long has it been getting better?',
        shown: '0 while the backlog grows and when it is gone; its largest value is the recovery lag.',
        action: 'Compare two incidents, or two policies, by it.',
        unit: 's',
        noValue: 'no queue',
        width: 6,
        height: 8,
        targets: [{ expr: `max by (queue) (${q.series('recovering')})`, legend: '{{queue}}' }],
      }),
      lines({
        id: 28,
        title: 'Backlog in units of cost',
        question: 'How much work waits, where items cost differently?',
        shown: 'what waits, in the unit that the service counts cost in.',
        action: 'Depth falls and this does not: the expensive ones are left.',
        unit: 'short',
        noValue: 'no queue tells its cost',
        width: 6,
        height: 8,
        targets: [{ expr: sum(q.series('queueWork'), 'queue'), legend: '{{queue}}' }],
      }),
    ],
  };
}

/** Beyond the processor (D-24); requests in flight and limits of dependencies stand in other rows. */
function saturation(q: Queries): Row {
  const { job } = q;
  const pool = 'db_client_connection_pool_name';
  const ofLimit = (part: 'heapUsed' | 'openFiles', limit: 'heapLimit' | 'openFilesLimit') =>
    `max by (${job}) (${q.series(part)} / (${q.series(limit)} > 0))`;
  return {
    id: 60,
    title: 'Saturation',
    panels: [
      lines({
        id: 61,
        title: 'Delay of the event loop',
        question: 'Is a process too busy to notice what arrives?',
        shown: 'longest that an arrival or an answer lay unnoticed, of the worst instance.',
        action:
          'A delay near the budgets: something computes, or a collection runs, in one piece. Profile that service.',
        unit: 's',
        noValue: 'no data',
        width: 6,
        height: 8,
        targets: [{ expr: `max by (${job}) (${q.series('loopDelay')})`, legend: `{{${job}}}` }],
      }),
      lines({
        id: 62,
        title: 'Heap ÷ limit, fullest instance',
        question: 'Is a process about to run out of memory?',
        shown: "V8's heap in use ÷ the most that it can be.",
        action:
          'Near 1: collections take the time, then the process ends. Queues in memory are the usual reason.',
        unit: 'percentunit',
        noValue: 'no data',
        width: 6,
        height: 8,
        targets: [{ expr: ofLimit('heapUsed', 'heapLimit'), legend: `{{${job}}}` }],
        min: 0,
        max: 1,
      }),
      lines({
        id: 63,
        title: 'Open files ÷ limit, fullest instance',
        question: 'Are descriptors running out?',
        shown: 'open file descriptors ÷ the most there can be. Linux only.',
        action: 'Climbing: connections are opened and not closed, or calls hang.',
        unit: 'percentunit',
        noValue: 'no data (Linux only)',
        width: 6,
        height: 8,
        targets: [{ expr: ofLimit('openFiles', 'openFilesLimit'), legend: `{{${job}}}` }],
        min: 0,
        max: 1,
      }),
      lines({
        id: 64,
        title: 'Wait for a connection, p99',
        question: 'Are connections what is short?',
        shown: 'time that calls waited for a connection; on the right axis waits that a database pool ended.',
        action:
          'Look who holds them: open transactions, slow readers. A larger pool moves the queue to the database.',
        unit: 's',
        noValue: 'no call waited',
        width: 6,
        height: 8,
        targets: [
          {
            expr: q.quantile(0.99, 'callPhase', ['dependency'], 'phase="pool_wait"'),
            legend: 'p99 {{dependency}}',
          },
          { expr: sum(q.rate('poolTimeouts'), pool), legend: `given up {{${pool}}}` },
        ],
        overrides: [
          {
            matcher: { id: 'byRegexp', options: '/^given up/' },
            properties: [
              { id: 'unit', value: 'ops' },
              { id: 'custom.axisPlacement', value: 'right' },
            ],
          },
        ],
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
        mappings: ON_OFF,
        thresholds: ON_OFF_STEPS,
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
        title: 'Blocked attempts and probes',
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
        title: 'Attempts after a close, by time since',
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
        title: 'Fallbacks, by what they stand in for',
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
        title: 'Admitted per second, by workload',
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
        title: 'Useful ÷ ended, by workload',
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
        title: 'Peak rate in 100 ms, by workload',
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
        title: 'Places taken by other than live work',
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
        title: 'Calls that are no live, original work, by dependency and workload',
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
      lines({
        id: 57,
        title: 'Replay against its limit',
        question: 'Does the replay stay in what live work leaves over?',
        shown:
          'released as measured; dashed: what it may release now; spare: capacity less live demand, as the service tells.',
        action: 'Limit 0: see on the right what stops it. Spare near 0: live work needs everything.',
        unit: 'ops',
        noValue: 'no replay',
        width: 6,
        height: 8,
        targets: [
          { expr: sum(q.rate('replayReleased'), 'queue'), legend: 'released {{queue}}' },
          { expr: sum(q.series('replayLimit'), 'queue'), legend: 'limit {{queue}}' },
          { expr: sum(q.series('replaySpare'), 'queue'), legend: 'spare {{queue}}' },
        ],
        limits: ['limit'],
      }),
      timeline({
        id: 58,
        title: 'What stops the replay',
        question: 'Which stop condition holds it back, and since when?',
        shown: 'each signal: stops the replay, or not.',
        action:
          'latency, live_age: live work suffers. duplicates: it was done already. throttled: the dependency says no.',
        unit: 'none',
        noValue: 'no replay',
        width: 6,
        height: 8,
        targets: [{ expr: `max by (queue, stop) (${q.series('replayStop')})`, legend: '{{queue}} {{stop}}' }],
        mappings: ON_OFF,
        thresholds: ON_OFF_STEPS,
      }),
      lines({
        id: 59,
        title: 'Unknown outcomes: open, and oldest',
        question: 'Of how many operations does nobody know whether they took effect?',
        shown: 'open ones by operation; on the right axis the age of the oldest.',
        action: 'Growing age: nobody reconciles. Do not repeat them blindly, look them up.',
        unit: 'short',
        noValue: 'none was recorded',
        width: 6,
        height: 8,
        targets: [
          { expr: sum(q.series('unknownOpen'), 'operation'), legend: 'open {{operation}}' },
          { expr: `max by (operation) (${q.series('unknownOldest')})`, legend: 'oldest {{operation}}' },
        ],
        overrides: [
          {
            matcher: { id: 'byRegexp', options: '/^oldest/' },
            properties: [
              { id: 'unit', value: 's' },
              { id: 'custom.axisPlacement', value: 'right' },
            ],
          },
        ],
      }),
      lines({
        id: 65,
        title: 'Unknown outcomes: recorded, reconciled',
        question: 'Does somebody find out as fast as they come?',
        shown:
          'recorded as a dashed line; what was found out, stacked; untracked: too many, or without a usable key.',
        action: 'abandoned: written off without knowing. untracked above 0: the age beside it is too good.',
        unit: 'ops',
        noValue: 'none was recorded',
        width: 6,
        height: 8,
        targets: [
          { expr: sum(q.rate('unknownRecorded')), legend: 'recorded' },
          { expr: sum(q.rate('unknownUntracked')), legend: 'untracked' },
          { expr: `${sum(q.rate('unknownReconciled'), 'result')} > 0`, legend: '{{result}}' },
        ],
        stack: 'sum',
        limits: ['recorded'],
        words: RECONCILED_RESULTS,
      }),
    ],
  };
}
