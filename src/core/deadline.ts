/** Deadlines as instants on a monotonic clock that the caller reads, and what a timer may be armed with. */

/** Above 2^31-1 ms Node fires a timer after 1 ms and prints a warning. */
export const MAX_TIMER_MS = 2_147_483_647;

/** Milliseconds left at `now`; negative past the deadline, Infinity where there is no deadline. */
export function remaining(deadlineAt: number, now: number): number {
  return deadlineAt - now;
}

/** True from the deadline itself on: nothing left counts as expired. */
export function isExpired(deadlineAt: number, now: number): boolean {
  return deadlineAt - now <= 0;
}

/**
 * A delay that setTimeout takes without a warning: 0 for what is over, at most {@link MAX_TIMER_MS}.
 * Fractions stay. NaN and Infinity give the longest delay: a timer too late does no harm, because expiry is
 * decided from the clock, and whoever armed it must look at the clock again and arm anew.
 */
export function timerMs(ms: number): number {
  if (ms <= 0) return 0;
  if (ms < MAX_TIMER_MS) return ms;
  // Not Math.min: that would hand NaN on.
  return MAX_TIMER_MS;
}

/**
 * A delay that AbortSignal.timeout takes; it throws for fractions, negatives, NaN and Infinity.
 * Rounded down, so that the signal and the value sent to the peer are the same number.
 * undefined, no signal at all, where there is no limit (Infinity) or none is known (NaN).
 */
export function abortTimeoutMs(ms: number): number | undefined {
  if (ms === Infinity || Number.isNaN(ms)) return undefined;
  return Math.floor(timerMs(ms));
}
