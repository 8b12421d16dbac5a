/** undici 6 to 8, RetryAgent and the retry interceptor: the guard as their `retry`, with the rules of their own. */
import { currentScope } from '../current.ts';
import type { Scope } from '../records.ts';
import {
  askSafely,
  type ClientRetryPolicy,
  complainOnce,
  hasIdempotencyKey,
  hostOf,
  isSafeRequest,
} from './adapter.ts';
import { readFailure } from './failure.ts';

interface RetryOptions {
  readonly maxRetries?: number | undefined;
  readonly minTimeout?: number | undefined;
  readonly maxTimeout?: number | undefined;
  readonly timeoutFactor?: number | undefined;
  readonly methods?: readonly string[] | undefined;
  readonly statusCodes?: readonly number[] | undefined;
  readonly errorCodes?: readonly string[] | undefined;
  readonly retryAfter?: boolean | undefined;
}

const SCOPE = Symbol('otel-time-budget.scope');

interface Dispatched {
  readonly method?: string | undefined;
  readonly origin?: unknown;
  readonly headers?: unknown;
  readonly [SCOPE]?: Scope | undefined;
}

interface Context {
  readonly state: { readonly counter: number };
  readonly opts: Dispatched & { readonly retryOptions?: RetryOptions | undefined };
}

type Callback = (error?: Error | null) => void;

/**
 * Options for `new RetryAgent(agent, guardUndici(policy, options))` and `interceptors.retry(...)`. The rules are
 * undici's (methods, status codes, error codes, `Retry-After`, exponential delay up to `maxTimeout`). Its callbacks
 * run in the context of the connection, which another request may have opened: `withRequest` tells the one that
 * asked. Without it only the budget is asked, not the time. Refused, the caller gets the error of the attempt.
 */
export function guardUndici<O extends RetryOptions>(
  policy: ClientRetryPolicy,
  options?: O,
): O & { retry(error: Error, context: Context, callback: Callback): NodeJS.Timeout | undefined } {
  const retry = (error: Error, context: Context, callback: Callback): NodeJS.Timeout | undefined => {
    const delayMs = delayOf(error, context);
    if (delayMs === undefined || !isAllowed(policy, error, context, delayMs)) {
      callback(error);
      return undefined;
    }
    // undici 8 clears it when the request is aborted.
    return setTimeout(callback, delayMs, null);
  };
  // An object with all of O and one more property is O and that property.
  return { ...options, retry } as O & { retry: typeof retry };
}

type Dispatch<O, H> = (options: O, handler: H) => boolean;

/** An interceptor for `agent.compose(retryInterceptor, withRequest)`, outermost and therefore last. */
export function withRequest<O extends object, H>(dispatch: Dispatch<O, H>): Dispatch<O, H> {
  return (options, handler) => {
    const scope = currentScope();
    return dispatch(scope === undefined ? options : { ...options, [SCOPE]: scope }, handler);
  };
}

function isAllowed(
  policy: ClientRetryPolicy,
  error: Error,
  { state, opts }: Context,
  delayMs: number,
): boolean {
  const ask = {
    ...policy,
    dependency: policy.dependency ?? hostOf(opts.origin) ?? 'unknown',
    isSafe: policy.isSafe ?? isSafeRequest(opts.method, hasIdempotencyKey(opts.headers)),
    error,
    attempt: state.counter,
    maxAttempts: Math.max(state.counter, opts.retryOptions?.maxRetries ?? 5) + 1,
    backoffMs: delayMs,
    // Where the agent is told not to look at it, or cuts it off, its delay is what will be waited.
    retryAfterMs: delayMs,
  };
  const answer = askSafely(opts[SCOPE], ask, 'undici');
  return answer?.isAllowed !== false;
}

/** undici's default policy. undefined: no repeat. */
function delayOf(error: Error, context: Context): number | undefined {
  const counter = context?.state?.counter;
  if (typeof counter !== 'number') {
    complainOnce('undici', 'its retry is not told the number of attempts', 'nothing is repeated');
    return undefined;
  }
  const options = context.opts.retryOptions ?? {};
  const { maxRetries = 5, minTimeout = 500, maxTimeout = 30_000, timeoutFactor = 2 } = options;
  const { methods = METHODS, statusCodes = STATUS_CODES, errorCodes = ERROR_CODES } = options;
  // Errors of Node and undici have a code; every type is checked where it is used.
  const { code } = error as { readonly code?: unknown };
  const { status, retryAfterMs } = readFailure(error);
  if (code !== undefined && code !== 'UND_ERR_REQ_RETRY' && !errorCodes.some((each) => each === code)) {
    return undefined;
  }
  if (!methods.includes(context.opts.method ?? 'GET')) return undefined;
  if (status !== undefined && !statusCodes.includes(status)) return undefined;
  if (counter > maxRetries) return undefined;
  const asked = options.retryAfter === false ? undefined : retryAfterMs;
  return Math.min(asked ?? minTimeout * timeoutFactor ** (counter - 1), maxTimeout);
}

// The defaults of undici 8.13, for versions that do not hand theirs over.
const METHODS = ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE', 'TRACE', 'QUERY'];
const STATUS_CODES = [500, 502, 503, 504, 429];
const ERROR_CODES = [
  'ECONNRESET',
  'ECONNREFUSED',
  'ENOTFOUND',
  'ENETDOWN',
  'ENETUNREACH',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'EPIPE',
  'UND_ERR_SOCKET',
];
