/** The entry policy: what a service makes of the budget it was given, or of its absence. */
import type { Received } from './received.ts';
import type { BudgetSource, HeaderFault, Verdict } from './terms.ts';

/** What the whole service says of its entry. */
export interface EntryTerms {
  readonly mode: 'observe' | 'propagate' | 'enforce';
  /** `edge` is the outermost trusted component, where a caller's wish becomes a deadline. */
  readonly role: 'edge' | 'internal';
}

/** What holds for the requests of one operation. */
export interface EntryLimits {
  /** Budget of a request that brings none; <= ceilingMs. */
  readonly defaultMs?: number | undefined;
  /** Most that is accepted. On its own it gives no budget to a request that brings none. */
  readonly ceilingMs?: number | undefined;
  /** Least with which work is useful; <= ceilingMs. */
  readonly floorMs?: number | undefined;
}

export interface EntryDecision {
  /** What was sent, before the policy. */
  readonly receivedMs: number | undefined;
  /** What the request may take from its arrival on; 0 is expired; undefined: no limit, so nothing expires. */
  readonly effectiveMs: number | undefined;
  readonly verdict: Verdict;
  readonly source: BudgetSource | undefined;
}

const ABSENT: EntryDecision = Object.freeze({
  receivedMs: undefined,
  effectiveMs: undefined,
  verdict: 'absent',
  source: undefined,
});

/**
 * `trusted`: the sender is inside the trust boundary.
 *
 * The default and the ceiling hold in every mode, so that `observe` shows what `enforce` would do; both only
 * shorten. The one thing that lengthens, raising to the floor, is done in `enforce` alone. In `enforce` the
 * caller refuses the request for `refused_below_floor`, and for an effective budget of 0 as expired.
 */
export function decideEntry(
  received: Pick<Received, 'remainingMs' | 'source' | 'findings'>,
  terms: EntryTerms,
  limits: EntryLimits,
  trusted: boolean,
): EntryDecision {
  const receivedMs = received.remainingMs;
  if (receivedMs === undefined) return withoutValue(received, limits);
  const { source } = received;
  const { ceilingMs, floorMs } = limits;
  if (floorMs !== undefined && receivedMs < floorMs) {
    return belowFloor(receivedMs, source, terms, limits, trusted);
  }
  if (ceilingMs !== undefined && receivedMs > ceilingMs) {
    return { receivedMs, effectiveMs: ceilingMs, verdict: 'clamped_high', source };
  }
  if (ceilingMs === undefined && !trusted) return uncheckedWish(receivedMs, source, limits);
  return { receivedMs, effectiveMs: receivedMs, verdict: 'accepted', source };
}

function withoutValue(
  received: Pick<Received, 'findings'>,
  { defaultMs, ceilingMs = Infinity }: EntryLimits,
): EntryDecision {
  const unusable = unusableVerdict(received);
  if (defaultMs === undefined) return unusable === undefined ? ABSENT : { ...ABSENT, verdict: unusable };
  return {
    receivedMs: undefined,
    effectiveMs: Math.min(defaultMs, ceilingMs),
    verdict: unusable ?? 'defaulted',
    source: 'default',
  };
}

const INVALID: ReadonlySet<HeaderFault> = new Set(['malformed', 'too_long', 'out_of_range']);

function unusableVerdict({ findings }: Pick<Received, 'findings'>): Verdict | undefined {
  if (findings.some(({ fault }) => INVALID.has(fault))) return 'invalid';
  return findings.some(({ fault }) => fault === 'untrusted') ? 'untrusted' : undefined;
}

/**
 * Raised only where a client from outside meets a declared edge: anywhere else it would give back time that
 * the caller no longer has. Nor is 0 raised, because it is not a small wish but an expired one.
 */
function belowFloor(
  receivedMs: number,
  source: BudgetSource | undefined,
  { mode, role }: EntryTerms,
  { floorMs = 0, ceilingMs = Infinity }: EntryLimits,
  trusted: boolean,
): EntryDecision {
  if (role !== 'edge' || trusted || receivedMs <= 0) {
    return { receivedMs, effectiveMs: receivedMs, verdict: 'refused_below_floor', source };
  }
  const effectiveMs = mode === 'enforce' ? Math.min(floorMs, ceilingMs) : receivedMs;
  return { receivedMs, effectiveMs, verdict: 'clamped_low', source };
}

/**
 * An untrusted sender's value with no ceiling to check it may only shorten: the default where there is one.
 * Where there is none the alternative is no limit at all, so it holds as it is.
 */
function uncheckedWish(
  receivedMs: number,
  source: BudgetSource | undefined,
  { defaultMs }: EntryLimits,
): EntryDecision {
  if (defaultMs === undefined) return { receivedMs, effectiveMs: receivedMs, verdict: 'untrusted', source };
  if (receivedMs <= defaultMs) return { receivedMs, effectiveMs: receivedMs, verdict: 'accepted', source };
  return { receivedMs, effectiveMs: defaultMs, verdict: 'untrusted', source };
}
