/** Metrics of requests: how many, how they ended, and where their budget went. */
import { counter, gauge, histogram, type MetricDefinition, WHO } from './definition.ts';

export const REQUEST_METRICS = {
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
  expiryCauses: counter(
    'time_budget.expiry_causes',
    '{request}',
    ['operation', 'cause'],
    'Expired, refused and late requests by the verdict on why.',
  ),
  cancellations: counter(
    'time_budget.cancellations',
    '{request}',
    ['operation', 'cancel_source'],
    'Requests ended early, by the first source.',
  ),
  headerInvalid: counter(
    'time_budget.header.invalid',
    '{header}',
    ['header_format', 'header_fault'],
    'Budget headers that could not be used as they came.',
  ),
} as const satisfies Record<string, MetricDefinition>;
