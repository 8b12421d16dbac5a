/** AbortSignals of scopes, made only when asked for: they fire at the deadline or when the request is cancelled. */
import { timerMs } from './core/deadline.ts';
import { BudgetError, type RequestRecord, type Scope } from './records.ts';

interface Aborter {
  readonly controller: AbortController;
  timer: NodeJS.Timeout | undefined;
}

/** By request, then by scope: a request has few scopes, and none is kept once it is over. */
const aborters = new WeakMap<RequestRecord, Map<Scope, Aborter>>();

/** The signal of a scope. `now` is the monotonic clock. */
export function signalOf(scope: Scope, now: () => number): AbortSignal {
  const { request } = scope;
  let ofRequest = aborters.get(request);
  if (ofRequest === undefined) {
    ofRequest = new Map();
    aborters.set(request, ofRequest);
  }
  const known = ofRequest.get(scope);
  if (known !== undefined) return known.controller.signal;
  const aborter: Aborter = { controller: new AbortController(), timer: undefined };
  ofRequest.set(scope, aborter);
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
  for (const [scope, aborter] of aborters.get(request) ?? []) {
    if (scope.detached) continue;
    clearTimeout(aborter.timer);
    aborter.controller.abort(error);
  }
}

/** The scope is over: its timer is cleared, its signal will not fire any more. */
export function releaseSignal(scope: Scope): void {
  const ofRequest = aborters.get(scope.request);
  const aborter = ofRequest?.get(scope);
  if (aborter === undefined) return;
  clearTimeout(aborter.timer);
  ofRequest?.delete(scope);
}
