import { describe, expect, test } from 'vitest';
import {
  parseMiskDeadline,
  parsePulseDeadline,
  parsePulseTimeout,
  parseUserverTimeout,
  parseYarpcTtl,
} from '../../src/core/wire-peers.ts';

const value = (ms: number) => ({ ms, fault: undefined });
const fault = (name: string) => ({ ms: undefined, fault: name });
const noLimit = { ms: undefined, fault: undefined };

describe.each([
  ['Pulse-Timeout-Ms', parsePulseTimeout],
  ['X-YaTaxi-Client-TimeoutMs', parseUserverTimeout],
  ['Context-TTL-MS', parseYarpcTtl],
])('%s', (_name, parse) => {
  test('reads milliseconds, 0 as expired', () => {
    expect(parse('20000')).toEqual(value(20_000));
    expect(parse('0')).toEqual(value(0));
  });

  test('refuses what is no number, and ten years (the limit of userver)', () => {
    expect(parse('-1')).toEqual(fault('malformed'));
    expect(parse('5s')).toEqual(fault('malformed'));
    expect(parse('')).toEqual(fault('malformed'));
    expect(parse('315359999999')).toEqual(value(315_359_999_999));
    expect(parse('315360000000')).toEqual(fault('out_of_range'));
  });
});

describe('Pulse-Timeout-Deadline-Ms', () => {
  const wallNowMs = 1_764_410_400_000;

  test('is what is left on the given wall clock', () => {
    expect(parsePulseDeadline('1764410400500', wallNowMs)).toEqual(value(500));
  });

  test('now and the past are expired', () => {
    expect(parsePulseDeadline('1764410400000', wallNowMs)).toEqual(value(0));
    expect(parsePulseDeadline('1764410399000', wallNowMs)).toEqual(value(0));
  });

  test('seconds, a duration and a far future are out of range, not expired or unlimited', () => {
    expect(parsePulseDeadline('1764410400', wallNowMs)).toEqual(fault('out_of_range'));
    expect(parsePulseDeadline('2000', wallNowMs)).toEqual(fault('out_of_range'));
    expect(parsePulseDeadline('2079770399999', wallNowMs)).toEqual(value(315_359_999_999));
    expect(parsePulseDeadline('2079770400000', wallNowMs)).toEqual(fault('out_of_range'));
  });

  test('a wall clock that is no number gives no value', () => {
    expect(parsePulseDeadline('1764410400500', NaN)).toEqual(fault('out_of_range'));
  });

  test('anything else is malformed', () => {
    expect(parsePulseDeadline('2026-11-29T10:00:00Z', wallNowMs)).toEqual(fault('malformed'));
    expect(parsePulseDeadline('-5', wallNowMs)).toEqual(fault('malformed'));
  });

  test('of two the earlier counts', () => {
    expect(parsePulseDeadline('1764410400500, 1764410400200', wallNowMs)).toEqual({
      ms: 200,
      fault: 'repeated',
    });
  });
});

describe('X-Request-Deadline (Misk)', () => {
  test.each([
    ['30', 30_000],
    ['PT30S', 30_000],
    ['PT5M', 300_000],
    ['PT1H30M', 5_400_000],
    ['P1D', 86_400_000],
    ['P1DT2H3M4S', 93_784_000],
    ['PT2.5S', 2_500],
    ['PT0.0005S', 0.5],
    ['PT1.S', 1_000],
    ['pt30s', 30_000],
  ])('%s is %d ms', (text, ms) => {
    expect(parseMiskDeadline(text)).toEqual(value(ms));
  });

  test.each(['0', 'PT0S', 'P0D', 'PT0.000S'])('%s is no limit: Misk takes positive values only', (text) => {
    expect(parseMiskDeadline(text)).toEqual(noLimit);
  });

  test.each([
    '1.5',
    '-30',
    'P',
    'PT',
    'P1DT',
    'P1W',
    'P1Y',
    'P1M',
    'PT-5S',
    '-PT5S',
    'PT5',
    'PT.5S',
    'PT5S1M',
    '1M',
    'T5S',
    'PT1.0000000001S',
    '2026-11-29T10:00:00Z',
    '',
  ])('%j is malformed', (text) => {
    expect(parseMiskDeadline(text)).toEqual(fault('malformed'));
  });

  test('an absolute time under the same name is out of range', () => {
    expect(parseMiskDeadline('1764410400')).toEqual(fault('out_of_range'));
    expect(parseMiskDeadline('1764410400000')).toEqual(fault('out_of_range'));
  });

  test('the last second below ten years is accepted', () => {
    expect(parseMiskDeadline('315359999')).toEqual(value(315_359_999_000));
    expect(parseMiskDeadline('315360000')).toEqual(fault('out_of_range'));
    expect(parseMiskDeadline('P3650D')).toEqual(fault('out_of_range'));
    expect(parseMiskDeadline('P3649D')).toEqual(value(315_273_600_000));
  });
});
