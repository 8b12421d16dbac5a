/**
 * Repeats inside the budget: the guard for loops of one's own, its adapters for client libraries, and retry budgets.
 * No library is imported. Every function is safe to call anywhere, as those of the main entry.
 */
export type { RetryBudgetOptions } from '../core/create-retry-budget.ts';
export type { RetryBudget } from '../core/retry-budget.ts';
export { AWS_QUOTA, AWS_QUOTA_2026 } from '../core/retry-budget-quota.ts';
export type { ErrorClass, RefusalReason } from '../core/terms.ts';
export type { ClientRetryPolicy } from './adapter.ts';
export { type AwsRetryOptions, watchAwsRetries } from './aws-sdk.ts';
export { guardAxiosRetry } from './axios-retry.ts';
export { backoff } from './backoff.ts';
export { retryBudget, type SharedRetryBudgetOptions } from './budgets.ts';
export { type CockatielPolicy, guardBackoff } from './cockatiel.ts';
export { watchCockatielBreaker } from './cockatiel-breaker.ts';
export { type FallbackPolicy, watchFallback } from './fallback.ts';
export { guardGotDelay } from './got.ts';
export { mayRetry, type RetryAnswer, type RetryAsk, type RetryPolicy } from './guard.ts';
export { type HedgeOptions, hedge } from './hedge.ts';
export { watchOpossumBreaker } from './opossum.ts';
export type { OwedRepeat } from './owed-repeat.ts';
export { guardPRetry } from './p-retry.ts';
export { guardUndici, withRequest } from './undici.ts';
