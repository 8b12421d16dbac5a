/** p-retry 7 to 9: the guard as its `shouldRetry`, after the service's own. */
import { currentScope } from '../current.ts';
import { askSafely, complainOnce } from './adapter.ts';
import { sleep } from './backoff.ts';
import type { RetryPolicy } from './guard.ts';

interface Context {
  readonly error: Error;
  readonly attemptNumber: number;
  readonly retriesLeft: number;
  readonly retriesConsumed: number;
  readonly retryDelay: number;
}

interface Options {
  readonly shouldRetry?: ((context: Context) => boolean | Promise<boolean>) | undefined;
}

/**
 * The options of `pRetry` with the guard: `pRetry(work, guardPRetry({ dependency: 'stock' }, { retries: 2 }))`.
 * Refused, `pRetry` rejects with the error of the attempt. p-retry knows no `Retry-After`: where refusals hold, the
 * part of it that its own delay does not cover is waited here.
 */
export function guardPRetry<O extends object>(
  policy: RetryPolicy,
  options?: O & Options,
): O & { shouldRetry(context: Context): Promise<boolean> } {
  const own = options?.shouldRetry;
  const shouldRetry = async (context: Context): Promise<boolean> => {
    if (own !== undefined && !(await own(context))) return false;
    if (!isKnown(context)) return true;
    const { error, attemptNumber, retriesLeft, retryDelay } = context;
    const ask = {
      ...policy,
      error,
      attempt: attemptNumber,
      maxAttempts: attemptNumber + retriesLeft,
      backoffMs: retryDelay,
    };
    const answer = askSafely(currentScope(), ask, 'service');
    if (answer?.isAllowed === false) return false;
    const restMs = (answer?.backoffMs ?? 0) - retryDelay;
    return answer?.isEnforced === true && restMs > 0 ? sleep(restMs, currentScope()) : true;
  };
  // An object with all of O and one more property is O and that property.
  return { ...options, shouldRetry } as O & { shouldRetry: typeof shouldRetry };
}

function isKnown(context: Partial<Context> | undefined): boolean {
  const { attemptNumber, retriesLeft, retryDelay } = context ?? {};
  if (
    typeof attemptNumber === 'number' &&
    typeof retriesLeft === 'number' &&
    typeof retryDelay === 'number'
  ) {
    return true;
  }
  complainOnce('p-retry', 'its context has no attemptNumber, retriesLeft and retryDelay');
  return false;
}
