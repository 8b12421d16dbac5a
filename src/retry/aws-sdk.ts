/**
 * AWS SDK v3: the retry quota that each client keeps, and of which it says nothing: refused, the caller gets the error
 * of the attempt. What the client's strategy is asked and answers is followed; nothing of it is changed.
 */
import { diag } from '@opentelemetry/api';
import { createRetryBudget, type RetryBudgetOptions } from '../core/create-retry-budget.ts';
import { checkRange, MAX_COST } from '../core/retry-budget.ts';
import { AWS_QUOTA_2026 } from '../core/retry-budget-quota.ts';
import type { RefusalReason } from '../core/terms.ts';
import { guarded } from '../guarded.ts';
import { LiveRetryBudget } from '../live-retry-budget.ts';
import { complainOnce, withRecorder } from './adapter.ts';
import { addBudget, findBudget } from './budgets.ts';
import { inCall } from './in-call.ts';

interface Client {
  readonly config: { retryStrategy(): Promise<unknown>; maxAttempts(): Promise<number> };
}

export interface AwsRetryOptions {
  /** Of what the quota is replayed; `AWS_QUOTA` for SDKs that charge 10. `AWS_QUOTA_2026` by default. */
  readonly quota?: {
    readonly capacity: number;
    readonly attemptCost: number;
    readonly throttledCost: number;
    readonly successAmount: number;
  };
}

const now = (): number => performance.now();

/**
 * `const sqs = watchAwsRetries('sqs', new SQSClient())`; gives back the client. Its quota is told as a retry budget of
 * this name, which nothing else feeds or asks: the balance as the strategy says it (`retry_budget.balance_info` says
 * `read`), and where it does not, replayed from outcomes (`derived`). Every client has a quota of its own, so each
 * needs a name of its own. To be called before the client is used: what it did before is not known. Throws RangeError
 * that names a number of `quota` out of its bounds.
 */
export function watchAwsRetries<C extends Client>(name: string, client: C, options: AwsRetryOptions = {}): C {
  const quota = options.quota ?? AWS_QUOTA_2026;
  // Made once for its checks: what is wrong is to be known at the start.
  inCall('watchAwsRetries: quota', () => {
    createRetryBudget(modelOf(quota));
    checkRange('throttledCost', quota.throttledCost, 0.000001, MAX_COST);
  });
  const { retryStrategy, maxAttempts } = client?.config ?? {};
  if (typeof retryStrategy !== 'function' || typeof maxAttempts !== 'function') {
    complainOnce('the AWS SDK', 'a client has no retryStrategy and maxAttempts', 'its quota is not seen');
    return client;
  }
  // What its configuration cannot give, the client will say itself with its first request.
  follow(name, client, quota).catch(() => {});
  return client;
}

interface Token {
  getRetryCount(): number;
  getRetryCost?(): number | undefined;
}

interface ErrorInfo {
  readonly errorType?: string | undefined;
}

type Quota = NonNullable<AwsRetryOptions['quota']>;
type Refresh = (token: Token, info?: ErrorInfo) => unknown;
type RecordSuccess = (token: Token) => unknown;

async function follow(name: string, { config }: Client, quota: Quota): Promise<void> {
  const keeper = keeperOf(await config.retryStrategy());
  const mostAttempts = await config.maxAttempts();
  const refresh: unknown = keeper && Reflect.get(keeper, 'refreshRetryTokenForRetry');
  const recordSuccess: unknown = keeper && Reflect.get(keeper, 'recordSuccess');
  if (keeper === undefined || typeof refresh !== 'function' || typeof recordSuccess !== 'function') {
    complainOnce('the AWS SDK', 'a retry strategy takes no tokens', 'its quota is not seen');
    return;
  }
  const budget = budgetOf(name, keeper, quota);
  if (budget === undefined) return;

  const followedRefresh: Refresh = (token, info) => {
    const result = refresh.call(keeper, token, info);
    // What a strategy of others lacks must not reach the SDK. The budget counts before the start of the package as well.
    guarded(() => {
      // Strategies of others, from plain JavaScript: with no info there is nothing to follow.
      const errorType = info?.errorType;
      if (errorType !== 'TRANSIENT' && errorType !== 'THROTTLING') return;
      if (token.getRetryCount() + 1 >= mostAttempts) {
        refused(name, 'per_request_limit');
        return;
      }
      const cost = errorType === 'THROTTLING' ? quota.throttledCost : quota.attemptCost;
      // The strategy takes it at once too, and then waits.
      const isPaid = budget.tryWithdraw(now(), cost);
      Promise.resolve(result).then(undefined, () => {
        if (isPaid) budget.deposit(now(), 'refund', cost);
        refused(name, 'retry_budget_empty');
      });
    });
    return result;
  };
  const followedSuccess: RecordSuccess = (token) => {
    guarded(() => {
      const cost = token.getRetryCost?.();
      budget.deposit(now(), cost === undefined ? 'success' : 'refund', cost);
    });
    return recordSuccess.call(keeper, token);
  };
  Reflect.set(keeper, 'refreshRetryTokenForRetry', followedRefresh);
  Reflect.set(keeper, 'recordSuccess', followedSuccess);
}

/** The strategy that has the tokens: the adaptive one has a standard one inside. */
function keeperOf(strategy: unknown): object | undefined {
  if (typeof strategy !== 'object' || strategy === null) return undefined;
  const inner: unknown = Reflect.get(strategy, 'standardRetryStrategy');
  return typeof inner === 'object' && inner !== null ? inner : strategy;
}

/** undefined where there is one of this name, which another client has filled. */
function budgetOf(name: string, keeper: object, quota: Quota): LiveRetryBudget | undefined {
  if (findBudget(name) !== undefined) {
    diag.warn(
      `otel-time-budget: there is a retry budget ${name} already; the quota of this client is not seen`,
    );
    return undefined;
  }
  const getCapacity: unknown = Reflect.get(keeper, 'getCapacity');
  const read = typeof getCapacity === 'function' ? () => Number(getCapacity.call(keeper)) : undefined;
  // Calls of no dependency feed it: the SDK alone knows what it has charged.
  const budget = new LiveRetryBudget(name, [], modelOf(quota), read);
  addBudget(budget);
  return budget;
}

function modelOf({ capacity, attemptCost, successAmount }: Quota): RetryBudgetOptions {
  return { model: 'fixed_quota', capacity, attemptCost, successAmount, isDerived: true };
}

function refused(name: string, reason: RefusalReason): void {
  withRecorder(({ series, families, retries }) => {
    retries.prepare(name);
    families.refused.cell(series.dependencies.fold(name), 'repeat', reason).add(1);
  });
}
