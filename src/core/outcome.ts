/** How a request ended: exactly one word, decided from the clock and from what was handed over. */
import type { Outcome, ShedReason } from './terms.ts';
import type { TimeBudget } from './time-budget.ts';

export interface Ending {
  /** The whole reply was handed over with the caller still there. */
  readonly completed: boolean;
  readonly status: number | undefined;
  /** The reply came from code outside of the handler that a framework had started. */
  readonly outsideHandler?: boolean;
  /** The reply says when to come again. */
  readonly retryAfter?: boolean;
}

/**
 * The reason where the answer alone shows a refusal; undefined for every other. 429 is one by its definition, of
 * whatever limiter. 503 also says that a handler has failed: it is one only where it names a time to come again and
 * no call was made for the request, so that an answer passed on from a dependency is none.
 */
export function shedReasonOf(
  budget: TimeBudget,
  { completed, status, retryAfter }: Ending,
): ShedReason | undefined {
  if (!completed) return undefined;
  if (status === 429) return 'quota';
  if (status !== 503) return undefined;
  // Whoever waits for a permit has no handler that could have failed.
  if (budget.disposition?.kind === 'waiting') return 'capacity';
  return retryAfter === true && budget.firstCallAt === undefined ? 'capacity' : undefined;
}

/**
 * What the service has said of the request stands before what its answer looks like. What leaves the queue of a gate
 * because its caller has gone, or because other code has answered it with an error, was never let in: `refused`.
 *
 * An error answer at or after the deadline means that time was up: `expired`. So does one at most
 * `toleranceMs` before it, which is how services say "time is up" just in time.
 */
export function decideOutcome(budget: TimeBudget, ending: Ending, now: number, toleranceMs: number): Outcome {
  const said = budget.disposition;
  if (said?.kind === 'shed' || said?.kind === 'refused' || said?.kind === 'unknown') return said.kind;
  const expired = now >= budget.deadlineAt;
  const isWaiting = said?.kind === 'waiting';
  if (!ending.completed) {
    if (isWaiting) return 'refused';
    return expired || budget.cancelSource === 'inherited_deadline' ? 'expired' : 'cancelled';
  }
  if (shedReasonOf(budget, ending) !== undefined) return 'shed';
  const status = ending.status ?? 0;
  if (isWaiting && (status === 408 || status >= 500)) return 'refused';
  if (status >= 500) return now >= budget.deadlineAt - toleranceMs ? 'expired' : 'failed';
  if (expired) return 'late';
  return said?.kind === 'degraded' ? 'degraded' : 'useful';
}

/** A timeout middleware answered in place of the handler, which runs on. A handler's own 503 is an answer. */
export function isGivenUp(budget: TimeBudget, ending: Ending): boolean {
  if (budget.handlerEndedAt !== undefined || budget.disposition !== undefined) return false;
  if (!ending.completed || ending.outsideHandler !== true) return false;
  return ending.status === 503 || ending.status === 504 || ending.status === 408;
}
