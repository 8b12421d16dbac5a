/** Each model against the step tables that its origin publishes, its bounds, and the rows on retry budgets. */
import { describe, expect, test } from 'vitest';
import type { LowSuccessFloor, RetryBudget } from '../../src/core/retry-budget.ts';
import { InFlightPercentBudget } from '../../src/core/retry-budget-envoy.ts';
import { GrpcThrottlingBudget, type GrpcThrottlingOptions } from '../../src/core/retry-budget-grpc.ts';
import {
  AWS_QUOTA,
  AWS_QUOTA_2026,
  FixedQuotaBudget,
  type FixedQuotaOptions,
} from '../../src/core/retry-budget-quota.ts';
import { TokenBucketBudget, type TokenBucketOptions } from '../../src/core/retry-budget-token-bucket.ts';
import {
  DEPOSIT_SOURCES,
  RETRY_BUDGET_FEEDS,
  RETRY_BUDGET_MODELS,
  RETRY_BUDGET_UNITS,
} from '../../src/core/terms.ts';

const FINAGLE: TokenBucketOptions = { ratio: 0.2, reservePerSecond: 10, ttlMs: 10_000 };
const FLOOR: LowSuccessFloor = { attempts: 5, everyMs: 10_000 };
const bucket = (options: Partial<TokenBucketOptions>) =>
  new TokenBucketBudget({ ratio: 1, reservePerSecond: 0, ttlMs: 1_000, ...options });
const grpc = (maxTokens: number, tokenRatio: number) =>
  new GrpcThrottlingBudget({ maxTokens, tokenRatio, floor: FLOOR });
const grpcOfLibrary = (maxTokens: number, tokenRatio: number) =>
  new GrpcThrottlingBudget({ maxTokens, tokenRatio, isDerived: true });
const quota = (capacity: number, attemptCost: number) =>
  new FixedQuotaBudget({ capacity, attemptCost, successAmount: 1, isDerived: true });

/** Withdrawals granted at `now` until the first that is not. */
function drain(budget: RetryBudget, now: number, cost?: number): number {
  for (let granted = 0; ; granted++) if (!budget.tryWithdraw(now, cost)) return granted;
}

describe('token bucket, as Finagle has it', () => {
  // RetryBudgetTest: time stands still, 10,000 requests that each ask for a repeat.
  test.each([
    [0.1, 1_000],
    [0.5, 5_000],
    [0.25, 2_500],
    [0.75, 7_500],
    [0.99, 9_900],
    [0.999, 9_990],
    [0.9999, 9_999],
    [0.01, 100],
    [0.001, 10],
    [0.0001, 1],
  ])('R-16: of 10,000 requests at a ratio of %d, %d are repeated', (ratio, expected) => {
    const budget = bucket({ ratio, ttlMs: 60_000 });
    expect(budget.balance(0)).toBe(0);
    expect(budget.tryWithdraw(0)).toBe(false);
    let granted = 0;
    for (let i = 0; i < 10_000; i++) {
      budget.deposit(0);
      if (budget.tryWithdraw(0)) granted++;
      else expect(budget.balance(0)).toBeLessThan(1);
    }
    expect(granted).toBe(expected);
  });

  test.each([
    [1_000, 10, 0, 10],
    [2_000, 5, 0, 10],
    [1_000, 10, 0.1, 1_010],
    [2_000, 5, 0.5, 5_010],
  ])('ttl %d ms, reserve %d/s, ratio %d: %d of 10,000', (ttlMs, reservePerSecond, ratio, expected) => {
    const budget = bucket({ ratio, reservePerSecond, ttlMs });
    expect(budget.balance(0)).toBe(10);
    let granted = 0;
    for (let i = 0; i < 10_000; i++) {
      budget.deposit(0);
      if (budget.tryWithdraw(0)) granted++;
    }
    expect(granted).toBe(expected);
  });

  test('no ratio and no reserve: always empty', () => {
    const budget = bucket({ ratio: 0 });
    expect(budget.deposit(0)).toBe(false);
    expect(budget.tryWithdraw(0)).toBe(false);
    expect(budget.balance(0)).toBe(0);
  });

  // TokenBucketTest, "a leaky bucket is leaky" and "tryGet fails when empty".
  test('TokenBucketTest: deposits are gone after the ttl, and a withdrawal is whole or none', () => {
    const leaky = bucket({ ttlMs: 3_000 });
    leaky.deposit(0, 'original', 100);
    expect(leaky.tryWithdraw(0)).toBe(true);
    expect(leaky.tryWithdraw(3_000)).toBe(false);

    const budget = bucket({ ttlMs: 3_000 });
    budget.deposit(0, 'original', 100);
    const got = [50, 49, 1, 1, 50].map((cost) => budget.tryWithdraw(0, cost));
    expect(got).toEqual([true, true, true, false, false]);
    budget.deposit(0);
    expect([2, 1, 1].map((cost) => budget.tryWithdraw(0, cost))).toEqual([false, true, false]);
  });

  // TokenBucketTest, "provisions reserves". There the ttl is 3 s and withdrawals come back in the fourth second,
  // because its ten slots fall behind by 100 ms in every step of 1 s; here they come back when the ttl is over.
  test('TokenBucketTest: who eats the reserve right away waits for the ttl', () => {
    const budget = bucket({ ttlMs: 4_000, reservePerSecond: 25 });
    expect(budget.floor).toBe(100);
    expect([50, 50, 1].map((cost) => budget.tryWithdraw(0, cost))).toEqual([true, true, false]);
    budget.deposit(0);
    expect(budget.tryWithdraw(0)).toBe(true);
    for (const now of [1_000, 2_000, 3_000, 3_999]) expect(budget.tryWithdraw(now)).toBe(false);
    expect(budget.tryWithdraw(4_000, 50)).toBe(true);
    expect(budget.balance(4_000)).toBe(50);
    expect(budget.tryWithdraw(8_000, 100)).toBe(true);
    expect(budget.tryWithdraw(8_000)).toBe(false);
  });

  // tower, tps_budget.rs: tps_empty, tps_leaky, tps_slots, tps_reserve.
  test('the step tables of tower', () => {
    expect(bucket({}).tryWithdraw(0)).toBe(false);

    const leaky = bucket({});
    leaky.deposit(0);
    expect(leaky.tryWithdraw(3_000)).toBe(false);

    const slots = bucket({ ratio: 0.5 });
    slots.deposit(0);
    slots.deposit(0);
    expect(slots.tryWithdraw(901)).toBe(true);
    slots.deposit(2_902);
    slots.deposit(3_203);
    slots.deposit(4_004);
    expect(slots.balance(4_004)).toBe(1);
    expect(slots.tryWithdraw(4_004)).toBe(true);

    expect(drain(bucket({ reservePerSecond: 5 }), 0)).toBe(5);
  });

  // tower-rs/tower#857: 1 / 0.75 is cut down to 1 there, so that every request could be repeated.
  test.each([
    [0.6, 6],
    [0.75, 7],
    [0.9, 9],
  ])('a ratio of %d is not truncated: 10 deposits allow %d', (ratio, expected) => {
    const budget = bucket({ ratio });
    for (let i = 0; i < 10; i++) budget.deposit(0);
    expect(drain(budget, 0)).toBe(expected);
  });

  test('the defaults of Finagle: 100 in reserve, and one for every five requests', () => {
    const budget = new TokenBucketBudget(FINAGLE);
    expect([budget.floor, budget.balance(0), budget.capacity(0)]).toEqual([100, 100, 100]);
    for (let i = 0; i < 25; i++) budget.deposit(1_000);
    expect([budget.balance(1_000), budget.capacity(1_000)]).toEqual([105, 105]);
    expect(drain(budget, 1_000)).toBe(105);
    expect([budget.balance(1_000), budget.capacity(1_000)]).toEqual([0, 105]);
    // A whole idle night later only the reserve is there.
    expect([budget.balance(36_000_000), budget.capacity(36_000_000)]).toEqual([100, 100]);
  });

  test('R-18: the feed is named, and nothing else fills the budget', () => {
    const originals = new TokenBucketBudget(FINAGLE);
    expect(originals.feed).toBe('original');
    expect(originals.deposit(0)).toBe(true);
    expect(originals.deposit(0, 'original')).toBe(true);
    expect(originals.deposit(0, 'success')).toBe(false);
    expect(originals.balance(0)).toBe(100.4);

    const successes = new TokenBucketBudget({ ...FINAGLE, feed: 'success' });
    expect(successes.deposit(0)).toBe(true);
    expect(successes.deposit(0, 'original')).toBe(false);
    expect(successes.balance(0)).toBe(100.2);
  });

  test('R-18: an empty budget refuses, keeps what it has, and says what becomes of the operation', () => {
    const budget = bucket({ ratio: 0.5 });
    budget.deposit(0);
    expect(budget.tryWithdraw(0)).toBe(false);
    expect(budget.balance(0)).toBe(0.5);
    expect(budget.onEmpty).toBe('original_error');
    expect(bucket({ onEmpty: 'degrade' }).onEmpty).toBe('degrade');
  });

  test('R-20: cost in the unit of the budget: a report counts for two hundred updates', () => {
    const budget = bucket({ ratio: 0.1, unit: 'weighted_cost', reservePerSecond: 1 });
    budget.deposit(0, 'original', 200);
    for (let i = 0; i < 90; i++) budget.deposit(0);
    expect(budget.balance(0)).toBe(30);
    expect(budget.tryWithdraw(0, 200)).toBe(false);
    expect(budget.tryWithdraw(0, 30)).toBe(true);
  });

  test('R-20: a budget of time: a tenth of what the originals took, and 40 ms a usual repeat', () => {
    const budget = bucket({ ratio: 0.1, unit: 'time', attemptCost: 40, ttlMs: 10_000 });
    budget.deposit(0, 'original', 1_234.5);
    expect(budget.balance(0)).toBe(123.45);
    expect(drain(budget, 0)).toBe(3);
    expect(budget.balance(0)).toBe(3.45);
    expect(budget.tryWithdraw(0, 3.45)).toBe(true);
    // A deposit without a cost stands for an original of the usual one.
    budget.deposit(0);
    expect(budget.balance(0)).toBe(4);
  });

  test('a refund undoes a withdrawal of the window and brings no more than that', () => {
    const budget = bucket({ reservePerSecond: 2 });
    expect(budget.deposit(0, 'refund')).toBe(false);
    budget.tryWithdraw(0);
    expect(budget.deposit(0, 'refund')).toBe(true);
    expect(budget.deposit(0, 'refund')).toBe(false);
    expect(budget.balance(0)).toBe(2);
    budget.tryWithdraw(0);
    expect(budget.deposit(1_000, 'refund')).toBe(false);
    expect(budget.balance(1_000)).toBe(2);
  });

  test('a cost that is none is neither paid, nor paid in, nor a reason to be exhausted', () => {
    const budget = bucket({ reservePerSecond: 2 });
    for (const cost of [0, -1, Number.NaN, Infinity, 1_000_000.000_001]) {
      expect(budget.tryWithdraw(0, cost)).toBe(false);
      expect(budget.deposit(0, 'original', cost)).toBe(false);
      expect(budget.deposit(0, 'refund', cost)).toBe(false);
    }
    expect([budget.balance(0), budget.exhaustedMs(5_000)]).toEqual([2, 0]);
    expect(budget.deposit(5_000, 'original', 1e6)).toBe(true);
    expect(budget.tryWithdraw(5_000, 1e6)).toBe(true);
  });
});

describe('gRPC throttling, gRFC A6', () => {
  test('A6: tokens start at the maximum, and repeats stop at half of it, not below', () => {
    const budget = grpcOfLibrary(10, 0.1);
    expect([budget.balance(0), budget.capacity(), budget.floor]).toEqual([5, 5, 0]);
    const asked = [9, 8, 7, 6, 5, 4].map(() => {
      budget.fail(0);
      return budget.tryWithdraw(0);
    });
    expect(asked).toEqual([true, true, true, true, false, false]);
    expect(budget.balance(0)).toBe(0);
  });

  // gRPC core, retry_throttle_test.cc, Basic: 4 tokens at the most, 1.6 for a success.
  test('the step table of gRPC core', () => {
    const budget = grpcOfLibrary(4, 1.6);
    const fail = () => {
      budget.fail(0);
      return budget.tryWithdraw(0);
    };
    const succeed = () => budget.deposit(0, 'success');
    expect(fail()).toBe(true); // 3
    succeed(); // 4, not 4.6
    expect([fail(), fail(), fail(), fail(), fail()]).toEqual([true, false, false, false, false]); // 0, not -1
    succeed();
    succeed(); // 3.2
    expect([fail(), fail()]).toEqual([true, false]); // 2.2, 1.2
    succeed(); // 2.8
    expect(fail()).toBe(false); // 1.8
    succeed(); // 3.4
    expect(fail()).toBe(true); // 2.4
  });

  // userver, retry_budget_test.cpp: 10 tokens, 0.1 for a success. Fifty times 0.1 must be 5 and no more.
  test('the step tables of userver', () => {
    const base = grpcOfLibrary(10, 0.1);
    for (let i = 0; i < 4; i++) base.fail(0);
    expect(base.tryWithdraw(0)).toBe(true);
    base.fail(0);
    expect(base.tryWithdraw(0)).toBe(false);

    const replenish = grpcOfLibrary(10, 0.1);
    for (let i = 0; i < 10; i++) replenish.fail(0);
    for (let i = 0; i < 50; i++) replenish.deposit(0, 'success');
    expect(replenish.tryWithdraw(0)).toBe(false);
    replenish.deposit(0, 'success');
    expect(replenish.tryWithdraw(0)).toBe(true);
  });

  test('three decimals count, as in grpc-js', () => {
    const budget = grpcOfLibrary(2, 0.0014);
    budget.fail(0);
    budget.deposit(0, 'success');
    expect(budget.balance(0)).toBe(0.001);
  });

  test('only successes fill it, and only what the floor paid comes back', () => {
    const budget = grpc(2, 0.5);
    expect(budget.deposit(0)).toBe(true);
    expect(budget.deposit(0, 'original')).toBe(false);
    budget.tryWithdraw(0);
    expect(budget.deposit(0, 'refund')).toBe(false);
    budget.fail(0);
    expect([budget.balance(0), budget.capacity()]).toEqual([5, 6]);
    expect(budget.tryWithdraw(0)).toBe(true);
    expect(budget.balance(0)).toBe(4);
    expect(budget.deposit(0, 'refund')).toBe(true);
    expect(budget.balance(0)).toBe(5);
    expect(budget.tryWithdraw(0, -1)).toBe(false);
  });
});

describe('percent in flight, as Envoy has it', () => {
  const inFlight = (count: number, percent: number, minimum: number) => {
    const budget = new InFlightPercentBudget({ percent, minimum });
    for (let i = 0; i < count; i++) budget.begin(0);
    return budget;
  };

  test.each([
    // envoyproxy/envoy#9069: the two examples of the change that brought it.
    [25, 20, 3, 5],
    [2, 20, 3, 3],
    // Our own: the step from the minimum to the percentage, and what floating point would get wrong.
    [19, 20, 3, 3],
    [20, 20, 3, 4],
    [24, 20, 3, 4],
    [100, 29, 0, 29],
    [1_000, 12.5, 3, 125],
    [7, 12.5, 0, 0],
    [8, 12.5, 0, 1],
    [0, 20, 0, 0],
    [50, 0, 3, 3],
    [50, 100, 3, 50],
  ])('N-20: of %d active and pending %d percent, at least %d: %d', (count, percent, minimum, allowed) => {
    const budget = inFlight(count, percent, minimum);
    expect(budget.capacity()).toBe(allowed);
    expect(drain(budget, 0)).toBe(allowed);
    expect([budget.floor, budget.balance()]).toEqual([minimum, 0]);
  });

  // envoyproxy/envoy-mobile#811: six in flight fail one after another, each asks for a repeat when it has ended.
  test('the step table of envoy-mobile: 100 percent of what is left in flight', () => {
    const budget = inFlight(6, 100, 0);
    const asked = Array.from({ length: 6 }, () => {
      budget.end(0);
      return [budget.capacity(), budget.tryWithdraw(0)];
    });
    expect(asked).toEqual([
      [5, true],
      [4, true],
      [3, true],
      [2, false],
      [1, false],
      [0, false],
    ]);
  });

  // envoyproxy/envoy#30205: the only request has failed, so that nothing is in flight.
  test('100 percent of nothing is nothing', () => {
    const budget = inFlight(1, 100, 0);
    budget.end(0);
    expect(budget.tryWithdraw(0)).toBe(false);
  });

  test('a place comes back when the repeat has ended, or was not begun', () => {
    const budget = inFlight(10, 20, 0);
    expect(drain(budget, 0)).toBe(2);
    budget.begin(0);
    budget.end(0, 1);
    expect(budget.balance()).toBe(1);
    expect(budget.deposit(0, 'refund')).toBe(true);
    expect(budget.balance()).toBe(2);
    expect(budget.deposit(0, 'refund')).toBe(false);
    expect([budget.deposit(0), budget.deposit(0, 'original'), budget.deposit(0, 'success')]).toEqual([
      false,
      false,
      false,
    ]);
    expect(budget.isLowSuccess()).toBe(false);
  });

  test('a refund that is no number gives no place back', () => {
    const budget = inFlight(10, 20, 0);
    drain(budget, 0);
    expect(budget.deposit(0, 'refund', Number.NaN)).toBe(false);
    budget.end(0, Number.NaN);
    budget.begin(0);
    expect(budget.balance()).toBe(0);
    expect(budget.tryWithdraw(0, 0.5)).toBe(false);
  });

  test('ends without a beginning do no harm', () => {
    const budget = inFlight(0, 100, 1);
    budget.end(0, 1);
    budget.end(0, Number.NaN);
    budget.begin(0);
    expect(budget.capacity()).toBe(1);
    budget.begin(0);
    expect(budget.capacity()).toBe(2);
    expect(budget.tryWithdraw(0, Number.NaN)).toBe(false);
  });
});

describe('fixed quota, as the AWS SDKs have it', () => {
  test('I12: 500 tokens, transient failures only: 50 repeats at 10, then none', () => {
    const budget = new FixedQuotaBudget({ ...AWS_QUOTA, isDerived: true });
    expect(drain(budget, 0)).toBe(50);
    expect(budget.balance(0)).toBe(0);
  });

  test('I12: 500 tokens, transient failures only: 35 repeats at 14, then none with 10 left', () => {
    const budget = new FixedQuotaBudget({ ...AWS_QUOTA_2026, isDerived: true });
    expect(drain(budget, 0)).toBe(35);
    expect(budget.balance(0)).toBe(10);
    // Throttling is cheaper, and can still be repeated.
    expect(drain(budget, 0, AWS_QUOTA_2026.throttledCost)).toBe(2);
  });

  // smithy-typescript, retries.integ.spec.ts, "specification tests": 14 for a repeat, which its success brings back.
  test('the step tables of smithy', () => {
    const fresh = quota(500, 14);
    expect([fresh.tryWithdraw(0), fresh.balance(0)]).toEqual([true, 486]);
    expect([fresh.tryWithdraw(0), fresh.balance(0)]).toEqual([true, 472]);
    fresh.deposit(0, 'refund', 14);
    expect(fresh.balance(0)).toBe(486);

    const single = quota(14, 14);
    expect([single.tryWithdraw(0), single.tryWithdraw(0), single.balance(0)]).toEqual([true, false, 0]);

    const short = quota(20, 14);
    expect([short.tryWithdraw(0), short.tryWithdraw(0), short.balance(0)]).toEqual([true, false, 6]);

    const recovering = quota(30, 14);
    const balances = ['repeat', 'repeat', 'success', 'repeat', 'success'].map((step) => {
      if (step === 'repeat') recovering.tryWithdraw(0);
      else recovering.deposit(0, 'refund', 14);
      return recovering.balance(0);
    });
    expect(balances).toEqual([16, 2, 16, 2, 16]);

    const throttled = quota(500, 14);
    throttled.tryWithdraw(0, 5);
    expect(throttled.balance(0)).toBe(495);
    throttled.deposit(0, 'refund', 5);
    expect(throttled.balance(0)).toBe(500);
  });

  test('a success at the first attempt brings 1, and never more than the stock holds', () => {
    const budget = quota(500, 10);
    budget.tryWithdraw(0);
    expect(budget.deposit(0)).toBe(true);
    expect(budget.balance(0)).toBe(491);
    for (let i = 0; i < 20; i++) budget.deposit(0, 'success');
    expect(budget.balance(0)).toBe(500);
    expect(budget.deposit(0, 'original')).toBe(false);
    for (const cost of [Number.NaN, 0, -1]) {
      expect(budget.deposit(0, 'refund', cost)).toBe(false);
      expect(budget.tryWithdraw(0, cost)).toBe(false);
    }
    expect([budget.balance(0), budget.exhaustedMs(1_000)]).toEqual([500, 0]);
  });

  test('the floor pays what the stock does not cover, and is repaid first', () => {
    const floor = { attempts: 2, everyMs: 10_000 };
    const budget = new FixedQuotaBudget({ capacity: 14, attemptCost: 10, successAmount: 1, floor });
    expect([budget.floor, budget.balance(0), budget.capacity()]).toEqual([20, 34, 34]);
    expect(drain(budget, 0)).toBe(3);
    expect(budget.balance(0)).toBe(4);
    budget.deposit(0, 'refund', 10);
    expect(budget.balance(0)).toBe(14);
    // The floor has paid 16 and got back 10; when its window is over it is whole again.
    expect(budget.isLowSuccess(0)).toBe(true);
    expect(budget.balance(10_000)).toBe(20);
    budget.deposit(10_000, 'refund', 10);
    expect(budget.balance(10_000)).toBe(30);
    expect(budget.isLowSuccess(10_000)).toBe(false);
  });
});

describe('T-29, R-24: ten minutes without a success', () => {
  const TEN_MINUTES_MS = 600_000;
  const SHORT_FLOOR: LowSuccessFloor = { attempts: 1, everyMs: 10_000 };

  /** Three callers of one dependency fail together, each every 30 ms; grants by caller. */
  function failTogether(budget: RetryBudget): number[] {
    const granted = [0, 0, 0];
    for (let now = 0; now < TEN_MINUTES_MS; now += 10) {
      const caller = (now / 10) % 3;
      budget.fail(now);
      if (budget.tryWithdraw(now)) granted[caller] = (granted[caller] ?? 0) + 1;
    }
    return granted;
  }

  test('a token bucket fed by successes grants its reserve in every ttl: 600 at 1 per second', () => {
    const budget = bucket({ feed: 'success', ratio: 0.2, reservePerSecond: 1, ttlMs: 10_000 });
    expect(budget.floor).toBe(10);
    // Ten ask in the first 100 ms of every ttl; none of the three callers is locked out.
    expect(failTogether(budget)).toEqual([200, 200, 200]);
    expect(budget.isLowSuccess(TEN_MINUTES_MS)).toBe(true);
  });

  test('gRPC throttling grants what is above half, then its floor: 4 + 60 x 5', () => {
    const budget = grpc(10, 0.1);
    expect(budget.floor).toBe(5);
    expect(failTogether(budget).reduce((a, b) => a + b)).toBe(304);
    expect(budget.isLowSuccess(TEN_MINUTES_MS)).toBe(true);
  });

  test('a fixed quota grants its stock, then its floor: 50 + 60 x 1', () => {
    const budget = new FixedQuotaBudget({ ...AWS_QUOTA, floor: SHORT_FLOOR });
    expect(budget.floor).toBe(10);
    expect(failTogether(budget).reduce((a, b) => a + b)).toBe(110);
    expect(budget.isLowSuccess(TEN_MINUTES_MS)).toBe(true);
  });

  test('what the libraries keep themselves has no floor: after its stock nothing for ever', () => {
    expect(failTogether(grpcOfLibrary(10, 0.1)).reduce((a, b) => a + b)).toBe(4);
    expect(failTogether(quota(500, 10)).reduce((a, b) => a + b)).toBe(50);
  });

  test('low success ends with the successes', () => {
    const fedBySuccess = bucket({ feed: 'success', ratio: 0.2, reservePerSecond: 1 });
    expect(fedBySuccess.isLowSuccess(0)).toBe(true);
    for (let i = 0; i < 5; i++) fedBySuccess.deposit(0);
    expect(fedBySuccess.isLowSuccess(0)).toBe(false);
    expect(bucket({}).isLowSuccess(0)).toBe(false);

    const throttling = grpc(2, 0.1);
    expect(throttling.isLowSuccess(0)).toBe(false);
    throttling.fail(0);
    expect(throttling.isLowSuccess(0)).toBe(true);
    throttling.deposit(0, 'success');
    expect(throttling.isLowSuccess(0)).toBe(false);
  });
});

describe('exhausted time', () => {
  test('three seconds between two scrapes are seen, although the gauge is full at both', () => {
    const budget = bucket({ ratio: 1, ttlMs: 1_000, reservePerSecond: 2 });
    expect([budget.balance(0), budget.exhaustedMs(0)]).toEqual([2, 0]);
    for (const now of [1_000, 1_000, 2_000, 2_000, 3_000, 3_000]) expect(budget.tryWithdraw(now)).toBe(true);
    // The last two withdrawals come back at 4,000; nobody asks then.
    expect([budget.balance(15_000), budget.exhaustedMs(15_000)]).toEqual([2, 3_000]);
  });

  test('begins with the withdrawal that leaves less than one attempt, and ends with a deposit', () => {
    const budget = bucket({ ttlMs: 60_000, ratio: 0.5 });
    for (let i = 0; i < 3; i++) budget.deposit(0);
    expect(budget.tryWithdraw(1_000)).toBe(true);
    expect(budget.exhaustedMs(1_250)).toBe(250);
    budget.deposit(1_500);
    expect(budget.balance(1_500)).toBe(1);
    expect(budget.exhaustedMs(9_000)).toBe(500);
  });

  test('begins when a deposit runs out, at that instant', () => {
    const budget = bucket({ ttlMs: 1_000 });
    budget.deposit(0);
    expect(budget.exhaustedMs(999)).toBe(0);
    expect(budget.exhaustedMs(61_000)).toBe(60_000);
  });

  test('a budget that starts empty is exhausted from its first refusal', () => {
    const budget = bucket({});
    expect(budget.exhaustedMs(5_000)).toBe(0);
    budget.tryWithdraw(5_000);
    expect(budget.exhaustedMs(6_000)).toBe(1_000);
  });

  test('a refusal of something dearer counts nothing while a usual attempt can be paid', () => {
    const budget = bucket({ reservePerSecond: 5 });
    expect(budget.tryWithdraw(0, 6)).toBe(false);
    expect(budget.exhaustedMs(1_000)).toBe(0);
  });

  test('of gRPC throttling: at half and below, while the floor is used up', () => {
    const budget = new GrpcThrottlingBudget({
      maxTokens: 2,
      tokenRatio: 0.5,
      floor: { attempts: 1, everyMs: 1_000 },
    });
    budget.fail(100);
    expect(budget.exhaustedMs(200)).toBe(0);
    expect(budget.tryWithdraw(200)).toBe(true);
    expect(budget.exhaustedMs(700)).toBe(500);
    // The floor is back 1,000 ms after the withdrawal.
    expect(budget.exhaustedMs(60_000)).toBe(1_000);
    budget.tryWithdraw(60_000);
    budget.deposit(60_250, 'success');
    expect(budget.exhaustedMs(70_000)).toBe(1_250);
  });

  test('of percent in flight, and of a quota', () => {
    const percent = new InFlightPercentBudget({ percent: 100, minimum: 0 });
    percent.begin(0);
    percent.begin(0);
    percent.end(1_000);
    percent.tryWithdraw(2_000);
    expect(percent.exhaustedMs(2_500)).toBe(500);
    percent.begin(3_000);
    expect(percent.exhaustedMs(9_000)).toBe(1_000);

    const stock = quota(10, 10);
    stock.tryWithdraw(0);
    expect(stock.tryWithdraw(500)).toBe(false);
    stock.deposit(1_000, 'refund', 10);
    expect(stock.exhaustedMs(9_000)).toBe(1_000);
  });

  test('begins without a refusal too, with the withdrawal or the failure that empties', () => {
    const percent = new InFlightPercentBudget({ percent: 0, minimum: 1 });
    percent.tryWithdraw(0);
    expect(percent.exhaustedMs(500)).toBe(500);
    percent.deposit(500, 'refund');
    expect(percent.exhaustedMs(9_000)).toBe(500);

    const throttling = grpcOfLibrary(2, 1);
    throttling.fail(0);
    expect(throttling.exhaustedMs(500)).toBe(500);

    const floor = { attempts: 1, everyMs: 1_000 };
    const stock = new FixedQuotaBudget({ capacity: 10, attemptCost: 10, successAmount: 1, floor });
    stock.tryWithdraw(0);
    expect(stock.exhaustedMs(500)).toBe(0);
    stock.tryWithdraw(500);
    // The floor is back after a second, although nobody looks.
    expect(stock.exhaustedMs(60_000)).toBe(1_000);
  });

  test('never falls when the clock is set back', () => {
    const budget = bucket({ ttlMs: 1_000 });
    budget.tryWithdraw(1_000_000);
    expect(budget.exhaustedMs(1_000_500)).toBe(500);
    expect(budget.exhaustedMs(0)).toBe(500);
    expect(budget.exhaustedMs(Number.NaN)).toBe(500);
    expect(budget.exhaustedMs(300)).toBe(800);
  });
});

describe('any step of the clock', () => {
  test('a step back neither stops the refill for its length nor refills at once', () => {
    const budget = bucket({ reservePerSecond: 2 });
    expect(drain(budget, 10_000_000)).toBe(2);
    expect(budget.tryWithdraw(0)).toBe(false);
    expect(budget.tryWithdraw(999)).toBe(false);
    expect(drain(budget, 1_000)).toBe(2);
  });

  test('NaN and Infinity are no time', () => {
    const budget = bucket({ reservePerSecond: 2 });
    expect(budget.tryWithdraw(Number.NaN)).toBe(true);
    expect(budget.tryWithdraw(Infinity)).toBe(true);
    expect(budget.tryWithdraw(Number.NaN)).toBe(false);
    expect(budget.tryWithdraw(50)).toBe(false);
    expect(budget.balance(1_049)).toBe(0);
    expect(budget.balance(1_050)).toBe(2);
  });

  test('a step forward is time that passed', () => {
    const budget = bucket({ reservePerSecond: 2 });
    budget.deposit(0, 'original', 100);
    expect(drain(budget, 0)).toBe(102);
    expect(budget.balance(1e12)).toBe(2);
    expect(drain(budget, 1e12)).toBe(2);
    expect(budget.balance(1e12 + 1_000)).toBe(2);
  });
});

describe('impossible budgets are refused, with the option, the bound and the value', () => {
  const refused = (make: () => unknown) => {
    try {
      make();
    } catch (error) {
      return error instanceof RangeError ? error.message : `not a RangeError: ${String(error)}`;
    }
    return 'accepted';
  };

  test.each<[Partial<TokenBucketOptions>, string]>([
    [{ ratio: 0 }, 'accepted'],
    [{ ratio: 1 }, 'accepted'],
    [{ ratio: 1.000_001 }, 'ratio must be in 0..1, got 1.000001'],
    [{ ratio: -0.1 }, 'ratio must be in 0..1, got -0.1'],
    [{ ratio: Number.NaN }, 'ratio must be in 0..1, got NaN'],
    [{ ratio: Infinity }, 'ratio must be in 0..1, got Infinity'],
    [{ reservePerSecond: -1 }, 'reservePerSecond must be in 0..1000000, got -1'],
    [{ reservePerSecond: 1e6 }, 'accepted'],
    [{ reservePerSecond: 1e6 + 1 }, 'reservePerSecond must be in 0..1000000, got 1000001'],
    [{ ttlMs: 0 }, 'ttlMs must be in 1000..60000, got 0'],
    [{ ttlMs: 999 }, 'ttlMs must be in 1000..60000, got 999'],
    [{ ttlMs: 1_000 }, 'accepted'],
    [{ ttlMs: 60_000 }, 'accepted'],
    [{ ttlMs: 60_001 }, 'ttlMs must be in 1000..60000, got 60001'],
    [{ ttlMs: Number.NaN }, 'ttlMs must be in 1000..60000, got NaN'],
    [{ attemptCost: 0 }, 'attemptCost must be in 0.000001..1000000, got 0'],
    [{ feed: 'success', reservePerSecond: 1 }, 'accepted'],
    [
      { feed: 'success', reservePerSecond: 0.9 },
      'reservePerSecond must be >= 1 where successes feed the budget, got 0.9: it is the floor without a success, ' +
        'and has to pay for one attempt in every ttlMs',
    ],
    [{ feed: 'success', ttlMs: 10_000, reservePerSecond: 0.1 }, 'accepted'],
    [{ feed: 'success', ttlMs: 3_000, reservePerSecond: 1 / 3 }, 'accepted'],
  ])('token bucket %o', (options, message) => {
    expect(refused(() => bucket(options))).toBe(message);
  });

  test('a word outside its list, or a text for a number, from a caller in plain JavaScript', () => {
    // What is wrong here is wrong to the types too.
    const wrong = (options: object) => refused(() => bucket(options as Partial<TokenBucketOptions>));
    expect(wrong({ unit: 'tokens' })).toBe('unit must be one of requests, time, weighted_cost, got tokens');
    expect(wrong({ feed: 'sucess' })).toBe('feed must be one of original, success, got sucess');
    expect(wrong({ onEmpty: 'queue' })).toBe(
      'onEmpty must be one of original_error, managed_background, degrade, got queue',
    );
    expect(wrong({ ratio: '0.2' })).toBe('ratio must be in 0..1, got 0.2');
  });

  test.each<[GrpcThrottlingOptions, string]>([
    [{ maxTokens: 1_000, tokenRatio: 1, floor: FLOOR }, 'accepted'],
    [{ maxTokens: 1_001, tokenRatio: 1, floor: FLOOR }, 'maxTokens must be in 0.001..1000, got 1001'],
    [{ maxTokens: 0, tokenRatio: 1, floor: FLOOR }, 'maxTokens must be in 0.001..1000, got 0'],
    [{ maxTokens: 10, tokenRatio: 0, floor: FLOOR }, 'tokenRatio must be in 0.001..1, got 0'],
    [{ maxTokens: 10, tokenRatio: 0.001, floor: FLOOR }, 'accepted'],
    [{ maxTokens: 10, tokenRatio: 0.000_9, floor: FLOOR }, 'tokenRatio must be in 0.001..1, got 0.0009'],
    [{ maxTokens: 10, tokenRatio: 1.1, floor: FLOOR }, 'tokenRatio must be in 0.001..1, got 1.1'],
    [{ maxTokens: 10, tokenRatio: 1.1, isDerived: true }, 'accepted'],
    [
      { maxTokens: 10, tokenRatio: 1, floor: { attempts: 0, everyMs: 1_000 } },
      'floor.attempts must be in 1..1000, got 0',
    ],
    [
      { maxTokens: 10, tokenRatio: 1, floor: { attempts: 1.5, everyMs: 1_000 } },
      'floor.attempts must be a whole number, got 1.5',
    ],
    [
      { maxTokens: 10, tokenRatio: 1, floor: { attempts: 1_000, everyMs: 999 } },
      'floor.everyMs must be in 1000..60000, got 999',
    ],
    [
      { maxTokens: 10, tokenRatio: 1, floor: { attempts: 1_001, everyMs: 60_000 } },
      'floor.attempts must be in 1..1000, got 1001',
    ],
  ])('gRPC throttling %o', (options, message) => {
    expect(refused(() => new GrpcThrottlingBudget(options))).toBe(message);
  });

  test('R-24: a budget that successes feed has a floor, or is only shown', () => {
    // The types ask for it as well.
    const without = (options: object) => options as FixedQuotaOptions & GrpcThrottlingOptions;
    const message = 'floor must be declared where successes feed the budget, got undefined';
    expect(refused(() => new GrpcThrottlingBudget(without({ maxTokens: 10, tokenRatio: 0.1 })))).toBe(
      message,
    );
    expect(refused(() => new FixedQuotaBudget(without(AWS_QUOTA)))).toBe(message);
  });

  test.each([
    [0, 0, 'accepted'],
    [100, 3, 'accepted'],
    [100.5, 3, 'percent must be in 0..100, got 100.5'],
    [-1, 3, 'percent must be in 0..100, got -1'],
    [20, -1, 'minimum must be in 0..1000000, got -1'],
    [20, 0.5, 'minimum must be a whole number, got 0.5'],
    [20, Number.NaN, 'minimum must be in 0..1000000, got NaN'],
  ])('percent in flight %d, minimum %d', (percent, minimum, message) => {
    expect(refused(() => new InFlightPercentBudget({ percent, minimum }))).toBe(message);
  });

  test.each([
    [500, 10, 1, 'accepted'],
    [10, 10, 10, 'accepted'],
    [9, 10, 1, 'capacity must be in 10..1000000, got 9'],
    [1e6 + 1, 10, 1, 'capacity must be in 10..1000000, got 1000001'],
    [500, 0, 1, 'attemptCost must be in 0.000001..1000000, got 0'],
    [500, 10, 0, 'successAmount must be in 0.000001..500, got 0'],
    [500, 10, 501, 'successAmount must be in 0.000001..500, got 501'],
    [500, Number.NaN, 1, 'attemptCost must be in 0.000001..1000000, got NaN'],
  ])('fixed quota of %d, cost %d, success %d', (capacity, attemptCost, successAmount, message) => {
    const options = { capacity, attemptCost, successAmount, floor: FLOOR };
    expect(refused(() => new FixedQuotaBudget(options))).toBe(message);
  });
});

describe('rule 13: the definition of every budget can be seen', () => {
  const policy = { onEmpty: 'managed_background', policyVersion: '7' } as const;
  const budgets: readonly RetryBudget[] = [
    bucket({ ...policy, unit: 'time', attemptCost: 40 }),
    new GrpcThrottlingBudget({ ...policy, maxTokens: 10, tokenRatio: 1, floor: FLOOR }),
    new InFlightPercentBudget({ ...policy, percent: 20, minimum: 3 }),
    new FixedQuotaBudget({ ...AWS_QUOTA, isDerived: true }),
  ];

  test('unit, feed, behaviour on empty, policy version, and whether it is only shown', () => {
    const shown = budgets.map((budget) => {
      const { unit, feed, onEmpty, policyVersion, isDerived, attemptCost } = budget;
      return [unit, feed, onEmpty, policyVersion, isDerived, attemptCost];
    });
    expect(shown).toEqual([
      ['time', 'original', 'managed_background', '7', false, 40],
      ['requests', 'success', 'managed_background', '7', false, 1],
      ['concurrent_attempts', 'in_flight', 'managed_background', '7', false, 1],
      ['weighted_cost', 'success', 'original_error', undefined, true, 10],
    ]);
    expect(budgets.map(({ model }) => model)).toEqual(RETRY_BUDGET_MODELS);
  });

  test('words are of their lists, and only the feed and a refund are deposits', () => {
    for (const budget of budgets) {
      expect(RETRY_BUDGET_UNITS).toContain(budget.unit);
      expect(RETRY_BUDGET_FEEDS).toContain(budget.feed);
      const fed = DEPOSIT_SOURCES.filter((source) => source !== 'refund' && budget.deposit(0, source));
      expect(fed).toEqual(DEPOSIT_SOURCES.filter((source) => source === budget.feed));
    }
  });
});
