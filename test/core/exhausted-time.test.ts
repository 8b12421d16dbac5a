import { expect, test } from 'vitest';
import { ExhaustedTime } from '../../src/core/exhausted-time.ts';

test('counts from the fall of the balance to its rise, and while it lasts', () => {
  const time = new ExhaustedTime();
  time.watch(true, 0);
  time.watch(false, 1_000);
  expect(time.read(1_400)).toBe(400);
  time.watch(false, 2_000);
  time.refuse(2_500);
  time.watch(true, 4_000);
  expect(time.read(9_000)).toBe(3_000);
  time.watch(false, 9_000);
  expect(time.read(9_001)).toBe(3_001);
});

test('a budget that starts empty counts from its first refusal', () => {
  const time = new ExhaustedTime();
  time.watch(false, 0);
  time.watch(false, 500);
  expect(time.read(1_000)).toBe(0);
  time.refuse(1_000);
  time.refuse(1_500);
  expect(time.read(2_000)).toBe(1_000);
});

test('a refusal while a usual attempt could be paid counts nothing', () => {
  const time = new ExhaustedTime();
  time.watch(true, 0);
  time.refuse(100);
  expect(time.read(1_000)).toBe(0);
});
