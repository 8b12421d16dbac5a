/** Whether one more attempt of an operation may be made, and how many a chain of layers can make of one. */
import { checkWhole, type RetryBudget } from './retry-budget.ts';
import type { ErrorClass, Payer, RefusalReason } from './terms.ts';

/**
 * When the same request may be sent again after a failure of this class. A class says what is known:
 * `transient` and `throttled`: it will pass, and the work was not done (gRPC: UNAVAILABLE may be called again);
 * `unknown_outcome`: the work may have been done (a timeout, a connection that broke after the request was sent),
 * where a doubt about the first two belongs as well; `precondition`: the state must be repaired first (gRPC:
 * FAILED_PRECONDITION); `validation`, `auth`: the unchanged request fails again.
 */
const REPEATABLE: Readonly<Record<ErrorClass, 'always' | 'if_safe' | 'never'>> = {
  transient: 'always',
  throttled: 'always',
  precondition: 'never',
  validation: 'never',
  auth: 'never',
  unknown_outcome: 'if_safe',
};

/** `isSafe`: doing the work twice does no harm (it reads, is idempotent, or carries an idempotency key). */
export function isRetryable(errorClass: ErrorClass, isSafe: boolean): boolean {
  const repeatable = REPEATABLE[errorClass];
  return repeatable === 'always' || (repeatable === 'if_safe' && isSafe);
}

/** One failed attempt, and what the next would need. */
export interface RetryQuestion {
  readonly errorClass: ErrorClass;
  /** As in isRetryable. */
  readonly isSafe: boolean;
  /** Attempts made of this operation, the original included: 1 after the original has failed. */
  readonly attempts: number;
  /** Attempts that may be made in all, the original included; not retries. */
  readonly maxAttempts: number;
  /** Time left of the request, read just before asking; negative when over, undefined without a budget. */
  readonly remainingMs?: number | undefined;
  /** Wait before the next attempt, as planned with its jitter, and no shorter than what the peer asked for. */
  readonly backoffMs: number;
  /** What an attempt realistically takes (its tail, not its median); undefined where nothing is known. */
  readonly expectedAttemptMs?: number | undefined;
  readonly reserveMs: number;
  /** Cost of the next attempt in the unit of the budget; left out for a usual one. */
  readonly cost?: number | undefined;
  /** The dependency's breaker lets nothing through. */
  readonly isBlocked?: boolean | undefined;
  /** False where the attempt at hand never reached the dependency, because a breaker stopped it, or still runs. */
  readonly hasFailed?: boolean | undefined;
  readonly isCallerGone?: boolean | undefined;
}

/** The answer, with the terms it was decided on. */
export interface RetryDecision {
  readonly isAllowed: boolean;
  /** Why not; undefined when allowed, and when blocked: that is the breaker's and no refusal. */
  readonly refusal: RefusalReason | undefined;
  readonly isBlocked: boolean;
  readonly paidBy: Payer;
  /** Ordinal of the attempt in question; 1 = original. */
  readonly attempt: number;
  readonly remainingMs: number | undefined;
  readonly backoffMs: number;
  readonly expectedAttemptMs: number | undefined;
  readonly reserveMs: number;
  /** The sum of the three terms; what is not known counts as 0. */
  readonly neededMs: number;
}

/**
 * Asked once per failed attempt. In this order: the class of the error, the attempts of this operation, the caller,
 * the time (backoff + expected attempt + reserve must fit, equality fits), the breaker, and last a withdrawal, so
 * that nothing is withdrawn for an attempt that is not made. Reports the failure to the budget. Where it says no the
 * caller gets the error of the attempt made, not a new one. A withdrawal whose attempt is given up later, as when
 * the caller leaves during the backoff, is deposited as a refund.
 */
export function mayRetry(
  question: RetryQuestion,
  budget: RetryBudget | undefined,
  now: number,
): RetryDecision {
  const { errorClass, isSafe, cost, isBlocked = false, hasFailed = true } = question;
  const isRepeatable = isRetryable(errorClass, isSafe);
  // An attempt that a breaker stopped has not failed at the dependency.
  if (isRepeatable && hasFailed && !isBlocked) budget?.fail(now);
  const neededMs = Math.max(0, question.backoffMs) + (question.expectedAttemptMs ?? 0) + question.reserveMs;

  const refusal = isRepeatable ? refusalOf(question, neededMs) : 'not_retryable';
  if (refusal !== undefined || isBlocked) return decide(question, neededMs, refusal, 'none');
  if (budget === undefined) return decide(question, neededMs, undefined, 'request_limit');
  if (!budget.tryWithdraw(now, cost)) return decide(question, neededMs, 'retry_budget_empty', 'none');
  return decide(question, neededMs, undefined, 'retry_budget');
}

function refusalOf(question: RetryQuestion, neededMs: number): RefusalReason | undefined {
  const { attempts, maxAttempts, remainingMs, reserveMs } = question;
  // Negated, so that what is no number refuses.
  if (!(attempts < maxAttempts)) return 'per_request_limit';
  if (question.isCallerGone === true) return 'caller_gone';
  if (remainingMs === undefined) return undefined;
  if (remainingMs - reserveMs <= 0) return 'deadline_exceeded_before_dispatch';
  return neededMs <= remainingMs ? undefined : 'does_not_fit_retry';
}

function decide(
  question: RetryQuestion,
  neededMs: number,
  refusal: RefusalReason | undefined,
  paidBy: Payer,
): RetryDecision {
  return {
    isAllowed: paidBy !== 'none',
    refusal,
    isBlocked: refusal === undefined && paidBy === 'none',
    paidBy,
    attempt: question.attempts + 1,
    remainingMs: question.remainingMs,
    backoffMs: question.backoffMs,
    expectedAttemptMs: question.expectedAttemptMs,
    reserveMs: question.reserveMs,
    neededMs,
  };
}

/**
 * Most attempts that one operation can cause at each depth, when every layer makes all the attempts it may (not
 * retries: "three retries" are four attempts) and nothing succeeds early: [3, 3, 3] gives [1, 3, 9, 27]. A bound to
 * be shown beside what is measured, no forecast. Throws RangeError for attempts that are no whole number >= 1.
 */
export function worstCaseAttempts(attemptsPerLayer: readonly number[]): number[] {
  const atDepth = [1];
  let product = 1;
  for (const [layer, attempts] of attemptsPerLayer.entries()) {
    checkWhole(`attemptsPerLayer[${layer}]`, attempts, 1, 1_000);
    product *= attempts;
    atDepth.push(product);
  }
  return atDepth;
}
