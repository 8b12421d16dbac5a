/** What holds for every budget over any sequence of deposits, withdrawals and steps of the clock. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { amountOf, costOf, partOf, type RetryBudget, shareOf } from '../../src/core/retry-budget.ts';
import { InFlightPercentBudget } from '../../src/core/retry-budget-envoy.ts';
import { GrpcThrottlingBudget } from '../../src/core/retry-budget-grpc.ts';
import { FixedQuotaBudget } from '../../src/core/retry-budget-quota.ts';
import { TokenBucketBudget } from '../../src/core/retry-budget-token-bucket.ts';
import { SLOTS } from '../../src/core/window-bucket.ts';

/** What has no part in the figures: rounding of the expectation itself. */
const EPSILON = 1e-6;

const clockStep = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 0, max: 400 }) },
  { weight: 2, arbitrary: fc.integer({ min: -200_000, max: 200_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1_000_000, max: 1_000_000_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(Number.NaN, Infinity, -Infinity) },
);
const act = fc.constantFrom<'deposit' | 'withdraw' | 'fail' | 'begin' | 'end' | 'look'>(
  ...(['deposit', 'deposit', 'withdraw', 'withdraw', 'withdraw', 'fail', 'begin', 'end', 'look'] as const),
);
/** Costs of up to two decimals, so that the expectation is exact too. */
const cost = fc.integer({ min: 1, max: 500 }).map((hundredths) => hundredths / 100);
const events = fc.array(fc.record({ step: clockStep, act, cost }), { maxLength: 150 });
const hundredths = (most: number) => fc.integer({ min: 0, max: most * 100 }).map((n) => n / 100);

interface Tally {
  granted: number;
  grants: number;
  deposited: number;
  deposits: number;
  /** At least as much time as the budget can have taken for passed. */
  elapsedMs: number;
}

/** Lets the events happen; `each` is called after every one. */
function run(
  budget: RetryBudget,
  sequence: readonly { readonly step: number; readonly act: string; readonly cost: number }[],
  each: (tally: Tally) => void = () => {},
): Tally {
  const tally: Tally = { granted: 0, grants: 0, deposited: 0, deposits: 0, elapsedMs: 0 };
  let now = 0;
  let exhaustedMs = 0;
  budget.balance(now);
  for (const { step, act, cost } of sequence) {
    if (Number.isFinite(step)) {
      now += step;
      tally.elapsedMs += Math.max(0, step);
    }
    const reading = Number.isFinite(step) ? now : step;
    if (
      act === 'deposit' &&
      budget.deposit(reading, budget.feed === 'success' ? 'success' : 'original', cost)
    ) {
      tally.deposited += cost;
      tally.deposits++;
    }
    if (act === 'withdraw') {
      // As mayRetry does it: what asks for a repeat has failed.
      budget.fail(reading);
      if (budget.tryWithdraw(reading, cost)) {
        tally.granted += cost;
        tally.grants++;
      }
    }
    if (act === 'fail') budget.fail(reading);
    if (act === 'begin') budget.begin(reading);
    if (act === 'end') budget.end(reading);

    const balance = budget.balance(reading);
    expect(balance).toBeGreaterThanOrEqual(0);
    expect(balance).toBeLessThanOrEqual(budget.capacity(reading));
    expect(budget.exhaustedMs(reading)).toBeGreaterThanOrEqual(exhaustedMs);
    exhaustedMs = budget.exhaustedMs(reading);
    expect(exhaustedMs).toBeLessThanOrEqual(tally.elapsedMs);
    each(tally);
  }
  return tally;
}

/** Windows that a stretch of time can touch. */
const windowsIn = (elapsedMs: number, windowMs: number) => Math.floor(elapsedMs / windowMs) + 1;

describe('granted never exceeds', () => {
  test('token bucket: ratio x deposits + the reserve of each window', () => {
    const options = fc.record({
      ratio: fc.oneof(hundredths(1), fc.double({ min: 0, max: 1, noNaN: true })),
      reservePerSecond: hundredths(3),
      ttlMs: fc.integer({ min: 1_000, max: 60_000 }),
    });
    fc.assert(
      fc.property(options, events, (options, sequence) => {
        const budget = new TokenBucketBudget(options);
        run(budget, sequence, ({ granted, deposited, elapsedMs }) => {
          const windows = windowsIn(elapsedMs, options.ttlMs);
          const allowed = options.ratio * deposited + budget.floor * windows;
          expect(granted).toBeLessThanOrEqual(allowed + EPSILON);
        });
      }),
    );
  });

  test('token bucket within any window of its slots: what that window deposited, and one reserve', () => {
    const ttlMs = 2_000;
    const slotMs = ttlMs / SLOTS;
    const steady = fc.array(fc.record({ wait: fc.integer({ min: 0, max: 300 }), act, cost }), {
      maxLength: 200,
    });
    fc.assert(
      fc.property(hundredths(1), hundredths(3), steady, (ratio, reservePerSecond, sequence) => {
        const budget = new TokenBucketBudget({ ratio, reservePerSecond, ttlMs });
        budget.balance(0);
        const entries: { slot: number; granted: number; deposited: number }[] = [];
        let now = 0;
        for (const { wait, act, cost } of sequence) {
          now += wait;
          const slot = Math.floor(now / slotMs);
          const deposited = act === 'deposit' && budget.deposit(now, 'original', cost) ? cost : 0;
          const granted = act === 'withdraw' && budget.tryWithdraw(now, cost) ? cost : 0;
          entries.push({ slot, granted, deposited });
          const window = entries.filter((entry) => slot - entry.slot < SLOTS);
          const left = window.reduce(
            (sum, entry) => sum + ratio * entry.deposited - entry.granted,
            budget.floor,
          );
          // With grants only where they are covered, and the balance exactly what is left.
          if (granted > 0) expect(left).toBeGreaterThanOrEqual(-EPSILON);
          // A deposit is rounded down by less than a millionth; with two decimals each there are at most four.
          expect(budget.balance(now)).toBeCloseTo(Math.max(0, left), 9);
        }
      }),
    );
  });

  test('gRPC throttling, each repeat after a failure: half the tokens + ratio x successes + the floors', () => {
    const options = fc.record({
      maxTokens: fc.integer({ min: 1, max: 20 }),
      tokenRatio: fc.integer({ min: 1, max: 1_000 }).map((thousandths) => thousandths / 1_000),
      floor: fc.record({
        attempts: fc.integer({ min: 1, max: 5 }),
        everyMs: fc.integer({ min: 1_000, max: 60_000 }),
      }),
    });
    fc.assert(
      fc.property(options, events, (options, sequence) => {
        const budget = new GrpcThrottlingBudget(options);
        run(budget, sequence, ({ grants, deposits, elapsedMs }) => {
          const windows = windowsIn(elapsedMs, options.floor.everyMs);
          const allowed =
            options.maxTokens / 2 + options.tokenRatio * deposits + options.floor.attempts * windows;
          expect(grants).toBeLessThanOrEqual(allowed + EPSILON);
        });
      }),
    );
  });

  test('fixed quota: the stock + what successes bring + the floors', () => {
    const options = fc.record({
      capacity: fc.integer({ min: 5, max: 50 }),
      attemptCost: cost,
      successAmount: cost,
      floor: fc.record({
        attempts: fc.integer({ min: 1, max: 5 }),
        everyMs: fc.integer({ min: 1_000, max: 60_000 }),
      }),
    });
    fc.assert(
      fc.property(options, events, (options, sequence) => {
        const budget = new FixedQuotaBudget(options);
        run(budget, sequence, ({ granted, deposits, elapsedMs }) => {
          const windows = windowsIn(elapsedMs, options.floor.everyMs);
          const allowed = options.capacity + options.successAmount * deposits + budget.floor * windows;
          expect(granted).toBeLessThanOrEqual(allowed + EPSILON);
        });
      }),
    );
  });

  test('N-20, percent in flight: at every grant max(minimum, floor(percent x in flight))', () => {
    const whole = fc.integer({ min: 0, max: 100 });
    const acts = fc.array(fc.constantFrom('begin', 'begin', 'end', 'repeat', 'repeat'), { maxLength: 200 });
    fc.assert(
      fc.property(whole, fc.integer({ min: 0, max: 5 }), acts, (percent, minimum, sequence) => {
        const budget = new InFlightPercentBudget({ percent, minimum });
        let inFlight = 0;
        let repeats = 0;
        for (const act of sequence) {
          if (act === 'begin') {
            budget.begin(0);
            inFlight++;
          } else if (act === 'end' && inFlight > 0) {
            const paid = repeats > 0 ? 1 : 0;
            budget.end(0, paid);
            repeats -= paid;
            inFlight--;
          } else if (act === 'repeat') {
            const allowed = Math.max(minimum, Math.floor((percent * inFlight) / 100));
            expect(budget.capacity()).toBe(allowed);
            expect(budget.tryWithdraw(0)).toBe(repeats < allowed);
            if (repeats < allowed) repeats++;
          }
        }
      }),
    );
  });
});

describe('arithmetic', () => {
  const RATIOS = [0.1, 0.2, 0.25, 0.3, 0.5, 0.6, 0.7, 0.75, 0.9, 1];

  test.each(RATIOS)('ten thousand requests in one window: %d of them, exactly', (ratio) => {
    const budget = new TokenBucketBudget({ ratio, reservePerSecond: 0, ttlMs: 60_000 });
    let granted = 0;
    for (let now = 0; now < 10_000; now++) {
      budget.deposit(now);
      if (budget.tryWithdraw(now)) granted++;
    }
    expect(granted).toBe(Math.round(10_000 * ratio));
  });

  test.each(RATIOS)('over a hundred seconds at %d no window loses more than one', (ratio) => {
    const budget = new TokenBucketBudget({ ratio, reservePerSecond: 0, ttlMs: 10_000 });
    let granted = 0;
    for (let i = 0; i < 10_000; i++) {
      budget.deposit(i * 10);
      if (budget.tryWithdraw(i * 10)) granted++;
    }
    expect(granted).toBeLessThanOrEqual(10_000 * ratio);
    expect(granted).toBeGreaterThan(10_000 * ratio - 10);
  });

  test.each([
    [1 / 3, 1, 333_333],
    [1 / 3, 0.000_002, 0],
    [1 / 3, 0.000_004, 1],
    [0.01, 2.28, 22_800],
    [0.3, 1e6, 3e11],
    [0.999_999, 999_999.999_999, 999_998_999_999],
    [0.3, 1e6 + 1, Number.NaN],
    [0.3, 0, Number.NaN],
  ])('%d of a cost of %d are %d millionths', (ratio, cost, amount) => {
    expect(partOf(shareOf(ratio), cost)).toBe(amount);
  });

  test('a cost is over 0 and a million at the most', () => {
    expect([1e6, 1e-6, 0.000_000_1].map(amountOf)).toEqual([1e12, 1, 1]);
    expect([1_000_000.1, 0, -1, Infinity].map(amountOf)).toEqual([
      Number.NaN,
      Number.NaN,
      Number.NaN,
      Number.NaN,
    ]);
  });

  test('an amount is never less than its cost, a share never more than its ratio, and both within a millionth', () => {
    fc.assert(
      fc.property(fc.double({ min: 1e-6, max: 1e6, noNaN: true }), (value) => {
        expect(costOf(amountOf(value))).toBeGreaterThanOrEqual(value);
        expect(costOf(amountOf(value)) - value).toBeLessThan(1.1e-6);
        expect(costOf(shareOf(value))).toBeLessThanOrEqual(value);
        expect(value - costOf(shareOf(value))).toBeLessThan(1.1e-6);
      }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e12 }), (millionths) => {
        expect(amountOf(millionths / 1e6)).toBe(millionths);
        expect(shareOf(millionths / 1e6)).toBe(millionths);
      }),
    );
  });
});

test('exhausted time equals that of a watch that looks at every millisecond', () => {
  const sequence = fc.array(
    fc.record({ wait: fc.integer({ min: 0, max: 400 }), act, cost: fc.constantFrom(0.5, 1, 2) }),
    { maxLength: 40 },
  );
  const options = fc.record({ ratio: fc.constantFrom(0.5, 1), reservePerSecond: fc.constantFrom(0, 1, 2) });
  fc.assert(
    fc.property(options, sequence, ({ ratio, reservePerSecond }, events) => {
      const make = () => new TokenBucketBudget({ ratio, reservePerSecond, ttlMs: 1_000 });
      const lazy = make();
      const watched = make();
      let now = 0;
      let exhaustedMs = 0;
      let isExhausted = false;
      let allowed = watched.balance(0) >= 1;
      lazy.balance(0);
      const look = (at: number) => {
        const allows = watched.balance(at) >= 1;
        if (allows) isExhausted = false;
        else if (allowed) isExhausted = true;
        allowed = allows;
      };
      for (const { wait, act, cost } of events) {
        for (let i = 0; i < wait; i++) {
          if (isExhausted) exhaustedMs++;
          look(++now);
        }
        for (const budget of [lazy, watched]) {
          if (act === 'deposit') budget.deposit(now, 'original', cost);
          if (act === 'withdraw' && !budget.tryWithdraw(now, cost) && !allowed) isExhausted = true;
        }
        look(now);
      }
      expect(lazy.exhaustedMs(now)).toBe(exhaustedMs);
    }),
    { numRuns: 50 },
  );
});
