/** The wait before the next attempt: it belongs to the request's budget, and ends with it. */
import { activeRecorder } from '../active.ts';
import { timerMs } from '../core/deadline.ts';
import { NO_DEPENDENCY } from '../core/terms.ts';
import { currentScope } from '../current.ts';
import type { Scope } from '../records.ts';
import { signalOf } from '../scope-signal.ts';
import { groundsFor, type RetryAnswer } from './guard.ts';

const now = (): number => performance.now();

/**
 * Waits so many milliseconds, or as the answer says. True when the wait is over; false when there is no use in it,
 * at once: it does not fit the time left, the time ran out or the request was cancelled. Throw the error at hand
 * then. The wait shows as phase `backoff` of the request. With an answer that is not enforced it is waited out in
 * any case, since nothing is refused there; a repeat that is given up pays its token back.
 * Throws RangeError for what is no number >= 0.
 */
export async function backoff(wait: number | RetryAnswer): Promise<boolean> {
  if (typeof wait === 'number') return waitFor(wait);
  const grounds = groundsFor(wait);
  if (grounds === undefined) return waitFor(wait.backoffMs);
  const { recorder, scope, pending } = grounds;
  const isOver = await sleep(wait.backoffMs, wait.isEnforced ? scope : undefined);
  const endedAt = recorder.clock.now();
  if (isOver && scope !== undefined) recorder.retries.endWait(pending, scope.request, endedAt);
  if (!isOver) recorder.retries.giveUp(pending, scope, endedAt);
  return isOver;
}

async function waitFor(ms: number): Promise<boolean> {
  if (!(ms >= 0)) throw new RangeError(`backoff: ms must be a number >= 0, got ${String(ms)}`);
  const scope = currentScope();
  const recorder = activeRecorder();
  if (scope === undefined || recorder === undefined || scope.request.endedAt !== undefined) {
    return sleep(ms, scope);
  }
  const isOpen = !scope.detached;
  const startedAt = recorder.clock.now();
  const target = { dependency: NO_DEPENDENCY, workKind: 'other' } as const;
  const held = isOpen ? recorder.retries.beginWait(scope, target, startedAt) : undefined;
  const isOver = await sleep(ms, scope);
  recorder.retries.endWait({ wait: held, dueAt: Infinity }, scope.request, recorder.clock.now());
  return isOver;
}

/** False as soon as the scope ends, and at once where the wait does not fit it. Leaves no timer and no listener. */
export function sleep(ms: number, scope: Scope | undefined): Promise<boolean> {
  if (scope !== undefined && ms >= scope.deadlineAt - now()) return Promise.resolve(false);
  const signal = scope === undefined ? undefined : signalOf(scope, now);
  if (signal?.aborted === true) return Promise.resolve(false);
  return new Promise((resolve) => {
    const finish = (isOver: boolean): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      resolve(isOver);
    };
    const onAbort = (): void => finish(false);
    const timer = setTimeout(finish, timerMs(ms), true);
    signal?.addEventListener('abort', onAbort);
  });
}
