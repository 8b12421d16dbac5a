/**
 * What is usual: quantiles of the durations of completed work, per operation and per dependency, bounded in
 * memory. Cut-off work is censored and only counted. The baseline is the window before the current one and is
 * kept, not replaced, while the share of disturbed work is high: an incident must not become the new usual.
 */
import { DDSketch } from '@datadog/sketches-js';

export interface Typical {
  readonly medianMs: number;
  readonly p95Ms: number;
}

export interface UsualSettings {
  readonly windowMs: number;
  /** Fewer completed items than this say nothing. */
  readonly minCount: number;
  /** Share of disturbed work from which on a window is taken for an incident. */
  readonly maxDisturbedShare: number;
}

export const USUAL_SETTINGS: UsualSettings = { windowMs: 60_000, minCount: 20, maxDisturbedShare: 0.2 };

/** Accuracy of 2 % keeps a sketch at a few hundred numbers over the whole range. */
const RELATIVE_ACCURACY = 0.02;
const READINGS_PER_WINDOW = 60;
/** Durations are taken into the sketch so many at a time: one alone finds its code and numbers out of the caches. */
const BATCH = 64;

export class Usual {
  readonly #settings: UsualSettings;
  readonly #beforeRead: (() => void) | undefined;
  #startedAt: number;
  #current: DDSketch | undefined;
  readonly #batch: number[] = [];
  #completed = 0;
  #disturbed = 0;
  #baseline: Typical | undefined;
  /** Reading a quantile costs 5 µs, and every request asks: within the first window it is read now and then. */
  #reading: Typical | undefined;
  #readAgainAt: number;

  /** `beforeRead` has everything taken in that was put off. */
  constructor(now: number, settings: UsualSettings = USUAL_SETTINGS, beforeRead?: () => void) {
    this.#settings = settings;
    this.#beforeRead = beforeRead;
    this.#startedAt = now;
    this.#readAgainAt = now;
  }

  /** Work that ran to its end, with nothing cutting it short. */
  complete(ms: number, now: number): void {
    this.#turn(now);
    this.#batch.push(ms);
    this.#completed++;
    if (this.#batch.length === BATCH) this.#flush();
  }

  /** Work that was cut off, or ended after the deadline of its request. */
  disturb(now: number): void {
    this.#turn(now);
    this.#disturbed++;
  }

  /** undefined while too little is known. */
  typical(now: number): Typical | undefined {
    this.#turn(now);
    if (this.#baseline !== undefined) return this.#baseline;
    if (now >= this.#readAgainAt || this.#reading === undefined) {
      this.#beforeRead?.();
      this.#reading = this.#read();
      this.#readAgainAt = now + this.#settings.windowMs / READINGS_PER_WINDOW;
    }
    return this.#reading;
  }

  #turn(now: number): void {
    if (now - this.#startedAt < this.#settings.windowMs) return;
    // What was put off belongs to its own window, and may itself begin the next.
    this.#beforeRead?.();
    if (now - this.#startedAt < this.#settings.windowMs) return;
    const total = this.#completed + this.#disturbed;
    if (this.#disturbed <= this.#settings.maxDisturbedShare * total)
      this.#baseline = this.#read() ?? this.#baseline;
    this.#startedAt = now;
    this.#reading = undefined;
    this.#current = undefined;
    this.#batch.length = 0;
    this.#completed = 0;
    this.#disturbed = 0;
  }

  #read(): Typical | undefined {
    if (this.#completed < this.#settings.minCount) return undefined;
    const sketch = this.#flush();
    return { medianMs: sketch.getValueAtQuantile(0.5), p95Ms: sketch.getValueAtQuantile(0.95) };
  }

  #flush(): DDSketch {
    this.#current ??= new DDSketch({ relativeAccuracy: RELATIVE_ACCURACY });
    for (const ms of this.#batch) this.#current.accept(ms);
    this.#batch.length = 0;
    return this.#current;
  }
}
