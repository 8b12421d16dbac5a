/** Why a request ran out of time: one cause, decided when it ends, from its ledger and from what is usual. */
import { phaseIndex } from './call.ts';
import type { Ledger, LedgerTerm } from './ledger.ts';
import type { ExpiryCause } from './terms.ts';
import type { Typical } from './usual.ts';

/**
 * A call counts as slower than usual when it is above its dependency's usual p95 by a fifth and by 10 ms:
 * one normal call in twenty is above the p95 itself, and must not be blamed.
 */
const SLOWER_FACTOR = 1.2;
const SLOWER_MS = 10;

export interface Evidence {
  readonly ledger: Ledger;
  readonly effectiveMs: number;
  readonly overrunMs: number;
  readonly spentBeforeFirstCallMs: number | undefined;
  readonly loopBlockedMs: number;
  readonly operationTypical: Typical | undefined;
  readonly dependencyTypical: (dependency: string) => Typical | undefined;
}

const POOL_WAIT = phaseIndex('pool_wait');
const BACKOFF = phaseIndex('backoff');

/** The first rule that holds (design section 3a, in its order). */
export function decideCause(evidence: Evidence): ExpiryCause {
  const { ledger, effectiveMs } = evidence;
  const slowestTerm = largest(ledger.terms, totalMs);
  const slowestTermMs = slowestTerm === undefined ? 0 : totalMs(slowestTerm);
  const anySlower = ledger.terms.some((term) => isSlower(term, evidence));

  if (blockedLoop(evidence, slowestTermMs, anySlower)) return 'event_loop';

  const median = evidence.operationTypical?.medianMs;
  if (median !== undefined && effectiveMs < median && !couldHaveFitted(evidence, median - effectiveMs)) {
    return 'caller_budget_too_small';
  }

  const own = evidence.spentBeforeFirstCallMs ?? ledger.queueMs + ledger.localMs;
  if (own > effectiveMs / 2) return 'spent_before_call';

  const poolWaitMs = sumOf(ledger.terms, POOL_WAIT);
  const backoffMs = sumOf(ledger.terms, BACKOFF);
  const rest = Math.max(ledger.queueMs, ledger.localMs, ledger.eventLoopMs, largestWorkMs(ledger.terms));
  if (poolWaitMs > rest && poolWaitMs >= backoffMs) return 'pool_saturated';
  if (backoffMs > rest) return 'retries';

  const inProgress = ledger.expiry?.call?.dependency;
  const suspects = ledger.terms.filter((term) => term.dependency === inProgress || term === slowestTerm);
  if (suspects.some((term) => isSlower(term, evidence))) return 'slow_dependency';
  return 'undetermined';
}

/**
 * The loop was blocked for the greater part of what this process spent itself. That alone would blame two
 * busy milliseconds in a request that waited half a second for its database, so the block must also be the
 * largest term, or the difference between late and in time while no dependency was slower than usual.
 */
function blockedLoop(evidence: Evidence, slowestTermMs: number, anySlower: boolean): boolean {
  const { ledger, loopBlockedMs, effectiveMs, overrunMs } = evidence;
  const spentHere = ledger.queueMs + ledger.localMs + ledger.responseMs + ledger.eventLoopMs;
  if (loopBlockedMs <= spentHere / 2) return false;
  // Nor is it the block where the budget lacks more of the usual duration than that. The overrun does not tell:
  // a request that its caller cut off at the deadline has hardly any.
  const median = evidence.operationTypical?.medianMs;
  if (median !== undefined && loopBlockedMs <= median - effectiveMs) return false;
  return (
    loopBlockedMs >= slowestTermMs ||
    (loopBlockedMs > overrunMs && loopBlockedMs > effectiveMs / 4 && !anySlower)
  );
}

/**
 * Had a slow dependency been as fast as usual, the budget would have done: it was slower by more than what the
 * budget lacks of the usual duration. A smaller slowness made no difference, and is no excuse for the caller.
 */
function couldHaveFitted(evidence: Evidence, lackedMs: number): boolean {
  return evidence.ledger.terms.some((term) => {
    const usualMs = evidence.dependencyTypical(term.dependency)?.medianMs ?? Infinity;
    return isSlower(term, evidence) && term.slowestMs - usualMs > lackedMs;
  });
}

function isSlower(term: LedgerTerm, evidence: Evidence): boolean {
  const typical = evidence.dependencyTypical(term.dependency);
  if (typical === undefined) return false;
  const ms = term.slowestMs;
  return ms > typical.p95Ms * SLOWER_FACTOR && ms > typical.p95Ms + SLOWER_MS;
}

function totalMs(term: LedgerTerm): number {
  return term.phaseMs.reduce((sum, ms) => sum + ms, 0);
}

/** The largest stretch in which a dependency really worked or was reached, over all dependencies. */
function largestWorkMs(terms: readonly LedgerTerm[]): number {
  let most = 0;
  for (const term of terms) {
    most = Math.max(most, totalMs(term) - (term.phaseMs[POOL_WAIT] ?? 0) - (term.phaseMs[BACKOFF] ?? 0));
  }
  return most;
}

function sumOf(terms: readonly LedgerTerm[], phase: number): number {
  return terms.reduce((sum, term) => sum + (term.phaseMs[phase] ?? 0), 0);
}

function largest<T>(items: readonly T[], measure: (item: T) => number): T | undefined {
  let best: T | undefined;
  for (const item of items) if (best === undefined || measure(item) > measure(best)) best = item;
  return best;
}
