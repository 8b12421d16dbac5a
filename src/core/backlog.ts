/**
 * Fluid model of a backlog: work arrives and is completed at rates that stay the same for a while. Nothing expires,
 * storage has no limit, and every unit costs the same; where costs differ, count cost units (`workOf`) and not items.
 * What it says is a model's figure, never a measurement.
 */

export interface Rates {
  /** Units of original work admitted per second. */
  readonly originalsPerSecond: number;
  /** Units admitted per second that are attempts on top; 0 when left out. */
  readonly repeatsPerSecond?: number | undefined;
  /** Units that can be completed per second. */
  readonly capacityPerSecond: number;
}

/** Rates from an instant on, until the next step begins; the last has no end. */
export interface RateStep extends Rates {
  readonly fromMs: number;
}

export interface Backlog {
  readonly backlog: number;
  /** Units admitted and completed since the first step. */
  readonly admitted: number;
  readonly completed: number;
}

const admittedPerSecond = (rates: Rates) => rates.originalsPerSecond + (rates.repeatsPerSecond ?? 0);

/** What the backlog grows by per second while there is one; negative when it shrinks. */
export function growthPerSecond(rates: Rates): number {
  return admittedPerSecond(rates) - rates.capacityPerSecond;
}

/** The backlog `ms` later: it changes by admitted minus completed work, and is never negative. */
export function backlogAfter(backlog: number, rates: Rates, ms: number): number {
  return Math.max(0, backlog + (growthPerSecond(rates) * ms) / 1_000);
}

/** Time until a backlog is gone at these rates: 0 when there is none, Infinity when it does not drain. */
export function timeToDrainMs(backlog: number, rates: Rates): number {
  if (backlog <= 0) return 0;
  const growth = growthPerSecond(rates);
  return growth < 0 ? (backlog * 1_000) / -growth : Infinity;
}

/**
 * Rate of repeats at which a backlog stays as it is; below it drains, above it grows. Negative where originals
 * alone are more than can be completed: then no restraint in repeating ends it.
 */
export function breakEvenRepeatsPerSecond(rates: Rates): number {
  return rates.capacityPerSecond - rates.originalsPerSecond;
}

/** Units of work admitted per unit of original work; undefined where there is no original work. */
export function attemptsPerOriginal(rates: Rates): number | undefined {
  return rates.originalsPerSecond > 0 ? admittedPerSecond(rates) / rates.originalsPerSecond : undefined;
}

/**
 * The backlog at an instant, from `initial` at the first step on; before it nothing has happened. Throws RangeError
 * for steps that are not in order, or rates that are no numbers >= 0.
 */
export function backlogAt(steps: readonly RateStep[], atMs: number, initial = 0): Backlog {
  checkSteps(steps);
  let backlog = initial;
  let admitted = 0;
  for (const [i, step] of steps.entries()) {
    const ms = Math.min(steps[i + 1]?.fromMs ?? Infinity, atMs) - step.fromMs;
    if (ms <= 0) break;
    backlog = backlogAfter(backlog, step, ms);
    admitted += (admittedPerSecond(step) * ms) / 1_000;
  }
  return { backlog, admitted, completed: initial + admitted - backlog };
}

/**
 * First instant from `fromMs` on at which the backlog is gone; Infinity when it does not drain at the rates of the
 * last step. What lies between the return of capacity and this is the recovery lag. Throws as backlogAt does.
 */
export function drainedAtMs(steps: readonly RateStep[], fromMs: number, initial = 0): number {
  let { backlog } = backlogAt(steps, fromMs, initial);
  if (backlog <= 0) return fromMs;
  for (const [i, step] of steps.entries()) {
    const untilMs = steps[i + 1]?.fromMs ?? Infinity;
    const sinceMs = Math.max(step.fromMs, fromMs);
    if (untilMs <= sinceMs) continue;
    const drainedMs = sinceMs + timeToDrainMs(backlog, step);
    if (drainedMs <= untilMs) return drainedMs;
    backlog = backlogAfter(backlog, step, untilMs - sinceMs);
  }
  return Infinity;
}

/** Work in a queue whose items cost differently: ten slow reports can be more than a thousand small updates. */
export function workOf(items: readonly { readonly count: number; readonly cost: number }[]): number {
  let work = 0;
  for (const { count, cost } of items) work += count * cost;
  return work;
}

function checkSteps(steps: readonly RateStep[]): void {
  let fromMs = -Infinity;
  for (const [i, step] of steps.entries()) {
    if (!(step.fromMs > fromMs)) {
      throw new RangeError(`steps[${i}].fromMs must be > ${fromMs}, got ${step.fromMs}`);
    }
    fromMs = step.fromMs;
    checkRate(`steps[${i}].originalsPerSecond`, step.originalsPerSecond);
    checkRate(`steps[${i}].repeatsPerSecond`, step.repeatsPerSecond ?? 0);
    checkRate(`steps[${i}].capacityPerSecond`, step.capacityPerSecond);
  }
}

function checkRate(name: string, rate: number): void {
  if (!(rate >= 0 && rate < Infinity)) throw new RangeError(`${name} must be a number >= 0, got ${rate}`);
}
