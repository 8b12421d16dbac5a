import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  attemptsPerOriginal,
  backlogAfter,
  backlogAt,
  breakEvenRepeatsPerSecond,
  drainedAtMs,
  growthPerSecond,
  type RateStep,
  timeToDrainMs,
  workOf,
} from '../../src/core/backlog.ts';

const SECOND_MS = 1_000;
const CAPACITY_BACK_MS = 120 * SECOND_MS;

/** 80/s arrive; 60/s are completed for two minutes, then 100/s. */
const steps = (repeatsPerSecond: number, repeatsUntilS = Infinity): RateStep[] => {
  const rates = [
    { fromS: 0, capacityPerSecond: 60 },
    { fromS: 120, capacityPerSecond: 100 },
    { fromS: repeatsUntilS, capacityPerSecond: 100 },
  ];
  return rates
    .filter(({ fromS }, i) => i === 0 || (fromS < Infinity && fromS > (rates[i - 1]?.fromS ?? 0)))
    .map(({ fromS, capacityPerSecond }) => ({
      fromMs: fromS * SECOND_MS,
      originalsPerSecond: 80,
      repeatsPerSecond: fromS < repeatsUntilS ? repeatsPerSecond : 0,
      capacityPerSecond,
    }));
};
const at = (all: readonly RateStep[], second: number) => backlogAt(all, second * SECOND_MS).backlog;

describe('N-01: without repeats', () => {
  test.each([
    [0, 0],
    [60, 1_200],
    [120, 2_400],
    [180, 1_200],
    [240, 0],
    [241, 0],
    [3_600, 0],
  ])('f(%d) = %d', (second, backlog) => {
    expect(at(steps(0), second)).toBe(backlog);
  });

  test('grows by 20 per second, then shrinks by 20, and is empty at 240 s', () => {
    const [slow, back] = steps(0).map(growthPerSecond);
    expect([slow, back]).toEqual([20, -20]);
    expect(drainedAtMs(steps(0), CAPACITY_BACK_MS)).toBe(240 * SECOND_MS);
    expect(drainedAtMs(steps(0), SECOND_MS)).toBe(240 * SECOND_MS);
    expect(drainedAtMs(steps(0), 0)).toBe(0);
    expect(drainedAtMs(steps(0), 300 * SECOND_MS)).toBe(300 * SECOND_MS);
  });
});

describe('N-02: with 40 repeats per second all the time', () => {
  test.each([
    [60, 3_600],
    [120, 7_200],
    [240, 9_600],
    [360, 12_000],
  ])('f(%d) = %d', (second, backlog) => {
    expect(at(steps(40), second)).toBe(backlog);
  });

  test('still grows by 20 per second after the capacity is back, and does not drain', () => {
    expect(steps(40).map(growthPerSecond)).toEqual([60, 20]);
    expect(drainedAtMs(steps(40), CAPACITY_BACK_MS)).toBe(Infinity);
    const growing = { originalsPerSecond: 80, repeatsPerSecond: 40, capacityPerSecond: 100 };
    expect([timeToDrainMs(0, growing), timeToDrainMs(1, growing)]).toEqual([0, Infinity]);
    expect(
      timeToDrainMs(7_200, { originalsPerSecond: 80, repeatsPerSecond: 40, capacityPerSecond: 100 }),
    ).toBe(Infinity);
  });
});

describe('N-03: never negative, and changed by admitted minus completed', () => {
  test('with spare capacity and nothing waiting it stays 0, and what is admitted is completed', () => {
    const rates = { originalsPerSecond: 80, capacityPerSecond: 100 };
    expect(backlogAfter(0, rates, 60_000)).toBe(0);
    expect(backlogAt([{ fromMs: 0, ...rates }], 60_000)).toEqual({
      backlog: 0,
      admitted: 4_800,
      completed: 4_800,
    });
  });

  test('what is admitted is completed or waits', () => {
    expect(backlogAt(steps(40), 360 * SECOND_MS)).toEqual({
      backlog: 12_000,
      admitted: 43_200,
      completed: 31_200,
    });
    expect(backlogAt(steps(0), 300 * SECOND_MS)).toEqual({ backlog: 0, admitted: 24_000, completed: 24_000 });
  });

  test('over any rates, in one stride or in many', () => {
    const rate = fc.integer({ min: 0, max: 200 });
    const step = fc.record({
      ms: fc.integer({ min: 1, max: 100 }).map((seconds) => seconds * SECOND_MS),
      originalsPerSecond: rate,
      repeatsPerSecond: rate,
      capacityPerSecond: rate,
    });
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 0, max: 5_000 }),
        (parts, initial) => {
          let fromMs = 0;
          const all = parts.map(({ ms, ...rates }) => {
            fromMs += ms;
            return { fromMs: fromMs - ms, ...rates };
          });
          let walked = initial;
          for (const { ms, ...rates } of parts) {
            for (let i = 0; i < ms; i += SECOND_MS) walked = backlogAfter(walked, rates, SECOND_MS);
          }
          const { backlog, admitted, completed } = backlogAt(all, fromMs, initial);
          expect(backlog).toBe(walked);
          expect(backlog).toBeGreaterThanOrEqual(0);
          expect(initial + admitted - completed).toBe(backlog);
          const drained = drainedAtMs(all, fromMs, initial);
          if (drained < Infinity) expect(backlogAt(all, drained, initial).backlog).toBeCloseTo(0, 6);
        },
      ),
    );
  });
});

describe('N-04: from the same model', () => {
  test('recovery lag after the capacity is back: 2,400 / 20 = 120 s', () => {
    expect(drainedAtMs(steps(0), CAPACITY_BACK_MS) - CAPACITY_BACK_MS).toBe(120 * SECOND_MS);
    expect(timeToDrainMs(2_400, { originalsPerSecond: 80, capacityPerSecond: 100 })).toBe(120 * SECOND_MS);
  });

  test('break-even after the recovery: 20 repeats per second keep the 4,800 of 120 s for ever', () => {
    expect(breakEvenRepeatsPerSecond({ originalsPerSecond: 80, capacityPerSecond: 100 })).toBe(20);
    for (const second of [120, 360, 86_400]) expect(at(steps(20), second)).toBe(4_800);
    expect(drainedAtMs(steps(20), CAPACITY_BACK_MS)).toBe(Infinity);
    expect(drainedAtMs(steps(19), CAPACITY_BACK_MS)).toBeLessThan(Infinity);
  });

  test('no restraint in repeating helps while originals alone are too many', () => {
    expect(breakEvenRepeatsPerSecond({ originalsPerSecond: 80, capacityPerSecond: 60 })).toBe(-20);
  });

  test('repeats stop at 120 s: 7,200 / 20 = 360 s more, empty at 480 s', () => {
    expect(at(steps(40, 120), 120)).toBe(7_200);
    expect(drainedAtMs(steps(40, 120), CAPACITY_BACK_MS)).toBe(480 * SECOND_MS);
    expect(at(steps(40, 120), 480)).toBe(0);
  });

  test('repeats stop at 360 s: 12,000 / 20 = 600 s more, empty at 960 s', () => {
    expect(at(steps(40, 360), 360)).toBe(12_000);
    expect(drainedAtMs(steps(40, 360), CAPACITY_BACK_MS)).toBe(960 * SECOND_MS);
    expect(at(steps(40, 360), 960)).toBe(0);
    expect(at(steps(40, 360), 959)).toBe(20);
  });

  test('attempts per original: 120 / 80 = 1.5, and none without originals', () => {
    expect(attemptsPerOriginal({ originalsPerSecond: 80, repeatsPerSecond: 40, capacityPerSecond: 60 })).toBe(
      1.5,
    );
    expect(attemptsPerOriginal({ originalsPerSecond: 80, capacityPerSecond: 60 })).toBe(1);
    expect(attemptsPerOriginal({ originalsPerSecond: 0, repeatsPerSecond: 40, capacityPerSecond: 60 })).toBe(
      undefined,
    );
  });
});

test('N-21: ten slow reports are more than a thousand small updates', () => {
  const reports = workOf([{ count: 10, cost: 200 }]);
  const updates = workOf([{ count: 1_000, cost: 1 }]);
  expect([reports, updates]).toEqual([2_000, 1_000]);
  // The same queues at the same capacity in cost units: twice as long until the reports are done.
  const rates = { originalsPerSecond: 0, capacityPerSecond: 50 };
  expect([timeToDrainMs(reports, rates), timeToDrainMs(updates, rates)]).toEqual([40_000, 20_000]);
  expect(
    workOf([
      { count: 10, cost: 200 },
      { count: 1_000, cost: 1 },
    ]),
  ).toBe(3_000);
});

test('before the first step nothing has happened', () => {
  const later = [{ fromMs: 1_000, originalsPerSecond: 10, capacityPerSecond: 0 }];
  expect(backlogAt(later, 500, 7)).toEqual({ backlog: 7, admitted: 0, completed: 0 });
  expect(backlogAt(later, 2_000, 7).backlog).toBe(17);
  expect([drainedAtMs(later, 500), drainedAtMs(later, 500, 7)]).toEqual([500, Infinity]);
  expect(backlogAt([], 500, 7)).toEqual({ backlog: 7, admitted: 0, completed: 0 });
});

test.each([
  [[{ fromMs: 0 }, { fromMs: 0 }], 'steps[1].fromMs must be > 0, got 0'],
  [[{ fromMs: Number.NaN }], 'steps[0].fromMs must be > -Infinity, got NaN'],
  [[{ originalsPerSecond: -1 }], 'steps[0].originalsPerSecond must be a number >= 0, got -1'],
  [[{ repeatsPerSecond: Infinity }], 'steps[0].repeatsPerSecond must be a number >= 0, got Infinity'],
  [[{ capacityPerSecond: Number.NaN }], 'steps[0].capacityPerSecond must be a number >= 0, got NaN'],
])('%o is refused', (parts, message) => {
  const all = parts.map((part) => ({ fromMs: 0, originalsPerSecond: 1, capacityPerSecond: 1, ...part }));
  expect(() => backlogAt(all, 1_000)).toThrow(new RangeError(message));
  expect(() => drainedAtMs(all, 1_000)).toThrow(new RangeError(message));
});
