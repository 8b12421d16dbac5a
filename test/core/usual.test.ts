import { describe, expect, test } from 'vitest';
import { Usual } from '../../src/core/usual.ts';

const SETTINGS = { windowMs: 1000, minCount: 20, maxDisturbedShare: 0.2 };

function fill(usual: Usual, count: number, ms: number, at: number): void {
  for (let i = 0; i < count; i++) usual.complete(ms, at);
}

describe('what is usual', () => {
  test('needs the minimum count: 19 say nothing, 20 do', () => {
    const usual = new Usual(0, SETTINGS);
    fill(usual, 19, 50, 1);
    expect(usual.typical(2)).toBeUndefined();
    fill(usual, 1, 50, 2);
    expect(usual.typical(3)?.medianMs).toBeCloseTo(50, -0.5);
  });

  test('the baseline is the window before, not the one in progress', () => {
    const usual = new Usual(0, SETTINGS);
    fill(usual, 50, 50, 1);
    fill(usual, 50, 400, 1100);
    expect(usual.typical(1200)?.p95Ms).toBeLessThan(60);
    expect(usual.typical(2200)?.medianMs).toBeGreaterThan(300);
  });

  test('a window with a fifth disturbed is still learned from, one with more is an incident', () => {
    const learned = new Usual(0, SETTINGS);
    fill(learned, 50, 50, 1);
    fill(learned, 80, 400, 1100);
    for (let i = 0; i < 20; i++) learned.disturb(1100);
    expect(learned.typical(2200)?.medianMs).toBeGreaterThan(300);

    const kept = new Usual(0, SETTINGS);
    fill(kept, 50, 50, 1);
    fill(kept, 80, 400, 1100);
    for (let i = 0; i < 21; i++) kept.disturb(1100);
    expect(kept.typical(2200)?.medianMs).toBeLessThan(60);
  });

  test('a quiet window keeps the baseline', () => {
    const usual = new Usual(0, SETTINGS);
    fill(usual, 50, 50, 1);
    expect(usual.typical(10_000)?.medianMs).toBeLessThan(60);
    expect(usual.typical(99_000)?.medianMs).toBeLessThan(60);
  });
});
