/**
 * Every closed list of the product, in the order that metrics, spans, dashboards and documents use.
 * The strings are public: renaming one is a breaking change.
 */

/** Where in a request or a call time was when it ran out. The first six are the core ones. */
export const PHASES = [
  'pool_wait',
  'connect',
  'tls',
  'request',
  'db_execution',
  'response',
  'queue',
  'local',
  'dns',
  'token',
  'backoff',
  'event_loop',
] as const;
export type Phase = (typeof PHASES)[number];

/** Who ended the request or the call early. The first source wins and is kept. */
export const CANCEL_SOURCES = [
  'client_disconnect',
  'local_timeout',
  'upstream_cancel',
  'inherited_deadline',
  'shutdown',
  'lost_race',
  'application',
] as const;
export type CancelSource = (typeof CANCEL_SOURCES)[number];

/** What the entry policy made of the budget that was received, or of its absence. */
export const VERDICTS = [
  'accepted',
  'defaulted',
  'clamped_high',
  'clamped_low',
  'refused_below_floor',
  'invalid',
  'untrusted',
  'absent',
] as const;
export type Verdict = (typeof VERDICTS)[number];

/** Which limit decided what a call may use. */
export const BINDING_TERMS = [
  'remaining_minus_reserve',
  'dependency_cap',
  'latency_derived',
  'own_timeout',
] as const;
export type BindingTerm = (typeof BINDING_TERMS)[number];

/** Why something was not started. */
export const REFUSAL_REASONS = [
  'deadline_exceeded_before_dispatch',
  'below_useful_minimum',
  'does_not_fit_retry',
  'retry_budget_empty',
  'per_request_limit',
  'overloaded',
  'quota',
  'not_retryable',
  'caller_gone',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** How a request ended; exactly one. `useful` = within the deadline, with the caller still there. */
export const OUTCOMES = [
  'useful',
  'late',
  'degraded',
  'expired',
  'cancelled',
  'failed',
  'shed',
  'refused',
  'unknown',
] as const;
export type Outcome = (typeof OUTCOMES)[number];

/**
 * Why a request was refused for lack of room, by what said so. `capacity` = answered 503 without saying more, `quota` =
 * too many requests of this caller (429). The others are the triggers near the bottleneck, as the service names them.
 */
export const SHED_REASONS = [
  'concurrency',
  'queue_age',
  'memory',
  'pool_wait',
  'event_loop',
  'composite',
  'capacity',
  'quota',
] as const;
export type ShedReason = (typeof SHED_REASONS)[number];

/**
 * Where a request in flight stands. `arriving` = its operation is not known yet and it is not counted as offered,
 * `undecided` = it is, and may still be refused, `admitted` = it was given a permit.
 */
export const IN_FLIGHT_STATES = ['arriving', 'undecided', 'admitted'] as const;
export type InFlightState = (typeof IN_FLIGHT_STATES)[number];

/**
 * How what waited in a queue left it. `replaced` = for something of a higher priority, `parked` = put aside for people or
 * for later, `deleted` = thrown away, because it can give no valid result any more: what waited in a gate was answered by
 * other code.
 */
export const QUEUE_RESULTS = [
  'started',
  'expired',
  'too_old',
  'replaced',
  'caller_gone',
  'parked',
  'deleted',
] as const;
export type QueueResult = (typeof QUEUE_RESULTS)[number];

/** Changes of a degraded mode. */
export const MODE_CHANGES = ['enter', 'exit'] as const;

/** What kind of attempt a call is. A reconnect loads nothing again and stays out of the ratios. */
export const ATTEMPT_KINDS = ['original', 'resend', 'reexecute', 'reconnect', 'hedge'] as const;
export type AttemptKind = (typeof ATTEMPT_KINDS)[number];

/**
 * Who made the attempt: `none` = an original, `unknown` = a repeat that was detected and that nobody declared,
 * `service` = a loop or policy of the service's own that asked the guard, `user` = somebody at a screen,
 * `broker` = a message that was delivered before.
 */
export const ATTEMPT_OWNERS = [
  'none',
  'unknown',
  'got',
  'undici',
  'aws_sdk',
  'service',
  'user',
  'broker',
] as const;
export type AttemptOwner = (typeof ATTEMPT_OWNERS)[number];

/** How a repeat is known to be one. */
export const ATTEMPT_SOURCES = ['detected', 'declared'] as const;
export type AttemptSource = (typeof ATTEMPT_SOURCES)[number];

/** What became of the attempt before, which is why the repeat ran. `throttled` is 429, `error_answer` 408 and 5xx. */
export const REPEAT_REASONS = [
  'not_sent',
  'no_answer',
  'broken_answer',
  'timed_out',
  'aborted',
  'throttled',
  'error_answer',
] as const;
export type RepeatReason = (typeof REPEAT_REASONS)[number];

/** How a repeat ended. `late` = an answer without an error that came when nobody could use it any more. */
export const REPEAT_RESULTS = ['useful', 'late', 'failed', 'timed_out', 'aborted'] as const;
export type RepeatResult = (typeof REPEAT_RESULTS)[number];

/** Why the time ran out: the verdict on an expired, refused or late request. */
export const EXPIRY_CAUSES = [
  'caller_budget_too_small',
  'slow_dependency',
  'spent_before_call',
  'pool_saturated',
  'event_loop',
  'retries',
  'undetermined',
] as const;
export type ExpiryCause = (typeof EXPIRY_CAUSES)[number];

/** Importance of a request. `unset` is what is recorded until somebody trusted says otherwise. */
export const PRIORITIES = ['critical', 'normal', 'low', 'unset'] as const;
export type Priority = (typeof PRIORITIES)[number];

/** The form in which a budget arrived, in the order of preference between equal values. */
export const BUDGET_SOURCES = [
  'time_budget',
  'x_request_timeout_ms',
  'grpc_timeout',
  'connect_timeout_ms',
  'envoy_expected',
  'envoy_upstream',
  'pulse_timeout',
  'pulse_deadline',
  'misk',
  'userver',
  'yarpc',
  'default',
  'api',
] as const;
export type BudgetSource = (typeof BUDGET_SOURCES)[number];

/** Why a header could not be used. `repeated` and `conflict` are counted although a value was found. */
export const HEADER_FAULTS = [
  'malformed',
  'too_long',
  'out_of_range',
  'repeated',
  'conflict',
  'untrusted',
] as const;
export type HeaderFault = (typeof HEADER_FAULTS)[number];

/** Findings that should never happen on a healthy path. */
export const VIOLATIONS = [
  'reset',
  'started_after_end',
  'double_owner',
  'commit_after_cancel',
  'degraded_non_degradable',
  'no_disposition',
] as const;

/** How a piece of work that went on after a cancel ended. */
export const POST_CANCEL_RESULTS = ['completed', 'failed', 'stopped', 'started_after'] as const;
export type PostCancelResult = (typeof POST_CANCEL_RESULTS)[number];

/** What kind of work went on after a cancel. */
export const WORK_KINDS = ['http', 'sql', 'handler', 'subtask', 'other'] as const;
export type WorkKind = (typeof WORK_KINDS)[number];

/**
 * What kind of load a request is: `retry` = a repeat of live work or part of one, `replay` = old work that is let
 * run again after a fault, `probe` = asks whether a thing works, `background` = nobody waits for it.
 */
export const WORKLOADS = ['live', 'retry', 'replay', 'probe', 'background'] as const;
export type Workload = (typeof WORKLOADS)[number];
/** Those that a request is only by being told; the others follow from its attempt. */
export const TOLD_WORKLOADS = ['replay', 'probe', 'background'] as const satisfies readonly Workload[];

/**
 * What was found out about an unknown outcome: it took effect, it did not, or nobody will ever know and it is left to
 * people.
 */
export const RECONCILED_RESULTS = ['done', 'not_done', 'abandoned'] as const;
export type ReconciledResult = (typeof RECONCILED_RESULTS)[number];

/**
 * What stops a replay: live calls take longer, the oldest live request is past its useful age, more is a duplicate than
 * expected, the dependency refuses again.
 */
export const REPLAY_STOPS = ['latency', 'live_age', 'duplicates', 'throttled'] as const;
export type ReplayStop = (typeof REPLAY_STOPS)[number];

/** Label value for anything outside a list or beyond a cap. */
export const OTHER = 'other';
/** Label value where a thing exists but nobody named it (a caller that says nothing). */
export const UNKNOWN = 'unknown';
/** Label value of `operation` where no route is known. */
export const NO_OPERATION = 'unmatched';
/** Label value of `dependency` where no call was in progress. */
export const NO_DEPENDENCY = 'none';

/** How a retry budget reckons; who published each is said at the class that does it. */
export const RETRY_BUDGET_MODELS = [
  'token_bucket',
  'grpc_throttling',
  'in_flight_percent',
  'fixed_quota',
] as const;
export type RetryBudgetModel = (typeof RETRY_BUDGET_MODELS)[number];

/** What one unit of a retry budget stands for. Amounts of `time` are milliseconds. */
export const RETRY_BUDGET_UNITS = ['requests', 'concurrent_attempts', 'time', 'weighted_cost'] as const;
export type RetryBudgetUnit = (typeof RETRY_BUDGET_UNITS)[number];

/** What fills a retry budget. */
export const RETRY_BUDGET_FEEDS = ['original', 'success', 'in_flight'] as const;
export type RetryBudgetFeed = (typeof RETRY_BUDGET_FEEDS)[number];

/**
 * Where the balance of a retry budget comes from: this package keeps it (`own`), it is read from the library that does
 * (`read`), or it is replayed from what that library did (`derived`).
 */
export const BALANCE_SOURCES = ['own', 'read', 'derived'] as const;
export type BalanceSource = (typeof BALANCE_SOURCES)[number];

/** What one deposit into a retry budget comes from. */
export const DEPOSIT_SOURCES = ['original', 'success', 'refund'] as const;
export type DepositSource = (typeof DEPOSIT_SOURCES)[number];

/** What a retry budget said to a withdrawal. `refused` = it was empty, and nothing else. */
export const WITHDRAWAL_RESULTS = ['granted', 'refused'] as const;

/** What becomes of an operation whose repeat the retry budget cannot pay for. */
export const EMPTY_BEHAVIOURS = ['original_error', 'managed_background', 'degrade'] as const;
export type EmptyBehaviour = (typeof EMPTY_BEHAVIOURS)[number];

/**
 * What a service can do about an instruction that it has had before: know it, keep it from having a second effect, and
 * give what the first one led to. Each is counted on its own.
 */
export const DUPLICATE_ABILITIES = ['recognised', 'prevented', 'returned'] as const;
export type DuplicateAbility = (typeof DUPLICATE_ABILITIES)[number];

/** What became of a hedge; `suppressed` = it was not sent, because it did not fit or nobody paid for it. */
export const HEDGE_RESULTS = ['won', 'lost', 'failed', 'suppressed'] as const;
export type HedgeResult = (typeof HEDGE_RESULTS)[number];

/** What a circuit breaker does with calls: `half_open` lets a few through, as probes. */
export const BREAKER_STATES = ['closed', 'half_open', 'open'] as const;
export type BreakerState = (typeof BREAKER_STATES)[number];

/** How what was done in place of a failed call ended. `refused` = by a quota or a limit (429, a throttling error). */
export const FALLBACK_RESULTS = ['answered', 'failed', 'refused'] as const;
export type FallbackResult = (typeof FALLBACK_RESULTS)[number];

/** Whether a fallback called the dependency that it stands in for. `unknown` = outside a request, where it is not seen. */
export const SHARES_DEPENDENCY = ['yes', 'no', 'unknown'] as const;
export type SharesDependency = (typeof SHARES_DEPENDENCY)[number];

/** What paid for an attempt. */
export const PAYERS = ['request_limit', 'retry_budget', 'probe', 'manual', 'none'] as const;
export type Payer = (typeof PAYERS)[number];

/** What is known of a failure; it decides whether the same request may be sent again. */
export const ERROR_CLASSES = [
  'transient',
  'throttled',
  'precondition',
  'validation',
  'auth',
  'unknown_outcome',
] as const;
export type ErrorClass = (typeof ERROR_CLASSES)[number];
