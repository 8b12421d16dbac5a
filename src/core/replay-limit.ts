/** How fast old work may be let run again, and what stops it: live work comes first. */
import type { ReplayStop } from './terms.ts';

/** What is seen now. What is left out is not watched. */
export interface ReplayFacts {
  /** What live calls to the dependency take, ms. */
  readonly latencyMs?: number | undefined;
  /** How long the oldest live request has been waited for, ms. */
  readonly liveOldestMs?: number | undefined;
  /** Share of what was released lately that had been done before. */
  readonly duplicateRatio?: number | undefined;
  /** The dependency refuses for lack of room. */
  readonly isThrottled?: boolean | undefined;
  /** What can be done per second, live work and replay together. */
  readonly capacityPerSecond?: number | undefined;
  /** What live work asks for per second. */
  readonly livePerSecond?: number | undefined;
}

/** What stops it. What is left out does not. */
export interface ReplayLimits {
  /** Above it, latency has grown. */
  readonly latencyLimitMs?: number | undefined;
  /** From this age on a live request is of no use. */
  readonly liveUsefulLifeMs?: number | undefined;
  /** Above it, more is a duplicate than is expected. */
  readonly duplicateLimit?: number | undefined;
  /** Most that is released per second, whatever is spare. */
  readonly maxPerSecond: number;
}

/** The stop signals that hold, in the order of their list. */
export function replayStops(facts: ReplayFacts, limits: ReplayLimits): ReplayStop[] {
  const stops: ReplayStop[] = [];
  if (isAbove(facts.latencyMs, limits.latencyLimitMs)) stops.push('latency');
  // From its useful life on, equality included, as a deadline is over.
  const { liveOldestMs, liveUsefulLifeMs } = { ...facts, ...limits };
  if (liveOldestMs !== undefined && liveUsefulLifeMs !== undefined && liveOldestMs >= liveUsefulLifeMs)
    stops.push('live_age');
  if (isAbove(facts.duplicateRatio, limits.duplicateLimit)) stops.push('duplicates');
  if (facts.isThrottled === true) stops.push('throttled');
  return stops;
}

/** Capacity that live work leaves, per second; negative where it leaves none. undefined where either is not known. */
export function spareOf({ capacityPerSecond, livePerSecond }: ReplayFacts): number | undefined {
  return capacityPerSecond === undefined || livePerSecond === undefined
    ? undefined
    : capacityPerSecond - livePerSecond;
}

/** What may be released per second now: 0 while anything stops it or nothing is spare. */
export function replayRate(facts: ReplayFacts, limits: ReplayLimits): number {
  if (replayStops(facts, limits).length > 0) return 0;
  return Math.max(0, Math.min(limits.maxPerSecond, spareOf(facts) ?? Infinity));
}

function isAbove(value: number | undefined, limit: number | undefined): boolean {
  return value !== undefined && limit !== undefined && value > limit;
}
