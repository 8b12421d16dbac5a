import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MAX_MESSAGE_AGE_MS, messageAgeMs } from '../../src/core/message-age.ts';

const NOW = 1_800_000_000_000;
const times = { ageMs: undefined, sentWallMs: undefined, wallNowMs: NOW, remainingMs: 500 };

describe('P-20: the age of a message', () => {
  test("the broker's own time goes first, whatever the two wall clocks say", () => {
    expect(messageAgeMs({ ...times, ageMs: 250, sentWallMs: NOW - 9_000 })).toBe(250);
    expect(messageAgeMs({ ...times, ageMs: 0, sentWallMs: NOW - 9_000 })).toBe(0);
  });

  test('else it is since the send; 0 where neither is known', () => {
    expect(messageAgeMs({ ...times, sentWallMs: NOW - 250 })).toBe(250);
    expect(messageAgeMs(times)).toBe(0);
  });

  test.each([Number.NaN, Infinity, '250', null, {}, 250n])('%s is no age', (ageMs) => {
    expect(messageAgeMs({ ...times, ageMs })).toBe(0);
    expect(messageAgeMs({ ...times, ageMs, sentWallMs: NOW - 7 })).toBe(7);
  });

  test('a clock that is behind makes no time: a message from the future was sent now', () => {
    expect(messageAgeMs({ ...times, ageMs: -1 })).toBe(0);
    expect(messageAgeMs({ ...times, sentWallMs: NOW + 3_600_000 })).toBe(0);
  });

  test('seven days are the most that is counted, and no budget outlives its age by that', () => {
    expect(messageAgeMs({ ...times, ageMs: MAX_MESSAGE_AGE_MS })).toBe(MAX_MESSAGE_AGE_MS);
    expect(messageAgeMs({ ...times, ageMs: MAX_MESSAGE_AGE_MS + 1 })).toBe(MAX_MESSAGE_AGE_MS);
    const remainingMs = MAX_MESSAGE_AGE_MS * 3;
    expect(messageAgeMs({ ...times, sentWallMs: 0, remainingMs })).toBe(remainingMs);
  });

  test('never below 0, and over once the time has gone by', () => {
    fc.assert(
      fc.property(fc.integer(), fc.nat(), fc.nat(1e12), (ageMs, remainingMs, sentWallMs) => {
        for (const one of [
          { ...times, ageMs, remainingMs },
          { ...times, sentWallMs, remainingMs },
        ]) {
          const age = messageAgeMs(one);
          const true_ = one.ageMs ?? NOW - (one.sentWallMs ?? NOW);
          expect(age).toBeGreaterThanOrEqual(0);
          expect(remainingMs - age <= 0).toBe(remainingMs <= 0 || true_ >= remainingMs);
        }
      }),
    );
  });
});
