import { describe, expect, test } from 'vitest';
import { formatGrpcTimeout, parseGrpcTimeout } from '../../src/core/wire-grpc.ts';

const MALFORMED = { ms: undefined, fault: 'malformed' };

describe('parseGrpcTimeout', () => {
  test.each([
    ['A1: minutes', '1M', 60_000],
    ['A1: milliseconds', '1m', 1],
    ['A2: eight digits', '99999999S', 99_999_999_000],
    ['A7: the largest value', '99999999H', 359_999_996_400_000],
    ['A14: less than a millisecond', '999u', 0.999],
    ['A14: nanoseconds', '99999999n', 99.999999],
    ['a microsecond count that a factor of 0.001 would raise', '9u', 0.009],
    ['a nanosecond count that a factor would change', '5n', 0.000005],
    ['hours', '2H', 7_200_000],
    ['zeros in front', '00000005S', 5_000],
    ['expired', '0S', 0],
    ['one nanosecond', '1n', 0.000001],
    ['blanks around it', ' 5S ', 5_000],
  ])('%s: %s', (_name, text, ms) => {
    expect(parseGrpcTimeout(text)).toEqual({ ms, fault: undefined });
  });

  test.each(['1s', '5s', '1h', '1N', '1U'])('A1: the unit is case-sensitive, %s is malformed', (text) => {
    expect(parseGrpcTimeout(text)).toEqual(MALFORMED);
  });

  test.each(['100000000S', '000000001S'])('A2: nine digits are malformed (%s)', (text) => {
    expect(parseGrpcTimeout(text)).toEqual(MALFORMED);
  });

  test.each(['-1m', '1.5S', '1e3m', 'abc9mxyz', '+5S', '5S;'])(
    'A3: %s is malformed, though grpc-js serves it',
    (text) => {
      expect(parseGrpcTimeout(text)).toEqual(MALFORMED);
    },
  );

  test.each(['1 S', '1\tS'])('A17: a blank before the unit is malformed (%j)', (text) => {
    expect(parseGrpcTimeout(text)).toEqual(MALFORMED);
  });

  test.each(['', 'S', '5', '5SS', '5\u017f', '٣S', 'm5'])('%j is malformed', (text) => {
    expect(parseGrpcTimeout(text)).toEqual(MALFORMED);
  });

  test('A12: of repeated headers the smallest counts, whatever the units', () => {
    expect(parseGrpcTimeout('1S, 500m, 1M')).toEqual({ ms: 500, fault: 'repeated' });
    expect(parseGrpcTimeout('5s, 1S')).toEqual({ ms: 1_000, fault: 'repeated' });
  });
});

describe('formatGrpcTimeout', () => {
  test.each([
    ['B4: 250 ms, not in nanoseconds', 250, '250m'],
    ['B4: 123,456,789 ms', 123_456_789, '123456S'],
    ['B4, C3: two days', 172_800_000, '172800S'],
    ['last value in milliseconds', 99_999_999, '99999999m'],
    ['between the last and the first', 99_999_999.9, '99999999m'],
    ['first value in seconds', 100_000_000, '100000S'],
    ['last value in seconds', 99_999_999_999, '99999999S'],
    ['first value in minutes', 100_000_000_000, '1666666M'],
    ['last value in minutes', 5_999_999_999_999, '99999999M'],
    ['first value in hours', 6_000_000_000_000, '1666666H'],
    ['A7: the largest value', 359_999_996_400_000, '99999999H'],
    ['beyond the largest value', Number.MAX_VALUE, '99999999H'],
    ['a fraction', 749.6, '749m'],
    ['A14: less than a millisecond', 0.999, '999u'],
    ['one microsecond', 0.001, '1u'],
    ['less than a microsecond', 0.0005, '500n'],
    ['B3: nothing left', 0, '0m'],
    ['B3: 10 ms too late', -10, '0m'],
    ['less than a nanosecond', 1e-7, '0m'],
    ['just below a millisecond', 1 - Number.EPSILON / 2, '999u'],
  ])('%s: %d', (_name, ms, text) => {
    expect(formatGrpcTimeout(ms)).toBe(text);
  });

  test('writes nothing where there is no limit or none is known', () => {
    expect([Infinity, -Infinity, NaN].map(formatGrpcTimeout)).toEqual([undefined, undefined, undefined]);
  });
});
