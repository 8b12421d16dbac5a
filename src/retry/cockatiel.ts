/** cockatiel 3 and 4: the guard as a backoff, which it asks exactly when it is about to repeat. */
import { currentScope } from '../current.ts';
import { askSafely, complainOnce } from './adapter.ts';
import type { RetryPolicy } from './guard.ts';

interface Context {
  /** Ordinal of the repeat, which is the number of attempts made. */
  readonly attempt: number;
  readonly result: { readonly error: unknown } | { readonly value: unknown };
}

interface Backoff<C> {
  readonly duration: number;
  next(context: C): Backoff<C>;
}

interface BackoffFactory<C> {
  next(context: C): Backoff<C>;
}

/** `maxAttempts` is that of the guard, the original included; cockatiel's own counts repeats only. */
export type CockatielPolicy = RetryPolicy & { readonly maxAttempts: number };

/**
 * A backoff for `retry(handleAll, { maxAttempts: 2, backoff: guardBackoff(policy, new ExponentialBackoff()) })`.
 * Refused, `execute` rejects with the error of the attempt, before a timer is set; `onGiveUp` is not told. A result
 * that counts as a failure (`handleResultType`) is no error that could be thrown: such a repeat is recorded and
 * never refused.
 */
export function guardBackoff<C extends Context>(
  policy: CockatielPolicy,
  inner: BackoffFactory<C>,
): BackoffFactory<C> {
  return { next: (context) => guarded(policy, inner.next(context), context) };
}

function guarded<C extends Context>(policy: CockatielPolicy, planned: Backoff<C>, context: C): Backoff<C> {
  const duration = decide(policy, planned.duration, context);
  return { duration, next: (later) => guarded(policy, planned.next(later), later) };
}

function decide(policy: CockatielPolicy, plannedMs: number, context: Context): number {
  if (!isKnown(context)) return plannedMs;
  const { attempt, result } = context;
  const failure = 'error' in result ? result.error : result.value;
  const ask = { ...policy, error: failure, attempt, backoffMs: plannedMs };
  const answer = askSafely(currentScope(), ask, 'service');
  if (answer === undefined) return plannedMs;
  if (!answer.isAllowed && 'error' in result) throw result.error;
  return answer.isEnforced && answer.isAllowed ? answer.backoffMs : plannedMs;
}

function isKnown(context: Partial<Context> | undefined): boolean {
  if (typeof context?.attempt === 'number' && typeof context.result === 'object') return true;
  complainOnce('cockatiel', 'its backoff is not told the attempt and its result');
  return false;
}
