/**
 * Whether a degraded mode is on, by the number that it is tied to: on from `enterAt`, off from `exitAt`, which lies
 * beyond it, so that a value in between changes nothing.
 */
import type { MODE_CHANGES } from './terms.ts';

export interface SwitchPoints {
  /** On from this value. */
  readonly enterAt: number;
  /** Off from this value. Below `enterAt` for what is bad when it is high, above for what is bad when it is low. */
  readonly exitAt: number;
  /** Shortest time it stays on, ms: with the mode on, its cause is often not to be seen. */
  readonly leastMs: number;
}

export class DegradedSwitch {
  readonly #points: SwitchPoints | undefined;
  #isOn = false;
  #changedAt = -Infinity;

  /** Without points it is thrown by hand. Throws RangeError for points that are no numbers, or equal. */
  constructor(points?: SwitchPoints) {
    this.#points = points;
    if (points === undefined) return;
    const { enterAt, exitAt, leastMs } = points;
    if (!Number.isFinite(enterAt)) throw new RangeError(`enterAt must be a finite number, got ${enterAt}`);
    if (!Number.isFinite(exitAt) || exitAt === enterAt) {
      throw new RangeError(`exitAt must be a finite number other than enterAt, ${enterAt}, got ${exitAt}`);
    }
    if (!(leastMs >= 0)) throw new RangeError(`leastMs must be a number >= 0, got ${leastMs}`);
  }

  get isOn(): boolean {
    return this.#isOn;
  }

  /** What a new value of the number makes of it; undefined for no change. A value that is no number is none. */
  read(value: number, now: number): (typeof MODE_CHANGES)[number] | undefined {
    if (this.#points === undefined || Number.isNaN(value)) return undefined;
    const { enterAt, exitAt, leastMs } = this.#points;
    const sign = enterAt > exitAt ? 1 : -1;
    if (!this.#isOn) return sign * value >= sign * enterAt && this.set(true, now) ? 'enter' : undefined;
    if (sign * value > sign * exitAt || now - this.#changedAt < leastMs) return undefined;
    return this.set(false, now) ? 'exit' : undefined;
  }

  /** False where it is so already. */
  set(isOn: boolean, now: number): boolean {
    if (this.#isOn === isOn) return false;
    this.#isOn = isOn;
    this.#changedAt = now;
    return true;
  }
}
