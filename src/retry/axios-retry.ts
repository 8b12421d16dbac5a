/** axios-retry 4: the guard as its `retryCondition`, after the service's or its own. */
import { currentScope } from '../current.ts';
import {
  askSafely,
  type ClientRetryPolicy,
  complainOnce,
  hasIdempotencyKey,
  hostOf,
  isSafeRequest,
} from './adapter.ts';

interface RequestConfig {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly baseURL?: string | undefined;
  readonly headers?: object | undefined;
}

interface Failed {
  readonly config?: RequestConfig | undefined;
}

type Condition<E> = (error: E) => boolean | Promise<boolean>;
type Delay<E> = (retryCount: number, error: E) => number;

interface Options<E> {
  readonly retryCondition?: Condition<E> | undefined;
  readonly retryDelay?: Delay<E> | undefined;
}

interface Counters {
  readonly retryCount: number;
  readonly retries: number;
}

/**
 * The options for `axiosRetry(client, guardAxiosRetry(policy, { retries: 2, retryCondition: isRetryableError }))`.
 * `retryCondition` has to be given, for instance `axiosRetry.isNetworkOrIdempotentRequestError`, its default: one
 * of ours takes its place. Its delay is drawn once, before it is asked, and then used. A `retryCondition` of a
 * single request goes past the guard. Refused, axios rejects with the error of the attempt.
 */
export function guardAxiosRetry<E extends Failed, O extends Options<E>>(
  policy: ClientRetryPolicy,
  options: O & { readonly retryCondition: Condition<E> },
): O & { retryCondition(error: E): Promise<boolean> } {
  const drawn = new WeakMap<object, number>();
  const { retryDelay } = options;
  const retryCondition = async (error: E): Promise<boolean> => {
    if (!(await options.retryCondition(error))) return false;
    const counters = countersOf(error.config);
    if (counters === undefined) return true;
    const attempt = counters.retryCount + 1;
    // One that throws does so again where axios-retry calls it.
    const delayMs = retryDelay === undefined ? undefined : attemptTo(() => retryDelay(attempt, error));
    if (delayMs !== undefined) drawn.set(error, delayMs);
    const { method, url, baseURL, headers } = error.config ?? {};
    const answer = askSafely(currentScope(), {
      ...policy,
      dependency: policy.dependency ?? hostOf(url, baseURL) ?? 'unknown',
      isSafe: policy.isSafe ?? isSafeRequest(method, hasIdempotencyKey(headers)),
      error,
      attempt,
      maxAttempts: counters.retries + 1,
      // Its own default waits as long as the peer asked for, and the guard reads that itself.
      backoffMs: delayMs ?? 0,
    });
    return answer?.isAllowed !== false;
  };
  const guarded = {
    ...options,
    retryCondition,
    ...(retryDelay === undefined
      ? {}
      : { retryDelay: (count: number, error: E) => drawn.get(error) ?? retryDelay(count, error) }),
  };
  return guarded;
}

function attemptTo(draw: () => number): number | undefined {
  try {
    return draw();
  } catch {
    return undefined;
  }
}

/** The state that axios-retry keeps in the configuration of the request. */
function countersOf(config: object | undefined): Counters | undefined {
  const state: unknown = config === undefined ? undefined : Reflect.get(config, 'axios-retry');
  if (typeof state === 'object' && state !== null && 'retryCount' in state && 'retries' in state) {
    const { retryCount, retries } = state;
    if (typeof retryCount === 'number' && typeof retries === 'number') return { retryCount, retries };
  }
  complainOnce('axios-retry', 'its state in the configuration has no retryCount and retries');
  return undefined;
}
