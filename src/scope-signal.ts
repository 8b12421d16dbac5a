/** AbortSignals of scopes, made only when asked for: they fire at the deadline or when the request is cancelled. */
import { timerMs } from './core/deadline.ts';
import { type Aborter, BudgetError, type RequestRecord, type Scope } from './records.ts';

/** The signal of a scope. `now` is the monotonic clock. */
export function signalOf(scope: Scope, now: () => number): AbortSignal {
  const { request } = scope;
  request.aborters ??= new Map();
  const known = request.aborters.get(scope);
  if (known !== undefined) return known.controller.signal;
  const aborter: Aborter = { controller: new AbortController(), timer: undefined };
  request.aborters.set(scope, aborter);
  if (request.cancelSource !== undefined && !scope.detached) {
    aborter.controller.abort(new BudgetError(request.cancelSource));
  } else arm(aborter, scope, now);
  return aborter.controller.signal;
}

function arm(aborter: Aborter, scope: Scope, now: () => number): void {
  if (scope.deadlineAt === Infinity) return;
  const leftMs = scope.deadlineAt - now();
  if (leftMs <= 0) {
    aborter.controller.abort(new BudgetError('deadline_exceeded'));
    return;
  }
  // A timer holds at most 24.8 days, and may fire a little early: the clock decides, so it looks again.
  aborter.timer = setTimeout(() => arm(aborter, scope, now), timerMs(leftMs));
  aborter.timer.unref();
}

/** The request was cancelled: every signal fires, except in work that was marked to outlive it. */
export function abortSignals(request: RequestRecord, error: BudgetError): void {
  for (const [scope, aborter] of request.aborters ?? []) {
    if (scope.detached) continue;
    clearTimeout(aborter.timer);
    aborter.controller.abort(error);
  }
}

/** The scope is over: its timer is cleared, its signal will not fire any more. */
export function releaseSignal(scope: Scope): void {
  const { aborters } = scope.request;
  const aborter = aborters?.get(scope);
  if (aborter === undefined) return;
  clearTimeout(aborter.timer);
  aborters?.delete(scope);
}
