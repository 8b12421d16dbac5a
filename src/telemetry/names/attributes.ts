/** Names of span attributes and events. */

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
