/** Labels of metrics: where their values come from, and under which key each is exported. */
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
} from '../../core/terms.ts';

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
