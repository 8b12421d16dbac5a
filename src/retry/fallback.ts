/** What is done in place of a call that failed: another piece of work, with calls of its own. */
import type { FallbackResult, SharesDependency } from '../core/terms.ts';
import { FALLBACK_RESULTS, SHARES_DEPENDENCY } from '../core/terms.ts';
import { currentScope } from '../current.ts';
import { runMarked } from '../marked-scope.ts';
import type { FallbackMark } from '../records.ts';
import { ATTR, EVENT } from '../telemetry/names.ts';
import { whenSettled } from '../when-settled.ts';
import { withRecorder } from './adapter.ts';
import { readFailure } from './failure.ts';
import { findTarget } from './target.ts';

export interface FallbackPolicy {
  /** Name of the dependency that it stands in for, as configured, or its host. */
  readonly dependency: string;
  /** What it is, on spans: `cache`, `second_provider`. */
  readonly name: string;
}

/**
 * The fallback, counted: for opossum's `breaker.fallback(…)`, cockatiel's `fallback(handleAll, …)` and catch blocks.
 * Arguments, result and errors are those of `fallback`. Its calls count under the dependencies that they go to; one
 * that goes to the dependency which has just failed is told as `shares_dependency`.
 */
export function watchFallback<A extends unknown[], R>(
  policy: FallbackPolicy,
  fallback: (...args: A) => R,
): (...args: A) => R {
  return function (this: unknown, ...args: A): R {
    const begun = withRecorder((recorder) => {
      const { dependency } = findTarget(recorder, policy.dependency).target;
      for (const result of FALLBACK_RESULTS) {
        for (const shares of SHARES_DEPENDENCY) recorder.families.fallbacks.cell(dependency, result, shares);
      }
      const mark: FallbackMark = { name: policy.name, dependency, sharesDependency: false };
      return { mark, startedAt: recorder.clock.now() };
    });
    if (begun === undefined) return fallback.apply(this, args);
    const { mark, startedAt } = begun;
    return whenSettled(
      () => runMarked({ fallback: mark }, () => fallback.apply(this, args)),
      (failed, error) => end(mark, startedAt, failed ? resultOf(error) : 'answered'),
    );
  };
}

function resultOf(error: unknown): FallbackResult {
  try {
    return readFailure(error).errorClass === 'throttled' ? 'refused' : 'failed';
  } catch {
    return 'failed';
  }
}

function end(mark: FallbackMark, startedAt: number, result: FallbackResult): void {
  withRecorder(({ families, clock }) => {
    const scope = currentScope();
    // Calls outside of a request know of no fallback.
    const shares: SharesDependency = scope === undefined ? 'unknown' : mark.sharesDependency ? 'yes' : 'no';
    families.fallbacks.cell(mark.dependency, result, shares).add(1);
    families.fallbackSeconds.cell(mark.dependency).add(Math.max(0, clock.now() - startedAt) / 1_000);
    scope?.request.span?.addEvent(EVENT.fallback, {
      [ATTR.fallbackName]: mark.name,
      [ATTR.dependency]: mark.dependency,
      [ATTR.fallbackResult]: result,
      ...(scope === undefined ? {} : { [ATTR.fallbackShares]: mark.sharesDependency }),
    });
  });
}
