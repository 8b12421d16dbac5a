import { describe, expect, test } from 'vitest';
import { callerToken, formatTimeBudget, parseTimeBudget } from '../../src/core/wire-time-budget.ts';

const EMPTY = {
  remainingMs: undefined,
  fault: undefined,
  attempt: undefined,
  repeated: false,
  caller: undefined,
  priority: undefined,
  workload: undefined,
  sentWallMs: undefined,
};

describe('parseTimeBudget of what we write', () => {
  test('all members', () => {
    const text =
      'remaining=749, attempt=2, repeated, caller=checkout, priority=critical, workload=replay, sent=1764410400000';
    expect(parseTimeBudget(text)).toEqual({
      remainingMs: 749,
      fault: undefined,
      attempt: 2,
      repeated: true,
      caller: 'checkout',
      priority: 'critical',
      workload: 'replay',
      sentWallMs: 1_764_410_400_000,
    });
  });

  test('only some members, also without a budget', () => {
    expect(parseTimeBudget('remaining=0')).toEqual({ ...EMPTY, remainingMs: 0 });
    expect(parseTimeBudget('attempt=1, caller=a')).toEqual({ ...EMPTY, attempt: 1, caller: 'a' });
    expect(parseTimeBudget('repeated')).toEqual({ ...EMPTY, repeated: true });
    expect(parseTimeBudget('')).toEqual(EMPTY);
  });

  test('ten years are out of range', () => {
    expect(parseTimeBudget('remaining=315359999999')).toEqual({ ...EMPTY, remainingMs: 315_359_999_999 });
    expect(parseTimeBudget('remaining=315360000000, attempt=1')).toEqual({
      ...EMPTY,
      fault: 'out_of_range',
      attempt: 1,
    });
  });
});

describe('parseTimeBudget of any other dictionary', () => {
  test('the order, blanks, parameters and unknown members do not matter', () => {
    const text =
      'future=(1 2);a, attempt=3 ,\tcaller=a/b:c;v=1,note="a, b", remaining=749;unit=ms, repeated=?1';
    expect(parseTimeBudget(text)).toEqual({
      ...EMPTY,
      remainingMs: 749,
      attempt: 3,
      repeated: true,
      caller: 'a/b:c',
    });
  });

  test.each([
    ['remaining', 'malformed'],
    ['remaining=?1', 'malformed'],
    ['remaining=1.5', 'malformed'],
    ['remaining="749"', 'malformed'],
    ['remaining=abc', 'malformed'],
    ['remaining=(749)', 'malformed'],
    ['remaining=', 'malformed'],
    ['remaining=749,', 'malformed'],
    ['remaining=749 attempt=1', 'malformed'],
    ['remaining=1234567890123456', 'malformed'],
    [', remaining=749', 'malformed'],
    ['Remaining=749', 'malformed'],
    ['remaining=749\n', 'malformed'],
    ['remaining=749, caller=é', 'malformed'],
    ['remaining=-1', 'out_of_range'],
    ['remaining=315360000000;a', 'out_of_range'],
  ])('%j is %s', (text, fault) => {
    expect(parseTimeBudget(text)).toEqual({ ...EMPTY, fault });
  });

  test('-0 is 0', () => {
    expect(parseTimeBudget('remaining=-0')).toEqual({ ...EMPTY, remainingMs: 0 });
  });

  test.each(['attempt=0', 'attempt=-1', 'attempt=10000', 'attempt=1.5', 'attempt=x', 'attempt'])(
    'an attempt that is none is absent: %s',
    (member) => {
      expect(parseTimeBudget(`remaining=749, ${member}`)).toEqual({ ...EMPTY, remainingMs: 749 });
    },
  );

  test('the last attempt that is counted is 9,999', () => {
    expect(parseTimeBudget('attempt=9999').attempt).toBe(9_999);
  });

  test('repeated=?0 is false', () => {
    expect(parseTimeBudget('remaining=749, repeated=?0').repeated).toBe(false);
  });

  test('M-24: a workload that follows from the attempt is neither written nor read, and no other word', () => {
    expect(formatTimeBudget({ attempt: 2, workload: 'retry' })).toBe('attempt=2');
    expect(formatTimeBudget({ attempt: 1, workload: 'live' })).toBe('attempt=1');
    for (const word of ['live', 'retry', 'batch', '"replay"']) {
      expect(parseTimeBudget(`remaining=749, workload=${word}`).workload, word).toBeUndefined();
    }
    expect(parseTimeBudget('workload=probe, remaining=749').workload).toBe('probe');
  });

  test('P-15: a priority outside the list is absent', () => {
    expect(parseTimeBudget('remaining=749, priority=urgent').priority).toBeUndefined();
    expect(parseTimeBudget('remaining=749, priority="critical"').priority).toBeUndefined();
    expect(parseTimeBudget('remaining=749, priority=low').priority).toBe('low');
  });

  test('a caller has at most 64 characters', () => {
    expect(parseTimeBudget(`remaining=1, caller=${'a'.repeat(64)}`).caller).toBe('a'.repeat(64));
    expect(parseTimeBudget(`remaining=1, caller=${'a'.repeat(65)}`)).toEqual({ ...EMPTY, remainingMs: 1 });
  });

  test('256 characters are read, 257 are too long and not cut off', () => {
    const text = (length: number) => `remaining=749, pad=${'a'.repeat(length - 19)}`;
    expect(parseTimeBudget(text(256))).toEqual({ ...EMPTY, remainingMs: 749 });
    expect(parseTimeBudget(text(257))).toEqual({ ...EMPTY, fault: 'too_long' });
  });
});

describe('parseTimeBudget of a header sent twice', () => {
  test.each([
    'remaining=500, attempt=1, remaining=200, attempt=2',
    'remaining=200, attempt=2, remaining=500, attempt=1',
  ])('A12: the smaller counts with its own members, in either order: %s', (text) => {
    expect(parseTimeBudget(text)).toEqual({ ...EMPTY, remainingMs: 200, fault: 'repeated', attempt: 2 });
  });

  test('A12: an invalid one is passed over', () => {
    expect(parseTimeBudget('remaining=-5, remaining=300')).toEqual({
      ...EMPTY,
      remainingMs: 300,
      fault: 'repeated',
    });
  });

  test('without a valid one the fault stays', () => {
    expect(parseTimeBudget('remaining=-5, remaining=-6').fault).toBe('out_of_range');
  });

  test('a comma inside a string begins no member', () => {
    expect(parseTimeBudget('remaining=500, note="a, remaining=1"')).toEqual({ ...EMPTY, remainingMs: 500 });
  });

  test('a member whose name only begins like it is another one', () => {
    expect(parseTimeBudget('remaining=500, remaining-max=100')).toEqual({ ...EMPTY, remainingMs: 500 });
  });

  test('one that is no dictionary spoils the field (RFC 9651, 4.2)', () => {
    expect(parseTimeBudget('remaining=500, remaining=200, !')).toEqual({ ...EMPTY, fault: 'malformed' });
  });
});

describe('formatTimeBudget', () => {
  test('writes all members in one order', () => {
    const text = formatTimeBudget({
      sentWallMs: 1_764_410_400_000.9,
      priority: 'critical',
      workload: 'replay',
      caller: 'checkout',
      repeated: true,
      attempt: 2,
      remainingMs: 749.6,
    });
    expect(text).toBe(
      'remaining=749, attempt=2, repeated, caller=checkout, priority=critical, workload=replay, sent=1764410400000',
    );
  });

  test('leaves out what is absent, false or unset', () => {
    expect(formatTimeBudget({ attempt: 1, repeated: false, priority: 'unset' })).toBe('attempt=1');
    expect(formatTimeBudget({})).toBeUndefined();
  });

  test.each([
    [0.999, 'remaining=0'],
    [0, 'remaining=0'],
    [-250, 'remaining=0'],
    [315_360_000_000, 'remaining=315359999999'],
    [Infinity, undefined],
    [NaN, undefined],
  ])('writes %d left as %s', (remainingMs, text) => {
    expect(formatTimeBudget({ remainingMs })).toBe(text);
  });

  test('writes no attempt below 1 and none beyond 9,999', () => {
    expect([0, NaN, -1].map((attempt) => formatTimeBudget({ attempt }))).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(formatTimeBudget({ attempt: 10_000 })).toBe('attempt=9999');
  });

  test.each(['', 'a b', 'a\r\nx: y', '9lives', 'é', 'a,b', 'a'.repeat(65)])(
    'leaves out a caller that is no token: %j',
    (caller) => {
      expect(formatTimeBudget({ remainingMs: 1, caller })).toBe('remaining=1');
    },
  );

  test('the longest header fits into what is read', () => {
    const text = formatTimeBudget({
      remainingMs: 1e30,
      attempt: 1e9,
      repeated: true,
      caller: 'a'.repeat(64),
      priority: 'critical',
      workload: 'background',
      sentWallMs: 1e30,
    });
    expect(text?.length).toBe(181);
    expect(parseTimeBudget(text ?? '')).toEqual({
      remainingMs: 315_359_999_999,
      fault: undefined,
      attempt: 9_999,
      repeated: true,
      caller: 'a'.repeat(64),
      priority: 'critical',
      workload: 'background',
      sentWallMs: 999_999_999_999_999,
    });
  });
});

describe('callerToken', () => {
  test.each([
    ['checkout', 'checkout'],
    ['Checkout Service', 'Checkout_Service'],
    ['@shop/checkout', '*_shop/checkout'],
    ['9lives', '*9lives'],
    ['каса', '*____'],
    ['a\r\nb', 'a__b'],
    ['', undefined],
  ])('%j becomes %s', (name, token) => {
    expect(callerToken(name)).toBe(token);
  });

  test('is cut off at 64 characters', () => {
    expect(callerToken('a'.repeat(65))).toBe('a'.repeat(64));
    expect(callerToken('9'.repeat(64))).toBe(`*${'9'.repeat(63)}`);
  });
});
