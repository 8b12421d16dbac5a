/** What one call may use of the time that is left, and when it is better not made. */
import type { BindingTerm, RefusalReason } from './terms.ts';

export interface AllowanceTerms {
  /** Time left of the request, read just before the call; negative when over, undefined without a budget. */
  readonly remainingMs?: number | undefined;
  /** Kept back for the way back, the reply and the cleanup; taken off `remainingMs` only. */
  readonly reserveMs: number;
  /** Most that this dependency is waited for. */
  readonly dependencyCapMs?: number | undefined;
  /** Timeout derived from what the dependency usually takes. */
  readonly latencyMs?: number | undefined;
  /** The call's own timeout option; left out where the library takes 0 for none. */
  readonly ownTimeoutMs?: number | undefined;
  /** Least with which this call is useful. It refuses and never grants. */
  readonly minimumMs?: number | undefined;
}

export interface Allowance {
  /**
   * The smallest term, not rounded; undefined where there is no limit. It is there for a refused call too,
   * <= 0 or below the minimum, because `observe` makes the call all the same.
   */
  readonly allowanceMs: number | undefined;
  readonly bindingTerm: BindingTerm | undefined;
  /** undefined: make the call. */
  readonly refusal: RefusalReason | undefined;
}

const UNLIMITED: Allowance = Object.freeze({
  allowanceMs: undefined,
  bindingTerm: undefined,
  refusal: undefined,
});

/**
 * The smallest of remaining - reserve, dependency cap, latency-derived and own timeout. A term that is
 * undefined, NaN or Infinity is absent, not zero; of equal terms the first in BINDING_TERMS binds.
 * An allowance <= 0 is refused (equality refuses), one below the minimum too (equality does not).
 * Asked before a pool slot, socket or queue place is taken, and again after every wait.
 */
export function decideAllowance(terms: AllowanceTerms): Allowance {
  let allowanceMs = Infinity;
  let bindingTerm: BindingTerm | undefined;
  if (terms.remainingMs !== undefined) {
    const usableMs = terms.remainingMs - terms.reserveMs;
    if (usableMs < allowanceMs) {
      allowanceMs = usableMs;
      bindingTerm = 'remaining_minus_reserve';
    }
  }
  // Comparing with NaN is false, so a term that is no number never binds.
  if (terms.dependencyCapMs !== undefined && terms.dependencyCapMs < allowanceMs) {
    allowanceMs = terms.dependencyCapMs;
    bindingTerm = 'dependency_cap';
  }
  if (terms.latencyMs !== undefined && terms.latencyMs < allowanceMs) {
    allowanceMs = terms.latencyMs;
    bindingTerm = 'latency_derived';
  }
  if (terms.ownTimeoutMs !== undefined && terms.ownTimeoutMs < allowanceMs) {
    allowanceMs = terms.ownTimeoutMs;
    bindingTerm = 'own_timeout';
  }
  if (bindingTerm === undefined) return UNLIMITED;
  return { allowanceMs, bindingTerm, refusal: refusalOf(allowanceMs, terms.minimumMs) };
}

function refusalOf(allowanceMs: number, minimumMs: number | undefined): RefusalReason | undefined {
  if (allowanceMs <= 0) return 'deadline_exceeded_before_dispatch';
  if (minimumMs !== undefined && allowanceMs < minimumMs) return 'below_useful_minimum';
  return undefined;
}

/**
 * How much more than was handed down may arrive before it counts as a reset. Ours is rounded down and never
 * grows; grpc-js writes its own deadline rounded up to whole milliseconds (above 27 hours to whole seconds,
 * which is not allowed for).
 */
export const RESET_TOLERANCE_MS = 1;

/**
 * True where a hop gained time: a child received more than its parent handed down, or a call was granted
 * more than its request had left.
 */
export function isReset(receivedMs: number, handedDownMs: number): boolean {
  return receivedMs - handedDownMs > RESET_TOLERANCE_MS;
}
