import { describe, expect, test } from 'vitest';
import { replayRate, replayStops, spareOf } from '../../src/core/replay-limit.ts';

const LIMITS = { maxPerSecond: 50, latencyLimitMs: 200, liveUsefulLifeMs: 1_000, duplicateLimit: 0.1 };
const CALM = { latencyMs: 200, liveOldestMs: 999, duplicateRatio: 0.1, isThrottled: false };

describe('L-34, A-14: each of the four signals stops a replay', () => {
  test.each([
    ['latency', { latencyMs: 200.1 }],
    ['live_age', { liveOldestMs: 1_000 }],
    ['duplicates', { duplicateRatio: 0.11 }],
    ['throttled', { isThrottled: true }],
  ] as const)('%s, from the first value beyond its limit; the last within does not', (stop, facts) => {
    expect(replayStops(CALM, LIMITS)).toEqual([]);
    expect(replayStops({ ...CALM, ...facts }, LIMITS)).toEqual([stop]);
    expect(replayRate({ ...CALM, ...facts }, LIMITS)).toBe(0);
  });

  test('all at once, in the order of their list', () => {
    const facts = { latencyMs: 999, liveOldestMs: 9_999, duplicateRatio: 1, isThrottled: true };
    expect(replayStops(facts, LIMITS)).toEqual(['latency', 'live_age', 'duplicates', 'throttled']);
  });

  test('what is not seen, or has no limit, stops nothing', () => {
    expect(replayStops({}, LIMITS)).toEqual([]);
    const facts = { latencyMs: 999, liveOldestMs: 9_999, duplicateRatio: 1 };
    expect(replayStops(facts, { maxPerSecond: 1 })).toEqual([]);
  });
});

describe('L-32: released is what its own limit and the spare capacity allow', () => {
  test.each([
    ['no capacity is told: the limit', {}, 50],
    ['much is spare: the limit', { capacityPerSecond: 200, livePerSecond: 80 }, 50],
    ['little is spare: that', { capacityPerSecond: 100, livePerSecond: 80 }, 20],
    ['nothing is spare', { capacityPerSecond: 80, livePerSecond: 80 }, 0],
    ['live work alone is too much', { capacityPerSecond: 60, livePerSecond: 80 }, 0],
  ])('%s', (_, facts, rate) => {
    expect(replayRate({ ...CALM, ...facts }, LIMITS)).toBe(rate);
  });

  test('the estimate may be negative, and is none where a term is missing', () => {
    expect(spareOf({ capacityPerSecond: 60, livePerSecond: 80 })).toBe(-20);
    expect(spareOf({ capacityPerSecond: 60 })).toBeUndefined();
    expect(spareOf({ livePerSecond: 80 })).toBeUndefined();
  });
});
