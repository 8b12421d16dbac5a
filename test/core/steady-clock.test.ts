import { expect, test } from 'vitest';
import { LATE_READING_MS, SteadyClock } from '../../src/core/steady-clock.ts';

const readAll = (clock: SteadyClock, ...readings: number[]) => readings.map((now) => clock.read(now));

test('counts from the first reading, negative ones too', () => {
  expect(readAll(new SteadyClock(), 500, 500, 750.5, 1_750)).toEqual([0, 0, 250.5, 1_250]);
  expect(readAll(new SteadyClock(), -500, -400, 100)).toEqual([0, 100, 600]);
});

test('a late reading makes time stand still, and what follows is not counted twice', () => {
  expect(readAll(new SteadyClock(), 0, 100, 95, 101, 96, 102)).toEqual([0, 100, 100, 101, 101, 102]);
});

test('60,000 behind is late, more is a clock that was set back, from which time goes on', () => {
  const late = new SteadyClock();
  expect(readAll(late, 0, 100_000, 100_000 - LATE_READING_MS)).toEqual([0, 100_000, 100_000]);
  expect(readAll(late, 99_999, 100_001)).toEqual([100_000, 100_001]);

  const setBack = new SteadyClock();
  expect(readAll(setBack, 0, 100_000, 100_000 - LATE_READING_MS - 1)).toEqual([0, 100_000, 100_000]);
  expect(readAll(setBack, 40_000, 99_999)).toEqual([100_001, 160_000]);
});

test('1e14 is the last instant', () => {
  expect(readAll(new SteadyClock(), 0, 1e14, 1e14 + 1)).toEqual([0, 1e14, 1e14]);
  expect(readAll(new SteadyClock(), 1e14 + 1, 5, 6)).toEqual([0, 0, 1]);
});

test('what is no instant is not looked at, neither first nor later', () => {
  const clock = new SteadyClock();
  expect(readAll(clock, Number.NaN, Infinity, -Infinity, 1e15)).toEqual([0, 0, 0, 0]);
  expect(readAll(clock, 10, Number.NaN, 20, Infinity, -Infinity, 1e300, 30)).toEqual([
    0, 0, 10, 10, 10, 10, 20,
  ]);
});
