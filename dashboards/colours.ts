/**
 * One colour for each word of the closed lists, on every panel. Red is for harm: time that ran out, work for nobody.
 * What was refused on purpose is light, what is nobody's fault is grey, what is not known is purple.
 */

/** Names of Grafana's own palette, which follow its light and dark theme. */
export const COLOURS: Readonly<Record<string, string>> = {
  // Outcomes, and the results of repeats and of work after the cancel.
  useful: 'green',
  late: 'orange',
  degraded: 'blue',
  expired: 'red',
  failed: 'dark-red',
  cancelled: '#8e8e8e',
  shed: '#c7d0d9',
  refused: 'light-blue',
  unknown: 'purple',
  timed_out: 'red',
  aborted: '#8e8e8e',
  completed: 'light-green',
  stopped: 'green',
  started_after: 'semi-dark-orange',
  // The six load counters.
  offered: 'super-light-blue',
  admitted: 'semi-dark-blue',
  retried: 'yellow',
  ended: '#c7d0d9',
  originals: 'semi-dark-green',
  // Phases, in the order of a call.
  queue: 'light-yellow',
  local: 'yellow',
  event_loop: 'dark-yellow',
  token: 'super-light-purple',
  backoff: 'light-orange',
  dns: 'super-light-blue',
  pool_wait: 'orange',
  connect: 'light-blue',
  tls: 'blue',
  request: 'red',
  db_execution: 'dark-red',
  response: 'purple',
  // Causes of an expiry: the caller's side yellow, the dependency's red, ours between them.
  caller_budget_too_small: 'semi-dark-yellow',
  slow_dependency: 'semi-dark-red',
  spent_before_call: 'light-yellow',
  pool_saturated: 'orange',
  retries: 'light-orange',
  undetermined: '#8e8e8e',
  // Which limit decided.
  remaining_minus_reserve: 'yellow',
  dependency_cap: 'blue',
  latency_derived: 'semi-dark-purple',
  own_timeout: 'light-green',
  none: '#8e8e8e',
  // Who cancelled.
  client_disconnect: 'yellow',
  local_timeout: 'orange',
  upstream_cancel: 'purple',
  inherited_deadline: 'red',
  shutdown: '#c7d0d9',
  lost_race: 'light-green',
  application: 'blue',
  // Entry verdicts.
  accepted: 'green',
  defaulted: 'light-blue',
  clamped_high: 'yellow',
  clamped_low: 'light-yellow',
  refused_below_floor: 'orange',
  invalid: 'red',
  untrusted: 'purple',
  absent: '#8e8e8e',
  // Reasons of refusals.
  deadline_exceeded_before_dispatch: 'red',
  below_useful_minimum: 'orange',
  does_not_fit_retry: 'light-orange',
  retry_budget_empty: 'yellow',
  per_request_limit: 'light-yellow',
  overloaded: 'semi-dark-purple',
  quota: 'light-purple',
  not_retryable: 'light-blue',
  caller_gone: '#8e8e8e',
  // Kinds of attempts, and what feeds and drains a retry budget.
  original: 'semi-dark-green',
  resend: 'orange',
  reexecute: 'yellow',
  reconnect: '#8e8e8e',
  hedge: 'purple',
  granted: 'green',
  success: 'light-green',
  refund: 'blue',
  // Work after the cancel.
  http: 'blue',
  sql: 'orange',
  handler: 'yellow',
  subtask: 'purple',
  other: '#8e8e8e',
  // Points of a request.
  received: 'blue',
  before_call: 'yellow',
  after_call: 'orange',
  // Load: reasons of sheds, states in flight, results of queues.
  concurrency: 'yellow',
  queue_age: 'light-orange',
  memory: 'purple',
  composite: 'light-blue',
  capacity: 'red',
  arriving: '#c7d0d9',
  undecided: 'light-blue',
  started: 'green',
  too_old: 'orange',
  replaced: 'purple',
  parked: 'light-blue',
  deleted: '#c7d0d9',
  // Workloads, breakers and fallbacks.
  live: 'semi-dark-green',
  retry: 'yellow',
  replay: 'orange',
  probe: 'purple',
  background: '#8e8e8e',
  closed: 'green',
  half_open: 'yellow',
  open: 'red',
  answered: 'green',
  // Findings.
  reset: 'red',
  started_after_end: 'orange',
  double_owner: 'yellow',
  commit_after_cancel: 'dark-red',
  degraded_non_degradable: 'purple',
  no_disposition: 'light-blue',
};

/** For a limit drawn over measurements. */
export const LIMIT_COLOUR = '#c7d0d9';
/** For measures that are no verdict (D-37). */
export const NEUTRAL_COLOUR = 'blue';
