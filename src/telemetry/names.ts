/**
 * Every public name of the telemetry: metrics with their unit, labels and buckets, span attributes,
 * events and header names. Dashboards, documents and tests read this file; nothing else spells a name.
 *
 * Instrument names carry their unit, against the convention and on purpose: the Prometheus exporter of
 * OpenTelemetry JS adds no unit suffix, OTLP ingestion does and does not double one that is there, so a
 * series has one name on every path.
 */
import {
  ATTEMPT_KINDS,
  ATTEMPT_OWNERS,
  BALANCE_SOURCES,
  BINDING_TERMS,
  BREAKER_STATES,
  BUDGET_SOURCES,
  CANCEL_SOURCES,
  DEPOSIT_SOURCES,
  DUPLICATE_ABILITIES,
  EMPTY_BEHAVIOURS,
  EXPIRY_CAUSES,
  FALLBACK_RESULTS,
  HEADER_FAULTS,
  HEDGE_RESULTS,
  IN_FLIGHT_STATES,
  MODE_CHANGES,
  OUTCOMES,
  PHASES,
  POST_CANCEL_RESULTS,
  PRIORITIES,
  QUEUE_RESULTS,
  RECONCILED_RESULTS,
  REFUSAL_REASONS,
  REPEAT_RESULTS,
  REPLAY_STOPS,
  RETRY_BUDGET_FEEDS,
  RETRY_BUDGET_UNITS,
  type RefusalReason,
  SHARES_DEPENDENCY,
  SHED_REASONS,
  type ShedReason,
  VERDICTS,
  VIOLATIONS,
  WITHDRAWAL_RESULTS,
  WORK_KINDS,
  WORKLOADS,
} from '../core/terms.ts';

export const SCOPE_NAME = 'otel-time-budget';

export const POINTS = ['received', 'before_call', 'after_call'] as const;
export const ATTEMPTS = ['first', 'repeat'] as const;
export const INTENDED = ['yes', 'no'] as const;
/** What an admission gate says no for. */
export const GATE_REFUSALS = [
  'concurrency',
  'queue_age',
  'quota',
  'deadline_exceeded_before_dispatch',
  'below_useful_minimum',
  'caller_gone',
] as const satisfies readonly (ShedReason | RefusalReason)[];
export type GateRefusal = (typeof GATE_REFUSALS)[number];
/** Whether a refusal held; `no` = in `observe` and `propagate`, where it only would have. */
export const ENFORCED = ['yes', 'no'] as const;

/** Labels whose values come from outside: capped, the excess folds into `other` and is counted. */
export const OPEN_LABELS = ['operation', 'dependency', 'caller'] as const;
export type OpenLabel = (typeof OPEN_LABELS)[number];

/** Labels with a closed list of values. */
export const CLOSED_LABELS = {
  priority: PRIORITIES,
  outcome: OUTCOMES,
  verdict: VERDICTS,
  phase: PHASES,
  cause: EXPIRY_CAUSES,
  binding_term: BINDING_TERMS,
  cancel_source: CANCEL_SOURCES,
  refusal_reason: REFUSAL_REASONS,
  point: POINTS,
  attempt: ATTEMPTS,
  attempt_kind: ATTEMPT_KINDS,
  attempt_owner: ATTEMPT_OWNERS,
  repeat_result: REPEAT_RESULTS,
  work_kind: WORK_KINDS,
  workload: WORKLOADS,
  reconciled_result: RECONCILED_RESULTS,
  replay_stop: REPLAY_STOPS,
  post_cancel_result: POST_CANCEL_RESULTS,
  intended: INTENDED,
  violation: VIOLATIONS,
  header_fault: HEADER_FAULTS,
  header_format: BUDGET_SOURCES,
  folded_label: OPEN_LABELS,
  withdrawal_result: WITHDRAWAL_RESULTS,
  deposit_source: DEPOSIT_SOURCES,
  budget_unit: RETRY_BUDGET_UNITS,
  budget_feed: RETRY_BUDGET_FEEDS,
  on_empty: EMPTY_BEHAVIOURS,
  balance_source: BALANCE_SOURCES,
  breaker_state: BREAKER_STATES,
  hedge_result: HEDGE_RESULTS,
  duplicate_ability: DUPLICATE_ABILITIES,
  fallback_result: FALLBACK_RESULTS,
  shares_dependency: SHARES_DEPENDENCY,
  shed_reason: SHED_REASONS,
  in_flight_state: IN_FLIGHT_STATES,
  queue_result: QUEUE_RESULTS,
  gate_refusal: GATE_REFUSALS,
  enforced: ENFORCED,
  mode_change: MODE_CHANGES,
} as const;
export type ClosedLabel = keyof typeof CLOSED_LABELS;

/** The key under which a label is exported, where it differs from its list's name. */
const LABEL_KEYS: Partial<Record<ClosedLabel | OpenLabel, string>> = {
  cancel_source: 'source',
  refusal_reason: 'reason',
  attempt_kind: 'kind',
  attempt_owner: 'owner',
  repeat_result: 'result',
  work_kind: 'kind',
  reconciled_result: 'result',
  replay_stop: 'stop',
  violation: 'kind',
  post_cancel_result: 'result',
  header_fault: 'reason',
  header_format: 'format',
  folded_label: 'label',
  withdrawal_result: 'result',
  deposit_source: 'source',
  budget_unit: 'unit',
  budget_feed: 'feed',
  balance_source: 'source',
  breaker_state: 'state',
  hedge_result: 'result',
  duplicate_ability: 'ability',
  fallback_result: 'result',
  shed_reason: 'reason',
  in_flight_state: 'state',
  queue_result: 'result',
  gate_refusal: 'reason',
  mode_change: 'change',
};
/** Names that the service declares in code or configuration; one too many is refused there. */
export const DECLARED_LABELS = ['queue', 'mode', 'trigger'] as const;
/** Most queues, gates and bulkheads of a process, and most degraded modes; a mode has one trigger. */
export const MAX_QUEUES = 20;
export const MAX_MODES = 20;
export type LabelName =
  | ClosedLabel
  | OpenLabel
  | (typeof DECLARED_LABELS)[number]
  | 'policy_version'
  | 'pool';

export function labelKey(label: LabelName): string {
  if (label === 'pool') return 'db.client.connection.pool.name';
  if (label === 'policy_version' || label === 'queue' || label === 'mode' || label === 'trigger')
    return label;
  return LABEL_KEYS[label] ?? label;
}

/** Seconds, chosen so that 12 ms reads between 10 and 25 ms (dashboards 4.2). */
export const SECONDS_BUCKETS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
export const RATIO_BUCKETS: readonly number[] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

/** A unit is UCUM, without a slash: ingestion would write `_per_second` behind the name, and a page does not. */
export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'histogram' | 'gauge';
  readonly unit: string;
  readonly labels: readonly LabelName[];
  readonly description: string;
}

function counter(name: string, unit: string, labels: readonly LabelName[], description: string) {
  return { name, type: 'counter', unit, labels, description } as const;
}
function histogram(name: string, unit: 's' | '1', labels: readonly LabelName[], description: string) {
  return { name, type: 'histogram', unit, labels, description } as const;
}
function gauge(name: string, unit: string, labels: readonly LabelName[], description: string) {
  return { name, type: 'gauge', unit, labels, description } as const;
}

const WHO = ['caller', 'operation', 'priority'] as const;

/** The catalogue. A Prometheus name is the name with `_` for `.`, and `_total` behind a counter. */
export const METRICS = {
  offered: counter('time_budget.offered', '{request}', WHO, 'Requests that arrived.'),
  admitted: counter(
    'time_budget.admitted',
    '{request}',
    WHO,
    'Requests that were let in: counted with their permit, without one when they end (docs/load.md).',
  ),
  shed: counter(
    'time_budget.shed',
    '{request}',
    [...WHO, 'shed_reason'],
    'Requests refused for lack of room, instead of being admitted.',
  ),
  inFlight: gauge(
    'time_budget.in_flight',
    '{request}',
    ['in_flight_state'],
    'Requests that have not ended. offered = admitted + shed + refused + undecided; admitted = their outcomes + admitted in flight.',
  ),
  retried: counter(
    'time_budget.retried',
    '{request}',
    WHO,
    'Requests that arrived as repeats, or part of one: their sender or one before it had tried before.',
  ),
  outcomes: counter(
    'time_budget.outcomes',
    '{request}',
    [...WHO, 'outcome'],
    'Ended requests by their one outcome.',
  ),
  insufficient: counter(
    'time_budget.insufficient',
    '{request}',
    ['caller', 'operation'],
    'Requests that arrived with less time than the operation usually takes.',
  ),
  verdicts: counter('time_budget.verdicts', '{request}', ['caller', 'verdict'], 'Entry verdicts.'),
  received: histogram(
    'time_budget.received.seconds',
    's',
    ['caller', 'operation'],
    'Budget received, as the caller gave it.',
  ),
  remaining: histogram(
    'time_budget.remaining.seconds',
    's',
    ['operation', 'point'],
    'Time left at a point of the request; an overrun counts as 0 here and in overrun.',
  ),
  remainingRatio: histogram(
    'time_budget.remaining.ratio',
    '1',
    ['operation', 'point'],
    'Time left as a share of the effective budget.',
  ),
  overrun: histogram(
    'time_budget.overrun.seconds',
    's',
    ['operation'],
    'Time past the deadline of requests that ended after it.',
  ),
  localSpend: histogram(
    'time_budget.local_spend.ratio',
    '1',
    ['operation'],
    'Share of the effective budget gone before the first call.',
  ),
  queue: histogram(
    'time_budget.queue.seconds',
    's',
    ['operation'],
    "Time from arrival until the operation's own handler started.",
  ),
  processing: histogram(
    'time_budget.processing.seconds',
    's',
    ['operation'],
    'Time from the start of the handler until the request ended.',
  ),
  usefulDuration: histogram(
    'time_budget.useful_duration.seconds',
    's',
    ['operation'],
    'Duration of requests with outcome useful, from arrival.',
  ),
  allowance: histogram(
    'time_budget.allowance.seconds',
    's',
    ['dependency'],
    'What a call may use: the smallest of its limits.',
  ),
  callDuration: histogram(
    'time_budget.call_duration.seconds',
    's',
    ['dependency'],
    'Duration of calls, those cut off included.',
  ),
  callPhase: histogram(
    'time_budget.call_phase.seconds',
    's',
    ['dependency', 'phase'],
    'Time a call spent in a phase; a phase that did not happen is absent.',
  ),
  calls: counter(
    'time_budget.calls',
    '{call}',
    ['caller', 'dependency', 'binding_term'],
    'Calls by the limit that decided; binding term none = no limit at all.',
  ),
  attempts: counter(
    'time_budget.attempts',
    '{attempt}',
    ['dependency', 'operation', 'attempt_kind', 'attempt_owner'],
    'Calls over HTTP by the kind of attempt they are; owner unknown = a repeat detected and not declared.',
  ),
  permittedAttempts: gauge(
    'time_budget.permitted_attempts',
    '{attempt}',
    ['dependency', 'attempt_owner'],
    'Attempts that one operation may make at the most, the original included, as their owner last said: a bound, beside what is measured.',
  ),
  repeatResults: counter(
    'time_budget.repeat_results',
    '{attempt}',
    ['dependency', 'repeat_result'],
    'Repeats, without reconnects, by how they ended.',
  ),
  cutOff: counter(
    'time_budget.calls.cut_off',
    '{call}',
    ['dependency'],
    'Calls ended by a timeout or a cancel: their duration is censored.',
  ),
  expiries: counter(
    'time_budget.expiries',
    '{expiry}',
    ['dependency', 'phase'],
    'Times a budget or a call ran out, by the phase in progress.',
  ),
  expiryCauses: counter(
    'time_budget.expiry_causes',
    '{request}',
    ['operation', 'cause'],
    'Expired, refused and late requests by the verdict on why.',
  ),
  refused: counter(
    'time_budget.refused',
    '{attempt}',
    ['dependency', 'attempt', 'refusal_reason'],
    'Calls not made for lack of budget; in observe, calls that would not have been made.',
  ),
  execution: counter(
    'time_budget.execution.seconds',
    's',
    ['dependency'],
    'Time dependencies were kept busy by calls, without the wait for our own pool or loop.',
  ),
  executionLate: counter(
    'time_budget.execution_late.seconds',
    's',
    ['dependency'],
    'The part of it past the deadline of the request.',
  ),
  executing: gauge(
    'time_budget.executing',
    '{call}',
    ['dependency'],
    'Calls in flight; under the name of an admission gate, requests whose work has not ended.',
  ),
  cancellations: counter(
    'time_budget.cancellations',
    '{request}',
    ['operation', 'cancel_source'],
    'Requests ended early, by the first source.',
  ),
  postCancelSeconds: counter(
    'time_budget.post_cancel.seconds',
    's',
    ['dependency', 'work_kind', 'intended'],
    'Time worked after the request was cancelled or its deadline had passed.',
  ),
  postCancelItems: counter(
    'time_budget.post_cancel_items',
    '{item}',
    ['dependency', 'work_kind', 'post_cancel_result'],
    'Pieces of work that were open at, or started after, the cancel.',
  ),
  detached: counter(
    'time_budget.detached.seconds',
    's',
    ['dependency'],
    'Time of calls made inside detach(): marked as meant to outlive the request.',
  ),
  violations: counter(
    'time_budget.violations',
    '{violation}',
    ['violation'],
    'Findings that should not happen: a call given more than was left or started after the end, two layers that repeat one operation, a degraded answer where none may be.',
  ),
  headerInvalid: counter(
    'time_budget.header.invalid',
    '{header}',
    ['header_format', 'header_fault'],
    'Budget headers that could not be used as they came.',
  ),
  labelOverflow: counter(
    'time_budget.label_overflow',
    '{value}',
    ['folded_label'],
    'Records whose label value was folded into other.',
  ),
  internalErrors: counter(
    'time_budget.internal_errors',
    '{error}',
    [],
    'Faults inside this package that were kept from the service.',
  ),
  reserve: gauge('time_budget.reserve.seconds', 's', ['dependency'], 'Reserve in force.'),
  dependencyCap: gauge('time_budget.dependency_cap.seconds', 's', ['dependency'], 'Cap in force.'),
  policyInfo: gauge('time_budget.policy_info', '{policy}', ['policy_version'], 'Always 1.'),
  retryBalance: gauge(
    'retry_budget.balance',
    '{unit}',
    ['dependency'],
    'Most that could be withdrawn now, in the unit of the budget; a shared budget stands under its own name.',
  ),
  retryCapacity: gauge(
    'retry_budget.capacity',
    '{unit}',
    ['dependency'],
    'What the balance would be had nothing been withdrawn.',
  ),
  retryFloor: gauge(
    'retry_budget.floor',
    '{unit}',
    ['dependency'],
    'What is there without any original, success or attempt in flight.',
  ),
  retryLowSuccess: gauge(
    'retry_budget.low_success',
    '{budget}',
    ['dependency'],
    '1 while a budget fed by successes gets too few of them to pay for one attempt, so that its floor pays.',
  ),
  retryBudgetInfo: gauge(
    'retry_budget.info',
    '{budget}',
    ['dependency', 'budget_unit', 'budget_feed', 'on_empty'],
    'Always 1.',
  ),
  retryWithdrawals: counter(
    'retry_budget.withdrawals',
    '{withdrawal}',
    ['dependency', 'withdrawal_result'],
    'Repeats that asked the budget; refused = it was empty, and nothing else. In observe they are made all the same.',
  ),
  retryDeposits: counter(
    'retry_budget.deposits',
    '{deposit}',
    ['dependency', 'deposit_source'],
    'Deposits by what they came from; refund = a repeat that was paid for was not made, or earned its cost back.',
  ),
  retryExhausted: counter(
    'retry_budget.exhausted.seconds',
    's',
    ['dependency'],
    'Time in which the budget could not pay for one usual attempt.',
  ),
  retryBalanceInfo: gauge(
    'retry_budget.balance_info',
    '{budget}',
    ['dependency', 'balance_source'],
    'Always 1. Where the balance comes from: kept here, read from the library that keeps it, or replayed from what that did.',
  ),
  retryDispositions: counter(
    'retry_budget.dispositions',
    '{attempt}',
    ['dependency', 'on_empty'],
    'Repeats that were not made because the budget was empty, by what became of their operation.',
  ),
  retryOwed: gauge(
    'retry_budget.owed',
    '{attempt}',
    ['dependency'],
    'Repeats handed to the background of the service and not settled yet: load that is still to come.',
  ),
  duplicates: counter(
    'time_budget.duplicates',
    '{request}',
    ['operation', 'duplicate_ability'],
    'Requests and messages that the service has had before, by what it could do about it; one may count for each.',
  ),
  hedges: counter(
    'time_budget.hedges',
    '{attempt}',
    ['dependency', 'hedge_result'],
    'Second attempts beside one that still runs, by what became of them.',
  ),
  hedgeLost: counter(
    'time_budget.hedge.lost.seconds',
    's',
    ['dependency'],
    'Time that calls of attempts which had lost their race went on after it.',
  ),
  breakerState: gauge(
    'time_budget.breaker.state',
    '{breaker}',
    ['dependency', 'breaker_state'],
    'Circuit breakers of this process that are in this state.',
  ),
  breakerTransitions: counter(
    'time_budget.breaker.transitions',
    '{transition}',
    ['dependency', 'breaker_state'],
    'Changes of circuit breakers into this state.',
  ),
  breakerBlocked: counter(
    'time_budget.breaker.blocked',
    '{attempt}',
    ['dependency'],
    'Attempts that a circuit breaker stopped; none of them was sent.',
  ),
  breakerProbes: counter(
    'time_budget.breaker.probes',
    '{attempt}',
    ['dependency'],
    'Attempts that a half-open circuit breaker let through; they are bounded over all instances only as a sum.',
  ),
  breakerAfterClose: histogram(
    'time_budget.breaker.after_close.seconds',
    's',
    ['dependency'],
    'Time from the close of a circuit breaker to each attempt that it let through in the ten seconds after: a wave stands in the first buckets.',
  ),
  fallbacks: counter(
    'time_budget.fallbacks',
    '{fallback}',
    ['dependency', 'fallback_result', 'shares_dependency'],
    'Fallbacks by the dependency that they stand in for; their own calls count under those they go to.',
  ),
  fallbackSeconds: counter('time_budget.fallback.seconds', 's', ['dependency'], 'Time that fallbacks took.'),
  workloadAdmitted: counter(
    'time_budget.workload.admitted',
    '{request}',
    ['workload'],
    'Admitted requests by workload; counted with their first call, at the latest when they end.',
  ),
  workloadCompleted: counter(
    'time_budget.workload.completed',
    '{request}',
    ['workload', 'outcome'],
    'Ended requests by workload and outcome.',
  ),
  workloadPeak: gauge(
    'time_budget.workload.peak_rate',
    '{request_per_second}',
    ['workload'],
    'Admissions per second in the busiest 100 ms of the last 30 to 60 seconds.',
  ),
  workloadCalls: counter(
    'time_budget.workload.calls',
    '{call}',
    ['dependency', 'workload'],
    'Calls that are no live, original work: repeats, and calls of requests of another workload.',
  ),
  workloadExecution: counter(
    'time_budget.workload.execution.seconds',
    's',
    ['dependency', 'workload'],
    'The part of execution that is no live, original work.',
  ),
  arrivalRepeats: counter(
    'time_budget.arrival_repeats',
    '{request}',
    ['attempt_owner'],
    'Requests that the service itself has told to be repeats, by who repeats.',
  ),
  unknownRecorded: counter(
    'time_budget.unknown.recorded',
    '{operation}',
    ['operation'],
    'Operations of which nobody knew whether they took effect.',
  ),
  unknownReconciled: counter(
    'time_budget.unknown.reconciled',
    '{operation}',
    ['operation', 'reconciled_result'],
    'Unknown outcomes by what was found out about them.',
  ),
  unknownOpen: gauge(
    'time_budget.unknown.open',
    '{operation}',
    ['operation'],
    'Outcomes that are still unknown, as far as they are kept track of.',
  ),
  unknownOldest: gauge(
    'time_budget.unknown.oldest.seconds',
    's',
    ['operation'],
    'How long the oldest of them has been unknown; 0 where there is none.',
  ),
  unknownUntracked: counter(
    'time_budget.unknown.untracked',
    '{operation}',
    [],
    'Unknown outcomes that are not in open: too many, or without a usable key.',
  ),
  queueAge: histogram(
    'time_budget.queue_age.seconds',
    's',
    ['queue', 'priority'],
    'Time that something waited in a queue, however it left.',
  ),
  queueOldest: gauge(
    'time_budget.queue_oldest.seconds',
    's',
    ['queue', 'priority'],
    'How long the oldest of the class has waited; 0 where none waits.',
  ),
  queueUsefulLife: gauge(
    'time_budget.queue_useful_life.seconds',
    's',
    ['queue'],
    'Age from which something in the queue is not worth starting.',
  ),
  queueDepth: gauge('time_budget.queue_depth', '{item}', ['queue'], 'What waits in the queue.'),
  queueEntered: counter('time_budget.queue_entered', '{item}', ['queue'], 'What had to wait.'),
  queueLeft: counter(
    'time_budget.queue_left',
    '{item}',
    ['queue', 'queue_result'],
    'What left the queue, by how: entered = left + depth.',
  ),
  queueRepeats: counter(
    'time_budget.queue_entered_repeats',
    '{item}',
    ['queue'],
    'Of what entered the queue, repeats.',
  ),
  queueWork: gauge(
    'time_budget.queue_work',
    '{cost}',
    ['queue'],
    'What waits in the queue in units of cost, where its items cost differently.',
  ),
  recovering: gauge(
    'time_budget.queue_recovering.seconds',
    's',
    ['queue'],
    'Time since the backlog was at its largest; 0 while it grows and when it is gone. Its largest value is the recovery lag.',
  ),
  modelDrains: gauge(
    'time_budget.model.drains',
    '{queue}',
    ['queue'],
    'Fluid model, no measurement: 1 where the backlog drains at the rates of the last minute, else 0.',
  ),
  modelTimeToDrain: gauge(
    'time_budget.model.time_to_drain.seconds',
    's',
    ['queue'],
    'Fluid model, no measurement: time until the backlog is gone at these rates; absent where it does not drain.',
  ),
  modelBreakEven: gauge(
    'time_budget.model.break_even_rate',
    '{item_per_second}',
    ['queue'],
    'Fluid model, no measurement: repeats per second at which the backlog neither drains nor grows.',
  ),
  replayReleased: counter(
    'time_budget.replay.released',
    '{item}',
    ['queue'],
    'Items of a queue that a replay let run again.',
  ),
  replayLimit: gauge(
    'time_budget.replay.limit',
    '{item_per_second}',
    ['queue'],
    'Items per second that the replay may release now; 0 while it is stopped or nothing is spare.',
  ),
  replaySpare: gauge(
    'time_budget.replay.spare_rate',
    '{item_per_second}',
    ['queue'],
    'Estimate: capacity as the service tells it, less live demand; absent where either is not known.',
  ),
  replayStop: gauge(
    'time_budget.replay.stopped',
    '{replay}',
    ['queue', 'replay_stop'],
    '1 while this signal stops the replay.',
  ),
  replayPauses: counter(
    'time_budget.replay.pauses',
    '{pause}',
    ['queue', 'replay_stop'],
    'Times that this signal stopped the replay.',
  ),
  gateRefused: counter(
    'time_budget.gate_refused',
    '{request}',
    ['queue', 'gate_refusal', 'enforced'],
    'Requests that an admission gate refused; enforced no = would have refused, and let in.',
  ),
  concurrencyUsed: gauge(
    'time_budget.concurrency_used',
    '{permit}',
    ['dependency'],
    'Permits that are held, of a bulkhead or, under its name, of an admission gate.',
  ),
  concurrencyLimit: gauge('time_budget.concurrency_limit', '{permit}', ['dependency'], 'Permits there are.'),
  degradedActive: gauge(
    'time_budget.degraded_active',
    '{mode}',
    ['mode', 'trigger'],
    '1 while the degraded mode is on.',
  ),
  degradedChanges: counter(
    'time_budget.degraded_changes',
    '{change}',
    ['mode', 'trigger', 'mode_change'],
    'Times a degraded mode was entered and left.',
  ),
  loopDelay: gauge(
    'time_budget.loop_delay.seconds',
    's',
    [],
    'Longest that an arrival or an answer of the last 15 to 30 seconds lay unnoticed because the loop was busy.',
  ),
  heapUsed: gauge('time_budget.heap_used.bytes', 'By', [], "V8's heap in use."),
  heapLimit: gauge(
    'time_budget.heap_limit.bytes',
    'By',
    [],
    'Most that it can be; beyond it the process ends.',
  ),
  openFiles: gauge('time_budget.open_files', '{file}', [], 'Open file descriptors. Linux only.'),
  openFilesLimit: gauge('time_budget.open_files_limit', '{file}', [], 'Most there can be. Linux only.'),
  poolWait: histogram(
    'db.client.connection.wait_time',
    's',
    ['pool'],
    'The time it took to obtain an open connection from the pool.',
  ),
  poolTimeouts: counter(
    'db.client.connection.timeouts',
    '{timeout}',
    ['pool'],
    'The number of connection timeouts that have occurred trying to obtain a connection from the pool.',
  ),
  poolCreate: histogram(
    'db.client.connection.create_time',
    's',
    ['pool'],
    'The time it took to create a new connection.',
  ),
  poolUse: histogram(
    'db.client.connection.use_time',
    's',
    ['pool'],
    'The time between borrowing a connection and returning it to the pool.',
  ),
} as const satisfies Record<string, MetricDefinition>;
export type MetricKey = keyof typeof METRICS;

/**
 * What Prometheus calls a metric, on every path (test/e2e/contract.test.ts): the unit is in it once, as OTLP ingestion
 * writes it. Names of the semantic conventions do not carry theirs; there OpenTelemetry's own page leaves it out.
 */
export function prometheusName({ name, unit, type }: MetricDefinition): string {
  const words = name.replaceAll('.', '_');
  const withUnit = unit === 's' && !words.endsWith('_seconds') ? `${words}_seconds` : words;
  return type === 'counter' ? `${withUnit}_total` : withUnit;
}

/** Span attributes. Durations are milliseconds, may be negative, and are absent where unknown. */
export const ATTR = {
  received: 'time_budget.received_ms',
  effective: 'time_budget.effective_ms',
  source: 'time_budget.source',
  verdict: 'time_budget.verdict',
  queue: 'time_budget.queue_ms',
  processing: 'time_budget.processing_ms',
  spentBeforeFirstCall: 'time_budget.spent_before_first_call_ms',
  remaining: 'time_budget.remaining_ms',
  outcome: 'time_budget.outcome',
  overrun: 'time_budget.overrun_ms',
  expiryPhase: 'time_budget.expiry.phase',
  expiryDependency: 'time_budget.expiry.dependency',
  expiryCause: 'time_budget.expiry.cause',
  cancelSource: 'time_budget.cancel.source',
  reserve: 'time_budget.reserve_ms',
  caller: 'time_budget.caller',
  operation: 'time_budget.operation',
  priority: 'time_budget.priority',
  insufficient: 'time_budget.insufficient',
  operationTypical: 'time_budget.operation_typical_ms',
  mode: 'time_budget.mode',
  loopBlocked: 'time_budget.loop_blocked_ms',
  remainingBefore: 'time_budget.remaining_before_ms',
  remainingAfter: 'time_budget.remaining_after_ms',
  allowance: 'time_budget.allowance_ms',
  handedDown: 'time_budget.handed_down_ms',
  bindingTerm: 'time_budget.binding_term',
  dependency: 'time_budget.dependency',
  dependencyCap: 'time_budget.dependency_cap_ms',
  dependencyTypical: 'time_budget.dependency_typical_ms',
  minimum: 'time_budget.minimum_ms',
  latencyDerived: 'time_budget.latency_derived_ms',
  ownTimeout: 'time_budget.own_timeout_ms',
  dispatchDelay: 'time_budget.dispatch_delay_ms',
  postCancel: 'time_budget.post_cancel_ms',
  resetViolation: 'time_budget.reset_violation',
  refusalReason: 'time_budget.refusal.reason',
  needed: 'time_budget.needed_ms',
  shedReason: 'time_budget.shed.reason',
  admissionQueue: 'time_budget.admission.queue',
  admissionWait: 'time_budget.admission.waited_ms',
  degradedMode: 'time_budget.degraded.mode',
  degradedAge: 'time_budget.degraded.age_ms',
  degradedPartial: 'time_budget.degraded.partial',
  attempt: 'time_budget.attempt.ordinal',
  attemptKind: 'time_budget.attempt.kind',
  attemptSource: 'time_budget.attempt.source',
  attemptOwner: 'time_budget.attempt.owner',
  attemptReason: 'time_budget.attempt.reason',
  attemptWait: 'time_budget.attempt.wait_ms',
  attemptPermitted: 'time_budget.attempt.permitted',
  attemptPaidBy: 'time_budget.attempt.paid_by',
  attemptStop: 'time_budget.attempt.stop_condition',
  policyVersion: 'time_budget.policy_version',
  reconciledResult: 'time_budget.reconciled.result',
  replayStop: 'time_budget.replay.stop',
  unknownAge: 'time_budget.unknown.age_ms',
  stoppedAfter: 'time_budget.hedge.stopped_after_ms',
  breakerState: 'time_budget.breaker.state',
  breakerProbe: 'time_budget.breaker.probe',
  fallbackName: 'time_budget.fallback.name',
  fallbackShares: 'time_budget.fallback.shares_dependency',
  fallbackResult: 'time_budget.fallback.result',
  repeated: 'time_budget.repeated',
  detached: 'time_budget.detached',
  /** The caller has given up, the server was not told: a statement behind a client-side timeout. */
  mayStillRun: 'time_budget.may_still_run',
  /** `unknown` where a COMMIT was sent and no answer came: it may have taken effect. Absent otherwise. */
  commitState: 'time_budget.commit_state',
  /** The server's id of the connection (PostgreSQL: backend pid), to tell which statements shared one. */
  connectionId: 'time_budget.connection_id',
} as const;

/** The convention's ordinal of a resend, for whoever reads it; never what we measure by. */
export const ATTR_RESEND_COUNT = 'http.request.resend_count';

/** `time_budget.phase.<name>_ms` on calls. */
export function attrPhase(phase: string): string {
  return `time_budget.phase.${phase}_ms`;
}
/** `time_budget.ledger.<term>_ms` on the server span; terms of calls are `<dependency>.<phase>`. */
export function attrLedger(term: string): string {
  return `time_budget.ledger.${term}_ms`;
}

/** Events on spans. */
export const EVENT = {
  handedDown: 'time_budget.handed_down',
  refused: 'time_budget.refused',
  blocked: 'time_budget.blocked',
  fallback: 'time_budget.fallback',
  expired: 'time_budget.expired',
  cancelled: 'time_budget.cancelled',
  checkpoint: 'time_budget.checkpoint',
  unknown: 'time_budget.unknown',
  reconciled: 'time_budget.reconciled',
  replayPaused: 'time_budget.replay_paused',
} as const;
