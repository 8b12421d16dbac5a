/** The few figures that the bench takes from its samples; robust ones, because the machine is shared. */

export interface Spread {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const upper = sorted[Math.floor(middle)] ?? Number.NaN;
  return Number.isInteger(middle) ? ((sorted[middle - 1] ?? Number.NaN) + upper) / 2 : upper;
}

export function spread(values: readonly number[]): Spread {
  return { median: median(values), min: Math.min(...values), max: Math.max(...values) };
}

export interface Interval {
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/**
 * The median and its 95 % interval from the order of the values alone (ranks n/2 ± 0.98 √n, the normal
 * approximation of the binomial): no assumption about how the noise is distributed. All values if they are few.
 */
export function medianInterval(values: readonly number[]): Interval {
  const sorted = [...values].sort((a, b) => a - b);
  const half = 0.98 * Math.sqrt(sorted.length);
  const low = Math.max(0, Math.floor(sorted.length / 2 - half) - 1);
  const high = Math.min(sorted.length - 1, Math.ceil(sorted.length / 2 + half));
  return { median: median(sorted), low: sorted[low] ?? Number.NaN, high: sorted[high] ?? Number.NaN };
}
