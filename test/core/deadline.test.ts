import { describe, expect, test } from 'vitest';
import { abortTimeoutMs, isExpired, MAX_TIMER_MS, remaining, timerMs } from '../../src/core/deadline.ts';

const THIRTY_DAYS_MS = 2_592_000_000;

describe('expiry', () => {
  test('is at the deadline itself: last instant with time left, the deadline, the first instant after', () => {
    expect([999, 1_000, 1_001].map((now) => isExpired(1_000, now))).toEqual([false, true, true]);
    expect([999, 1_000, 1_001].map((now) => remaining(1_000, now))).toEqual([1, 0, -1]);
  });

  test('a part of a millisecond is still time', () => {
    expect(isExpired(1_000, 999.999)).toBe(false);
  });

  test('without a deadline nothing expires', () => {
    expect(remaining(Infinity, 5)).toBe(Infinity);
    expect(isExpired(Infinity, Number.MAX_VALUE)).toBe(false);
  });

  test('C1: a budget of 30 days is not expired after 1 s', () => {
    expect(isExpired(THIRTY_DAYS_MS, 1_000)).toBe(false);
    expect(remaining(THIRTY_DAYS_MS, 1_000)).toBe(2_591_999_000);
  });
});

describe('timerMs', () => {
  test.each([
    ['C1: 30 days', THIRTY_DAYS_MS, 2_147_483_647],
    ['C3: 2 days', 172_800_000, 172_800_000],
    ['C4: negative', -250, 0],
    ['nothing left', 0, 0],
    ['negative zero', -0, 0],
    ['a fraction', 749.6, 749.6],
    ['last value that fits', 2_147_483_647, 2_147_483_647],
    ['first value that does not', 2_147_483_648, 2_147_483_647],
    ['a fraction above the last value', 2_147_483_647.5, 2_147_483_647],
    ['no limit', Infinity, 2_147_483_647],
    ['C4: NaN', NaN, 2_147_483_647],
    ['over for ever', -Infinity, 0],
  ])('%s: %d gives %d', (_name, ms, expected) => {
    expect(timerMs(ms)).toBe(expected);
  });

  test('the bound is the one of Node', () => {
    expect(MAX_TIMER_MS).toBe(2 ** 31 - 1);
  });
});

describe('abortTimeoutMs', () => {
  test.each([
    ['C5: 749.6', 749.6, 749],
    ['C5: -1', -1, 0],
    ['C5: Infinity', Infinity, undefined],
    ['NaN', NaN, undefined],
    ['-Infinity', -Infinity, 0],
    ['zero', 0, 0],
    ['less than 1 ms', 0.9, 0],
    ['C1: 30 days', THIRTY_DAYS_MS, 2_147_483_647],
    ['first value that does not fit', 2 ** 31, 2_147_483_647],
  ])('%s: %d gives %s', (_name, ms, expected) => {
    expect(abortTimeoutMs(ms)).toBe(expected);
  });

  test('C5: AbortSignal.timeout takes every value it gives', () => {
    for (const ms of [749.6, -1, 0, THIRTY_DAYS_MS, -Infinity]) {
      expect(() => AbortSignal.timeout(abortTimeoutMs(ms) ?? 0)).not.toThrow();
    }
  });
});
