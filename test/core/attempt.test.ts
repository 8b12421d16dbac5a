import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isRetryable, mayRetry, type RetryQuestion, worstCaseAttempts } from '../../src/core/attempt.ts';
import type { RetryBudget } from '../../src/core/retry-budget.ts';
import { GrpcThrottlingBudget } from '../../src/core/retry-budget-grpc.ts';
import { AWS_QUOTA, FixedQuotaBudget } from '../../src/core/retry-budget-quota.ts';
import { TokenBucketBudget } from '../../src/core/retry-budget-token-bucket.ts';
import { ERROR_CLASSES, PAYERS, REFUSAL_REASONS } from '../../src/core/terms.ts';

const NOW = 0;
const ASKED: RetryQuestion = {
  errorClass: 'transient',
  isSafe: true,
  attempts: 1,
  maxAttempts: 3,
  remainingMs: 1_000,
  backoffMs: 100,
  expectedAttemptMs: 120,
  reserveMs: 75,
};
const ask = (question: Partial<RetryQuestion>, budget = stocked(10)) =>
  mayRetry({ ...ASKED, ...question }, budget, NOW);
/** A budget of `tokens` repeats that nothing fills. */
const stocked = (tokens: number): RetryBudget =>
  new TokenBucketBudget({ ratio: 0, reservePerSecond: tokens, ttlMs: 1_000 });

describe('R-12: which failures may be repeated', () => {
  test.each([
    ['transient', true, true],
    ['throttled', true, true],
    ['precondition', false, false],
    ['validation', false, false],
    ['auth', false, false],
    ['unknown_outcome', true, false],
  ] as const)('%s: %s for a safe operation, %s for another', (errorClass, safe, unsafe) => {
    expect([isRetryable(errorClass, true), isRetryable(errorClass, false)]).toEqual([safe, unsafe]);
  });

  test('R-15: a timeout of a write that carries no key is not repeated', () => {
    expect(ask({ errorClass: 'unknown_outcome', isSafe: false }).refusal).toBe('not_retryable');
    expect(ask({ errorClass: 'unknown_outcome', isSafe: true }).isAllowed).toBe(true);
  });
});

describe('does another attempt fit?', () => {
  test.each([
    [300, undefined],
    [295, undefined],
    [294.999, 'does_not_fit_retry'],
    [294, 'does_not_fit_retry'],
    [76, 'does_not_fit_retry'],
    [75, 'deadline_exceeded_before_dispatch'],
    [0, 'deadline_exceeded_before_dispatch'],
    [-20, 'deadline_exceeded_before_dispatch'],
  ])('N-22: %d left, backoff 100 + attempt 120 + reserve 75', (remainingMs, refusal) => {
    const decision = ask({ remainingMs });
    expect(decision.refusal).toBe(refusal);
    expect(decision.neededMs).toBe(295);
  });

  test.each([0, 1, 20, 1_000])(
    'N-11, R-11: 20 left against a tail of 80: none, with a backoff of %d',
    (backoffMs) => {
      expect(ask({ remainingMs: 20, expectedAttemptMs: 80, reserveMs: 0, backoffMs }).refusal).toBe(
        'does_not_fit_retry',
      );
    },
  );

  test('R-11: the answer carries the three terms and the time left', () => {
    expect(ask({ remainingMs: 300 })).toEqual({
      isAllowed: true,
      refusal: undefined,
      isBlocked: false,
      paidBy: 'retry_budget',
      attempt: 2,
      remainingMs: 300,
      backoffMs: 100,
      expectedAttemptMs: 120,
      reserveMs: 75,
      neededMs: 295,
    });
  });

  test('an unknown attempt time counts as nothing and stays absent; without a budget everything fits', () => {
    const unknown = ask({ remainingMs: 175, expectedAttemptMs: undefined });
    expect([unknown.isAllowed, unknown.neededMs, unknown.expectedAttemptMs]).toEqual([true, 175, undefined]);
    expect(ask({ remainingMs: 174.9, expectedAttemptMs: undefined }).refusal).toBe('does_not_fit_retry');
    expect(ask({ remainingMs: undefined, backoffMs: 1e9 }).isAllowed).toBe(true);
  });

  test('what is no number refuses, and a negative wait buys no time', () => {
    expect(ask({ remainingMs: Number.NaN }).refusal).toBe('does_not_fit_retry');
    expect(ask({ backoffMs: Number.NaN }).refusal).toBe('does_not_fit_retry');
    expect(ask({ backoffMs: Infinity }).refusal).toBe('does_not_fit_retry');
    expect(ask({ maxAttempts: Number.NaN }).refusal).toBe('per_request_limit');
    expect(ask({ backoffMs: -50, remainingMs: 194 }).refusal).toBe('does_not_fit_retry');
  });
});

describe('T-07: the first attempt fails', () => {
  /** Repeats as told, 100 ms apart, each attempt failing after 120 ms with an error of its own. */
  function callFailing(remainingMs: number, maxAttempts: number) {
    const budget = stocked(10);
    const refusals: string[] = [];
    for (let attempts = 1, now = 120; ; attempts++, now += 220) {
      const question = { ...ASKED, attempts, maxAttempts, remainingMs: remainingMs - now };
      const { isAllowed, refusal } = mayRetry(question, budget, now);
      if (isAllowed) continue;
      refusals.push(String(refusal));
      return { attempts, error: `attempt ${attempts} failed`, refusals };
    }
  }

  test('with enough time one more is made', () => {
    expect(callFailing(415, 2)).toEqual({
      attempts: 2,
      error: 'attempt 2 failed',
      refusals: ['per_request_limit'],
    });
  });

  test('without, none: the earlier error comes back and one refusal is counted', () => {
    expect(callFailing(414, 2)).toEqual({
      attempts: 1,
      error: 'attempt 1 failed',
      refusals: ['does_not_fit_retry'],
    });
  });

  test('I5: maxAttempts 4, always UNAVAILABLE: attempts 4, retries 3', () => {
    const { attempts, refusals } = callFailing(60_000, 4);
    expect([attempts, attempts - 1, refusals]).toEqual([4, 3, ['per_request_limit']]);
  });
});

describe('the order of the gate, and what a refusal costs', () => {
  const EVERYTHING_WRONG: Partial<RetryQuestion> = {
    errorClass: 'validation',
    attempts: 3,
    isCallerGone: true,
    remainingMs: 10,
    isBlocked: true,
  };

  test('class, attempts, caller, time, breaker, token', () => {
    const refusals: unknown[] = [];
    const empty = stocked(0);
    let question = EVERYTHING_WRONG;
    for (const mended of [
      {},
      { errorClass: 'transient' as const },
      { attempts: 2 },
      { isCallerGone: false },
      { remainingMs: 80 },
      { remainingMs: 295 },
      { isBlocked: false },
    ]) {
      question = { ...question, ...mended };
      const { refusal, isBlocked } = ask(question, empty);
      refusals.push(isBlocked ? 'blocked' : refusal);
    }
    expect(refusals).toEqual([
      'not_retryable',
      'per_request_limit',
      'caller_gone',
      'deadline_exceeded_before_dispatch',
      'does_not_fit_retry',
      'blocked',
      'retry_budget_empty',
    ]);
    expect(ask(question, stocked(1)).isAllowed).toBe(true);
  });

  test.each<[string, Partial<RetryQuestion>]>([
    ['the time', { remainingMs: 294 }],
    ['its class', { errorClass: 'auth' }],
    ['the limit of the request', { attempts: 3 }],
    ['the caller who left', { isCallerGone: true }],
    ['R-31: the breaker', { isBlocked: true }],
  ])('R-30: an attempt that is not made for %s costs no token', (_, question) => {
    const budget = stocked(1);
    const decision = ask(question, budget);
    expect([decision.isAllowed, decision.paidBy]).toEqual([false, 'none']);
    expect([budget.balance(NOW), budget.exhaustedMs(NOW + 1_000)]).toEqual([1, 0]);
  });

  test('R-31: blocked is the breaker’s and no refusal', () => {
    const { isAllowed, isBlocked, refusal, paidBy } = ask({ isBlocked: true });
    expect([isAllowed, isBlocked, refusal, paidBy]).toEqual([false, true, undefined, 'none']);
    // What would not have been made anyway was not stopped by it.
    expect(ask({ isBlocked: true, attempts: 3 })).toMatchObject({
      isBlocked: false,
      refusal: 'per_request_limit',
    });
  });

  test('R-18, R-19: the two limits have reasons of their own, and the last token is paid', () => {
    const budget = stocked(1);
    expect(ask({}, budget)).toMatchObject({ isAllowed: true, paidBy: 'retry_budget' });
    expect(ask({}, budget)).toMatchObject({
      isAllowed: false,
      refusal: 'retry_budget_empty',
      paidBy: 'none',
    });
    expect(ask({ attempts: 2 }).isAllowed).toBe(true);
    expect(ask({ attempts: 3 }).refusal).toBe('per_request_limit');
    expect(mayRetry(ASKED, undefined, NOW)).toMatchObject({ isAllowed: true, paidBy: 'request_limit' });
  });

  test('the cost of the attempt is what is withdrawn', () => {
    const budget = new FixedQuotaBudget({ ...AWS_QUOTA, isDerived: true });
    ask({}, budget);
    ask({ errorClass: 'throttled', cost: AWS_QUOTA.throttledCost }, budget);
    expect(budget.balance(NOW)).toBe(485);
    expect(ask({ cost: 486 }, budget).refusal).toBe('retry_budget_empty');
  });

  test('a failure that could be repeated is reported to the budget once, and no other', () => {
    const budget = new GrpcThrottlingBudget({ maxTokens: 10, tokenRatio: 0.1, isDerived: true });
    ask({ errorClass: 'validation' }, budget);
    ask({ isBlocked: true }, budget);
    expect(budget.balance(NOW)).toBe(5);
    ask({ attempts: 3 }, budget);
    ask({ remainingMs: 0 }, budget);
    ask({}, budget);
    expect(budget.balance(NOW)).toBe(2);
  });

  test('over any question the reasons are of the list, and a no leaves the balance as it was', () => {
    const ms = fc.oneof(fc.integer({ min: -100, max: 500 }), fc.constant(Number.NaN));
    const question = fc.record({
      errorClass: fc.constantFrom(...ERROR_CLASSES),
      isSafe: fc.boolean(),
      attempts: fc.integer({ min: 1, max: 4 }),
      maxAttempts: fc.integer({ min: 0, max: 4 }),
      remainingMs: fc.option(ms, { nil: undefined }),
      backoffMs: ms,
      expectedAttemptMs: fc.option(ms, { nil: undefined }),
      reserveMs: fc.integer({ min: 0, max: 100 }),
      isBlocked: fc.boolean(),
      isCallerGone: fc.boolean(),
    });
    fc.assert(
      fc.property(question, fc.integer({ min: 0, max: 2 }), (question, tokens) => {
        const budget = stocked(tokens);
        const decision = mayRetry(question, budget, NOW);
        expect(budget.balance(NOW)).toBe(decision.isAllowed ? tokens - 1 : tokens);
        const said = [decision.isAllowed, decision.isBlocked, decision.refusal !== undefined];
        expect(said.filter(Boolean)).toHaveLength(1);
        expect(PAYERS).toContain(decision.paidBy);
        if (decision.refusal !== undefined) expect(REFUSAL_REASONS).toContain(decision.refusal);
        if (decision.isAllowed && question.remainingMs !== undefined) {
          expect(decision.neededMs).toBeLessThanOrEqual(question.remainingMs);
        }
      }),
    );
  });
});

describe('worst case of a chain of layers', () => {
  test.each([
    ['N-05: three layers of three attempts', [3, 3, 3], [1, 3, 9, 27]],
    ['N-06: three layers of "three retries", which are four attempts', [4, 4, 4], [1, 4, 16, 64]],
    ['N-07: four layers of three attempts', [3, 3, 3, 3], [1, 3, 9, 27, 81]],
    ['N-08: "retry twice" read as three attempts', [3, 3, 3], [1, 3, 9, 27]],
    ['N-08: "retry twice" read as two attempts', [2, 2, 2], [1, 2, 4, 8]],
    ['one owner only', [1, 3, 1], [1, 1, 3, 3]],
    ['no layer', [], [1]],
  ])('%s', (_, layers, atDepth) => {
    expect(worstCaseAttempts(layers)).toEqual(atDepth);
  });

  test.each([
    [[3, 0], 'attemptsPerLayer[1] must be in 1..1000, got 0'],
    [[1_001], 'attemptsPerLayer[0] must be in 1..1000, got 1001'],
    [[1.5], 'attemptsPerLayer[0] must be a whole number, got 1.5'],
    [[Number.NaN], 'attemptsPerLayer[0] must be in 1..1000, got NaN'],
  ])('%o is refused', (layers, message) => {
    expect(() => worstCaseAttempts(layers)).toThrow(new RangeError(message));
  });
});
