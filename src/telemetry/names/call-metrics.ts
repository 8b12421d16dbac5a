/** Metrics of calls: what they may use, their phases, and what they cost for nobody. */
import { counter, gauge, histogram, type MetricDefinition } from './definition.ts';

export const CALL_METRICS = {
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
  reserve: gauge('time_budget.reserve.seconds', 's', ['dependency'], 'Reserve in force.'),
  dependencyCap: gauge('time_budget.dependency_cap.seconds', 's', ['dependency'], 'Cap in force.'),
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
