/**
 * The fluid model of a backlog (backlog.ts) on rates that are measured: what was counted over the last minute, for as
 * long as there was a backlog in it. Before that nobody can tell what the capacity is, because a queue that runs empty
 * completes what arrives and not what it could. What the model says is no measurement.
 */
import { attemptsPerOriginal, breakEvenRepeatsPerSecond, growthPerSecond, timeToDrainMs } from './backlog.ts';

/** Rates are those of this long at the most. */
export const WINDOW_MS = 60_000;
/** Readings closer to each other than this are no new ones: a rate over a moment says nothing. */
export const SPACING_MS = 1_000;

/** One look at a queue. Counts are running totals; all of it in items, or all of it in units of cost. */
export interface BacklogReading {
  readonly waiting: number;
  readonly entered: number;
  /** Of what entered, what was a repeat; undefined where that is not told. */
  readonly repeats: number | undefined;
  /** What was worked on. What left in any other way (expired, dropped) is no drain. */
  readonly completed: number;
}

export interface BacklogFigures {
  /** undefined until two readings with a backlog are there. */
  readonly drains: boolean | undefined;
  /** undefined where it does not drain, or nothing is known. */
  readonly drainedInMs: number | undefined;
  /** Repeats per second at which the backlog stays as it is; undefined where repeats or capacity are not known. */
  readonly breakEvenPerSecond: number | undefined;
  readonly attemptsPerOriginal: number | undefined;
  /** Measured: since the backlog was at its largest; 0 while it grows, and when there is none. */
  readonly recoveringMs: number;
}

interface Kept extends BacklogReading {
  readonly at: number;
}

export class LiveBacklog {
  /** Of the stretch with a backlog, at least SPACING_MS apart. */
  #kept: Kept[] = [];
  #peak = 0;
  #peakAt = 0;

  /** Takes a reading at a monotonic instant in ms. Totals that have gone down begin a new stretch. */
  read(reading: BacklogReading, now: number): BacklogFigures {
    const recoveringMs = this.#recovering(reading.waiting, now);
    if (reading.waiting <= 0) {
      this.#kept = [];
      return { ...NOTHING, drains: true, drainedInMs: 0, recoveringMs };
    }
    const first = this.#first(reading, now);
    const figures = first === undefined ? NOTHING : figuresOf(first, { ...reading, at: now });
    this.#keep(reading, now);
    return { ...figures, recoveringMs };
  }

  /** What the rates are reckoned from. */
  #first(reading: BacklogReading, now: number): Kept | undefined {
    const last = this.#kept.at(-1);
    if (last === undefined) return undefined;
    if (now < last.at || reading.entered < last.entered || reading.completed < last.completed) {
      this.#kept = [];
      return undefined;
    }
    // The one at the edge of the window is still the base of what came after it.
    while ((this.#kept[1]?.at ?? Infinity) <= now - WINDOW_MS) this.#kept.shift();
    const first = this.#kept[0];
    return first !== undefined && now - first.at >= SPACING_MS ? first : undefined;
  }

  #keep(reading: BacklogReading, now: number): void {
    const last = this.#kept.at(-1);
    if (last === undefined || now - last.at >= SPACING_MS) this.#kept.push({ ...reading, at: now });
  }

  #recovering(waiting: number, now: number): number {
    if (waiting <= 0 || waiting >= this.#peak) {
      this.#peak = Math.max(0, waiting);
      this.#peakAt = now;
    }
    return Math.max(0, now - this.#peakAt);
  }
}

const NOTHING: Omit<BacklogFigures, 'recoveringMs'> = Object.freeze({
  drains: undefined,
  drainedInMs: undefined,
  breakEvenPerSecond: undefined,
  attemptsPerOriginal: undefined,
});

function figuresOf(first: Kept, now: Kept): Omit<BacklogFigures, 'recoveringMs'> {
  const perSecond = (from: number, until: number) => ((until - from) * 1_000) / (now.at - first.at);
  const entered = perSecond(first.entered, now.entered);
  const capacityPerSecond = perSecond(first.completed, now.completed);
  const areRepeatsKnown = first.repeats !== undefined && now.repeats !== undefined;
  const repeats = areRepeatsKnown ? perSecond(first.repeats, now.repeats) : 0;
  const rates = { originalsPerSecond: entered - repeats, repeatsPerSecond: repeats, capacityPerSecond };
  const drains = growthPerSecond(rates) < 0;
  return {
    drains,
    drainedInMs: drains ? timeToDrainMs(now.waiting, rates) : undefined,
    breakEvenPerSecond: areRepeatsKnown ? breakEvenRepeatsPerSecond(rates) : undefined,
    attemptsPerOriginal: areRepeatsKnown ? attemptsPerOriginal(rates) : undefined,
  };
}
