import { describe, expect, test } from 'vitest';
import { DegradedSwitch } from '../../src/core/degraded-switch.ts';

describe('DegradedSwitch', () => {
  test('L-26: on from the one value, off from the other, unchanged in between', () => {
    const mode = new DegradedSwitch({ enterAt: 8, exitAt: 4, leastMs: 0 });
    expect(mode.read(7.99, 0)).toBeUndefined();
    expect(mode.read(8, 1)).toBe('enter');
    expect(mode.read(8, 2)).toBeUndefined();
    expect(mode.read(4.01, 3)).toBeUndefined();
    expect(mode.isOn).toBe(true);
    expect(mode.read(4, 4)).toBe('exit');
    expect(mode.isOn).toBe(false);
  });

  test('the other way round for what is bad when it is low', () => {
    const mode = new DegradedSwitch({ enterAt: 1, exitAt: 5, leastMs: 0 });
    expect([mode.read(1.01, 0), mode.read(1, 1), mode.read(4.99, 2), mode.read(5, 3)]).toEqual([
      undefined,
      'enter',
      undefined,
      'exit',
    ]);
  });

  test('it stays on for the least time, whatever is read', () => {
    const mode = new DegradedSwitch({ enterAt: 8, exitAt: 4, leastMs: 100 });
    mode.read(8, 1_000);
    expect(mode.read(0, 1_099)).toBeUndefined();
    expect(mode.read(0, 1_100)).toBe('exit');
  });

  test('no number changes nothing, and by hand it is thrown once', () => {
    const mode = new DegradedSwitch({ enterAt: 8, exitAt: 4, leastMs: 0 });
    expect(mode.read(Number.NaN, 0)).toBeUndefined();
    expect([mode.set(true, 1), mode.set(true, 2), mode.set(false, 3)]).toEqual([true, false, true]);
    expect(new DegradedSwitch().read(1e9, 0)).toBeUndefined();
  });

  test.each([
    [{ enterAt: Number.NaN, exitAt: 1, leastMs: 0 }, 'enterAt must be a finite number, got NaN'],
    [{ enterAt: 1, exitAt: 1, leastMs: 0 }, 'exitAt must be a finite number other than enterAt, 1, got 1'],
    [
      { enterAt: 1, exitAt: Infinity, leastMs: 0 },
      'exitAt must be a finite number other than enterAt, 1, got Infinity',
    ],
    [{ enterAt: 2, exitAt: 1, leastMs: -1 }, 'leastMs must be a number >= 0, got -1'],
  ])('%o is refused', (points, message) => {
    expect(() => new DegradedSwitch(points)).toThrow(new RangeError(message));
  });
});
