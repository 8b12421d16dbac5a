import { describe, expect, test } from 'vitest';
import {
  formatConnectTimeout,
  formatEnvoyTimeout,
  formatRequestTimeout,
  parseConnectTimeout,
  parseEnvoyTimeout,
  parseRequestTimeout,
} from '../../src/core/wire.ts';

const value = (ms: number) => ({ ms, fault: undefined });
const repeated = (ms: number) => ({ ms, fault: 'repeated' });
const fault = (name: string) => ({ ms: undefined, fault: name });
const noLimit = { ms: undefined, fault: undefined };

describe('connect-timeout-ms', () => {
  test.each(['1e3', '-5', '100m', '12abc', '', '12345678901'])('A8: %j is malformed', (text) => {
    expect(parseConnectTimeout(text)).toEqual(fault('malformed'));
  });

  test('A8: 0 is valid and expired', () => {
    expect(parseConnectTimeout('0')).toEqual(value(0));
  });

  test('A8: 1234567890 is that many milliseconds', () => {
    expect(parseConnectTimeout('1234567890')).toEqual(value(1_234_567_890));
  });

  test('ten digits are the last accepted, eleven the first refused, zeros in front included', () => {
    expect(parseConnectTimeout('9999999999')).toEqual(value(9_999_999_999));
    expect(parseConnectTimeout('10000000000')).toEqual(fault('malformed'));
    expect(parseConnectTimeout('0000000001')).toEqual(value(1));
    expect(parseConnectTimeout('00000000001')).toEqual(fault('malformed'));
  });

  test.each([
    [749.6, '749'],
    [0, '0'],
    [-250, '0'],
    [9_999_999_999, '9999999999'],
    [10_000_000_000, '9999999999'],
    [NaN, undefined],
    [Infinity, undefined],
    [-Infinity, undefined],
  ])('writes %d as %s', (ms, text) => {
    expect(formatConnectTimeout(ms)).toBe(text);
  });
});

describe('x-request-timeout-ms', () => {
  test('A16: a value of 100,000,000 ms is read as it is', () => {
    expect(parseRequestTimeout('100000000')).toEqual(value(100_000_000));
  });

  test('0 is expired, not absent', () => {
    expect(parseRequestTimeout('0')).toEqual(value(0));
  });

  test.each([
    'abc',
    '+5',
    '-1',
    '1.5',
    '1e3',
    '0x10',
    '5;',
    '5:', // the character after 9
    '5/', // the one before 0
    '5 0',
    'Infinity',
    'NaN',
    '٣', // an Arabic-Indic digit
    '５', // a full-width digit
    '\u00a05', // a no-break space is not whitespace of HTTP
    '5\n',
    '\u00005',
  ])('B-10: %j is malformed', (text) => {
    expect(parseRequestTimeout(text)).toEqual(fault('malformed'));
  });

  test('blanks and tabs around the value are not part of it', () => {
    expect(parseRequestTimeout(' \t500\t ')).toEqual(value(500));
  });

  test('the last millisecond below ten years is accepted, ten years are out of range', () => {
    expect(parseRequestTimeout('315359999999')).toEqual(value(315_359_999_999));
    expect(parseRequestTimeout('315360000000')).toEqual(fault('out_of_range'));
  });

  test('an absolute time in milliseconds is found out', () => {
    expect(parseRequestTimeout('1764410400000')).toEqual(fault('out_of_range'));
  });

  test('numbers beyond every integer are out of range, zeros in front are only zeros', () => {
    expect(parseRequestTimeout('9'.repeat(256))).toEqual(fault('out_of_range'));
    expect(parseRequestTimeout(`${'0'.repeat(253)}500`)).toEqual(value(500));
  });

  test('256 characters are read, 257 are too long', () => {
    expect(parseRequestTimeout(`${'0'.repeat(255)}7`)).toEqual(value(7));
    expect(parseRequestTimeout(`${'0'.repeat(256)}7`)).toEqual(fault('too_long'));
  });

  test.each([
    [749.999, '749'],
    [1, '1'],
    [0.999, '0'],
    [-250, '0'],
    [315_359_999_999, '315359999999'],
    [359_999_996_400_000, '315359999999'],
    [NaN, undefined],
    [Infinity, undefined],
  ])('writes %d as %s', (ms, text) => {
    expect(formatRequestTimeout(ms)).toBe(text);
  });

  test('B8: an own limit of 300 under 800 left is written as one value, 300', () => {
    expect(formatRequestTimeout(Math.min(300, 800))).toBe('300');
  });
});

describe('a header sent more than once', () => {
  test('A12: "500, 200" is 200 and repeated', () => {
    expect(parseRequestTimeout('500, 200')).toEqual(repeated(200));
  });

  test('the order does not matter, nor the blank', () => {
    expect(parseRequestTimeout('200,500')).toEqual(repeated(200));
  });

  test('an invalid item is passed over', () => {
    expect(parseRequestTimeout('abc, 500, -1')).toEqual(repeated(500));
  });

  test('the same value twice is repeated too', () => {
    expect(parseRequestTimeout('500, 500')).toEqual(repeated(500));
  });

  test('expired is the smallest of all', () => {
    expect(parseRequestTimeout('500, 0')).toEqual(repeated(0));
  });

  test('without a valid item the first fault is told', () => {
    expect(parseRequestTimeout('abc, 315360000000')).toEqual(fault('malformed'));
    expect(parseRequestTimeout('315360000000, abc')).toEqual(fault('out_of_range'));
    expect(parseRequestTimeout(',')).toEqual(fault('malformed'));
  });
});

describe("Envoy's headers", () => {
  test('0 is no limit and counts as absent', () => {
    expect(parseEnvoyTimeout('0')).toEqual(noLimit);
    expect(parseEnvoyTimeout('000')).toEqual(noLimit);
  });

  test('1 is the smallest limit', () => {
    expect(parseEnvoyTimeout('1')).toEqual(value(1));
  });

  test('A9: -1 is malformed', () => {
    expect(parseEnvoyTimeout('-1')).toEqual(fault('malformed'));
  });

  test('a limit beats "no limit" in a repeated header', () => {
    expect(parseEnvoyTimeout('0, 800')).toEqual(repeated(800));
    expect(parseEnvoyTimeout('0, 0')).toEqual(fault('repeated'));
  });

  test.each([
    [749.6, '749'],
    [1, '1'],
    [0.999, undefined],
    [0, undefined],
    [-250, undefined],
    [NaN, undefined],
    [Infinity, undefined],
  ])('writes %d as %s: nothing where 0 would read as no limit', (ms, text) => {
    expect(formatEnvoyTimeout(ms)).toBe(text);
  });
});
