/**
 * Repeats that an empty budget has refused and the service makes later, in its background. They are load that is
 * still to come: a queue of them that the budget does not hear of would keep the load and hide it.
 */
import type { NamedTarget } from '../core/call.ts';
import { currentScope } from '../current.ts';
import type { LiveRetryBudget } from '../live-retry-budget.ts';
import type { Recorder } from '../recorder.ts';

/** One of them. It counts as owed, in `retry_budget.owed`, until it is settled. */
export interface OwedRepeat {
  readonly dependency: string;
  /** Ordinal of the attempt that is owed; 2 = the first repeat. */
  readonly attempt: number;
  /** Of the attempt that was made. */
  readonly error: unknown;
  /**
   * Pays for an attempt of it, in the job that makes the call next; false while the budget is empty. Each further
   * attempt is paid for again.
   */
  tryPay(): boolean;
  /** It was made, or will not be. Counts once. */
  settle(): void;
}

interface Refused {
  readonly target: NamedTarget;
  readonly budget: LiveRetryBudget;
  readonly ask: {
    readonly dependency: string;
    readonly error: unknown;
    readonly background?: ((repeat: OwedRepeat) => void) | undefined;
  };
  readonly cost: number | undefined;
  readonly attempt: number;
}

/** The budget was empty: does what it declares, and counts that. A background that throws has not taken over. */
export function handOver(recorder: Recorder, refused: Refused): void {
  const { budget, ask } = refused;
  if (budget.onEmpty !== 'managed_background') {
    budget.dispose(budget.onEmpty);
    return;
  }
  if (ask.background !== undefined) {
    const repeat = owe(recorder, refused);
    try {
      const taken: unknown = ask.background(repeat);
      // An async one that fails later will not make it, and its rejection would be nobody's.
      if (taken instanceof Promise) taken.catch(() => repeat.settle());
      budget.dispose('managed_background');
      return;
    } catch {
      repeat.settle();
    }
  }
  budget.dispose('original_error');
}

function owe(recorder: Recorder, { target, budget, ask, cost, attempt }: Refused): OwedRepeat {
  let isSettled = false;
  budget.owe(1);
  return {
    dependency: ask.dependency,
    attempt,
    error: ask.error,
    tryPay() {
      const now = recorder.clock.now();
      if (isSettled || !budget.tryWithdraw(now, cost)) return false;
      recorder.retries.expect(currentScope(), target, cost ?? budget.attemptCost, 0, now, {
        owner: 'service',
        attempt,
        permitted: undefined,
        kind: 'resend',
      });
      return true;
    },
    settle() {
      if (isSettled) return;
      isSettled = true;
      budget.owe(-1);
    },
  };
}
