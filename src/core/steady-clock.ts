/** Elapsed time that never goes back, whatever the readings of the clock do. */

/** A reading so far behind an earlier one is merely late; one further behind says that the clock was set back. */
export const LATE_READING_MS = 60_000;
/** 3,170 years in milliseconds: beyond it doubles no longer tell instants apart, and no clock shows it. */
const LAST_READABLE_AT = 1e14;

/**
 * A late reading makes time stand still until the clock has caught up. After a step back time goes on from
 * there, so that it does not stand still for as long as the step. A step forward is taken for time that passed.
 * What is no instant (NaN, Infinity) is not looked at.
 */
export class SteadyClock {
  #originAt = Number.NaN;
  #elapsedMs = 0;

  /** Milliseconds since the first reading. */
  read(now: number): number {
    const elapsedMs = now - this.#originAt;
    if (!(Math.abs(now) <= LAST_READABLE_AT)) return this.#elapsedMs;
    if (elapsedMs >= this.#elapsedMs) {
      this.#elapsedMs = elapsedMs;
      return elapsedMs;
    }
    // True for the first reading too: NaN is not within the bound.
    if (!(this.#elapsedMs - elapsedMs <= LATE_READING_MS)) this.#originAt = now - this.#elapsedMs;
    return this.#elapsedMs;
  }
}
