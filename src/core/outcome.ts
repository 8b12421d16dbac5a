/** How a request ended: exactly one word, decided from the clock and from what was handed over. */
import type { Outcome } from './terms.ts';
import type { TimeBudget } from './time-budget.ts';

export interface Ending {
  /** The whole reply was handed over with the caller still there. */
  readonly completed: boolean;
  readonly status: number | undefined;
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

/** Statuses with which a timeout middleware answers in place of the handler. */
export function isTimeoutStatus(status: number | undefined): boolean {
  return status === 503 || status === 504 || status === 408;
}
