/** How a request ended: exactly one word, decided from the clock and from what was handed over. */
import type { Outcome } from './terms.ts';
import type { TimeBudget } from './time-budget.ts';

export interface Ending {
  /** The whole reply was handed over with the caller still there. */
  readonly completed: boolean;
  readonly status: number | undefined;
  /** The reply came from code outside of the handler that a framework had started. */
  readonly outsideHandler?: boolean;
}

/**
 * An error answer at or after the deadline means that time was up: `expired`. So does one at most
 * `toleranceMs` before it, which is how services say "time is up" just in time.
 */
export function decideOutcome(budget: TimeBudget, ending: Ending, now: number, toleranceMs: number): Outcome {
  const expired = now >= budget.deadlineAt;
  if (!ending.completed) {
    return expired || budget.cancelSource === 'inherited_deadline' ? 'expired' : 'cancelled';
  }
  if (ending.status === 429) return 'shed';
  if ((ending.status ?? 0) >= 500) return now >= budget.deadlineAt - toleranceMs ? 'expired' : 'failed';
  return expired ? 'late' : 'useful';
}

/** A timeout middleware answered in place of the handler, which runs on. A handler's own 503 is an answer. */
export function isGivenUp(ending: Ending): boolean {
  if (!ending.completed || ending.outsideHandler !== true) return false;
  return ending.status === 503 || ending.status === 504 || ending.status === 408;
}
