/**
 * How long a budget has been exhausted. It is from the instant at which its balance falls below the cost of one
 * usual attempt, by a withdrawal or because something ran out, or at which it refuses with less than that left;
 * until the balance is up to that cost again. A budget that starts empty is exhausted from its first refusal on,
 * and one that refuses only something dearer is not exhausted.
 */
export class ExhaustedTime {
  #sinceAt = Number.NaN;
  #totalMs = 0;
  #allowed = false;

  /** Says whether a usual attempt could be paid from `at` on; `at` never goes back. */
  watch(allowed: boolean, at: number): void {
    if (allowed) {
      if (this.#sinceAt <= at) this.#totalMs += at - this.#sinceAt;
      this.#sinceAt = Number.NaN;
    } else if (this.#allowed) {
      this.#sinceAt = at;
    }
    this.#allowed = allowed;
  }

  /** Says that a withdrawal was refused at `at`. */
  refuse(at: number): void {
    if (!this.#allowed && !(this.#sinceAt <= at)) this.#sinceAt = at;
  }

  /** Milliseconds up to `at`; never falls. */
  read(at: number): number {
    return this.#sinceAt <= at ? this.#totalMs + (at - this.#sinceAt) : this.#totalMs;
  }
}
