import { describe, expect, test } from 'vitest';
import { MAX_KEY_LENGTH, MAX_OPEN, OpenUnknowns } from '../../src/core/open-unknowns.ts';

const at = (sinceAt: number, operation = 'pay') => ({ operation, sinceAt, origin: undefined });

describe('S-17: unknown outcomes stay open until they are taken', () => {
  test('by operation, with the age of the oldest', () => {
    const unknowns = new OpenUnknowns();
    unknowns.add('a', at(10));
    unknowns.add('b', at(20));
    unknowns.add('c', at(30, 'ship'));
    expect(unknowns.open()).toEqual(
      new Map([
        ['pay', { count: 2, oldestAt: 10 }],
        ['ship', { count: 1, oldestAt: 30 }],
      ]),
    );
    expect(unknowns.take('a')).toEqual(at(10));
    expect(unknowns.take('a')).toBeUndefined();
    expect(unknowns.open().get('pay')).toEqual({ count: 1, oldestAt: 20 });
    unknowns.take('b');
    expect(unknowns.open().has('pay')).toBe(false);
  });

  test('the same key again is as old as it was', () => {
    const unknowns = new OpenUnknowns();
    expect([unknowns.add('a', at(10)), unknowns.add('a', at(99))]).toEqual(['added', 'known']);
    expect(unknowns.open().get('pay')).toEqual({ count: 1, oldestAt: 10 });
  });
});

describe('bounds', () => {
  test('the last that is kept and the first that is not; the oldest stays', () => {
    const unknowns = new OpenUnknowns();
    for (let i = 0; i < MAX_OPEN - 1; i++) unknowns.add(String(i), at(i));
    expect(unknowns.add('last', at(MAX_OPEN))).toBe('added');
    expect(unknowns.add('one too many', at(MAX_OPEN))).toBe('full');
    expect(unknowns.add('0', at(MAX_OPEN))).toBe('known');
    expect(unknowns.size).toBe(MAX_OPEN);
    expect(unknowns.open().get('pay')).toEqual({ count: MAX_OPEN, oldestAt: 0 });
    unknowns.take('5');
    expect(unknowns.add('one too many', at(MAX_OPEN))).toBe('added');
  });

  test.each([
    ['x'.repeat(MAX_KEY_LENGTH), 'added'],
    ['x'.repeat(MAX_KEY_LENGTH + 1), 'full'],
    ['', 'full'],
  ])('a key of another length', (key, kept) => {
    expect(new OpenUnknowns().add(key, at(0))).toBe(kept);
  });
});
