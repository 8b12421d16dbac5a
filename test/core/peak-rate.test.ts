import { describe, expect, test } from 'vitest';
import { KEEP_MS, PeakRate, STEP_MS } from '../../src/core/peak-rate.ts';

function arrivals(...at: readonly number[]): PeakRate {
  const rate = new PeakRate();
  for (const each of at) rate.add(each);
  return rate;
}

describe('M-28: a wave shows in the peak and not in the mean', () => {
  test('twenty arrivals spread over two seconds, and the same twenty at once', () => {
    const even = arrivals(...Array.from({ length: 20 }, (_, i) => i * STEP_MS));
    const wave = arrivals(...Array.from({ length: 20 }, () => 1_000));
    expect(even.perSecond(2_000)).toBe(10);
    expect(wave.perSecond(2_000)).toBe(200);
  });

  test('the end of a step is the start of the next', () => {
    expect(arrivals(0, STEP_MS - 0.1).perSecond(500)).toBe(20);
    expect(arrivals(0, STEP_MS).perSecond(500)).toBe(10);
  });

  test('an arrival that comes late counts in the step that runs', () => {
    expect(arrivals(150, 40).perSecond(500)).toBe(20);
  });

  test('nothing has arrived: 0', () => {
    expect(new PeakRate().perSecond(1_000_000)).toBe(0);
  });
});

describe('a peak is told for one to two stretches', () => {
  const wave = () => arrivals(10, 10, 10);

  test('still in the stretch after its own, and no longer in the next', () => {
    expect(wave().perSecond(2 * KEEP_MS - 1)).toBe(30);
    expect(wave().perSecond(2 * KEEP_MS)).toBe(0);
  });

  test('read in between or not, it is the same', () => {
    const rate = wave();
    expect(rate.perSecond(KEEP_MS)).toBe(30);
    expect(rate.perSecond(KEEP_MS + 1)).toBe(30);
    expect(rate.perSecond(2 * KEEP_MS)).toBe(0);
  });

  test('a smaller one after it does not take its place before it is over', () => {
    const rate = wave();
    rate.add(KEEP_MS + 5);
    expect(rate.perSecond(KEEP_MS + 10)).toBe(30);
    expect(rate.perSecond(2 * KEEP_MS)).toBe(10);
  });
});
