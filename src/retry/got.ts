/** got 14 to 16: the guard as its `calculateDelay`, after its own rules. */
import { currentScope } from '../current.ts';
import {
  askSafely,
  type ClientRetryPolicy,
  complainOnce,
  hasIdempotencyKey,
  hostOf,
  isSafeRequest,
} from './adapter.ts';

interface RetryObject {
  readonly attemptCount: number;
  readonly retryOptions: { readonly limit?: number | undefined };
  readonly error: unknown;
  readonly computedValue: number;
}

type CalculateDelay = (retry: RetryObject) => number | Promise<number>;

interface RequestOptions {
  readonly method?: string | undefined;
  readonly url?: URL | string | undefined;
  readonly headers?: object | undefined;
}

/**
 * The `calculateDelay` of `got.extend({ retry: { limit: 2, calculateDelay: guardGotDelay({ dependency: 'stock' }) } })`.
 * `own` is one of the service's. got has added `Retry-After` to the delay already. Refused, got rejects with the
 * error of the attempt.
 */
export function guardGotDelay(policy: ClientRetryPolicy = {}, own?: CalculateDelay): CalculateDelay {
  return async (retry) => {
    const delayMs = own === undefined ? retry.computedValue : await own(retry);
    if (!(delayMs > 0)) return delayMs;
    const { attemptCount, retryOptions, error } = retry;
    if (typeof attemptCount !== 'number' || typeof retryOptions?.limit !== 'number') {
      complainOnce('got', 'calculateDelay is not told attemptCount and the limit');
      return delayMs;
    }
    const request = requestOf(error);
    const ask = {
      ...policy,
      dependency: policy.dependency ?? hostOf(request.url) ?? 'unknown',
      isSafe: policy.isSafe ?? isSafeRequest(request.method, hasIdempotencyKey(request.headers)),
      error,
      attempt: attemptCount,
      maxAttempts: Math.max(attemptCount, retryOptions.limit) + 1,
      backoffMs: delayMs,
    };
    const answer = askSafely(currentScope(), ask, 'got');
    return answer?.isAllowed === false ? 0 : delayMs;
  };
}

function requestOf(error: unknown): RequestOptions {
  if (typeof error !== 'object' || error === null || !('options' in error)) return {};
  const { options } = error;
  // got's own options; every key is checked where it is used.
  return typeof options === 'object' && options !== null ? (options as RequestOptions) : {};
}
