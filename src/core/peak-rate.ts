/** The greatest rate within a short step, which a mean over seconds hides: waves of repeats, polls and batches. */

/** Long enough for a few arrivals of a busy service, short beside any wait between repeats. */
export const STEP_MS = 100;
/** A peak is told for this long at least, and for twice as long at the most. */
export const KEEP_MS = 30_000;

export class PeakRate {
  #step = -1;
  #count = 0;
  /** Most in one step: of the stretch that runs, and of the one before it. */
  #most = 0;
  #mostBefore = 0;
  #stretch = 0;

  /** One arrival, at a monotonic instant in ms. One that comes late counts in the step that runs. */
  add(at: number): void {
    const step = Math.floor(at / STEP_MS);
    if (step > this.#step) {
      this.#step = step;
      this.#count = 0;
      this.#turn(at);
    }
    this.#count++;
    if (this.#count > this.#most) this.#most = this.#count;
  }

  /** Arrivals per second in the busiest step of the last 30 to 60 seconds. */
  perSecond(now: number): number {
    this.#turn(now);
    return (Math.max(this.#most, this.#mostBefore) * 1_000) / STEP_MS;
  }

  #turn(at: number): void {
    const stretch = Math.floor(at / KEEP_MS);
    if (!(stretch > this.#stretch)) return;
    this.#mostBefore = stretch === this.#stretch + 1 ? this.#most : 0;
    this.#most = 0;
    this.#stretch = stretch;
  }
}
