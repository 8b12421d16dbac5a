import { describe, expect, test } from 'vitest';
import { backlogAt, drainedAtMs, type RateStep } from '../../src/core/backlog.ts';
import { type BacklogFigures, LiveBacklog, SPACING_MS, WINDOW_MS } from '../../src/core/live-backlog.ts';

const S = 1_000;
/** The example of the documents: 80/s arrive, 60/s can be done for 120 s, then 100/s. */
const BASE: readonly RateStep[] = [
  { fromMs: 0, originalsPerSecond: 80, capacityPerSecond: 60 },
  { fromMs: 120 * S, originalsPerSecond: 80, capacityPerSecond: 100 },
];
/** The same with 40/s of attempts on top. */
const WITH_ATTEMPTS = BASE.map((step) => ({ ...step, repeatsPerSecond: 40 }));

/** Reads a queue that does exactly what the fluid model says, every so many ms; figures by second. */
function follow(steps: readonly RateStep[], untilS: number, everyMs = 15 * S): Map<number, BacklogFigures> {
  const live = new LiveBacklog();
  const figures = new Map<number, BacklogFigures>();
  for (let at = 0; at <= untilS * S; at += everyMs) {
    const { backlog, admitted, completed } = backlogAt(steps, at);
    const repeats = (admitted * (steps[0]?.repeatsPerSecond ?? 0)) / (80 + (steps[0]?.repeatsPerSecond ?? 0));
    figures.set(at / S, live.read({ waiting: backlog, entered: admitted, repeats, completed }, at));
  }
  return figures;
}

describe('N-01: the base case, read every 15 seconds', () => {
  const figures = follow(BASE, 300);

  test('while it grows it does not drain, and no time is told', () => {
    expect(figures.get(60)).toMatchObject({ drains: false, drainedInMs: undefined, recoveringMs: 0 });
    expect(figures.get(120)).toMatchObject({ drains: false, drainedInMs: undefined, recoveringMs: 0 });
  });

  test('once the window holds the new rates only, it is gone at 240 s', () => {
    expect(figures.get(180)?.drains).toBe(true);
    expect(180 * S + (figures.get(180)?.drainedInMs ?? 0)).toBeCloseTo(240 * S, 3);
    expect(210 * S + (figures.get(210)?.drainedInMs ?? 0)).toBeCloseTo(drainedAtMs(BASE, 120 * S), 3);
  });

  test('N-04: the recovery lag is what is measured since the largest backlog: 120 s at the last reading before 240 s', () => {
    expect(figures.get(180)?.recoveringMs).toBe(60 * S);
    expect(figures.get(225)?.recoveringMs).toBe(105 * S);
    expect(figures.get(240)).toMatchObject({ drains: true, drainedInMs: 0, recoveringMs: 0 });
  });

  test('N-04: 20/s of attempts would keep it as it is after the recovery, and no restraint helps before', () => {
    expect(figures.get(180)?.breakEvenPerSecond).toBeCloseTo(20);
    expect(figures.get(60)?.breakEvenPerSecond).toBeCloseTo(-20);
  });
});

describe('N-02: with 40/s of attempts', () => {
  const figures = follow(WITH_ATTEMPTS, 360);

  test('it never drains, although the capacity is above the original demand', () => {
    for (const second of [60, 120, 180, 240, 360]) {
      expect(figures.get(second)).toMatchObject({ drains: false, drainedInMs: undefined, recoveringMs: 0 });
    }
  });

  test('the attempts are twice what it could bear: 40/s made, 20/s to break even; 1.5 per original', () => {
    expect(figures.get(240)?.breakEvenPerSecond).toBeCloseTo(20);
    expect(figures.get(240)?.attemptsPerOriginal).toBeCloseTo(1.5);
  });
});

describe('N-03: exactly the break-even rate', () => {
  test('the backlog stays, so it does not drain', () => {
    const live = new LiveBacklog();
    live.read({ waiting: 4_800, entered: 0, repeats: 0, completed: 0 }, 0);
    const even = live.read({ waiting: 4_800, entered: 1_000, repeats: 200, completed: 1_000 }, 10 * S);
    expect(even).toMatchObject({ drains: false, drainedInMs: undefined });
    expect(even.breakEvenPerSecond).toBeCloseTo(20);
  });
});

describe('what is not known is not told', () => {
  const one = { waiting: 10, entered: 10, repeats: undefined, completed: 0 };

  test('nothing before the second reading', () => {
    expect(new LiveBacklog().read(one, 0)).toEqual({
      drains: undefined,
      drainedInMs: undefined,
      breakEvenPerSecond: undefined,
      attemptsPerOriginal: undefined,
      recoveringMs: 0,
    });
  });

  test('two readings within a second are one: the last that is none and the first that is', () => {
    const live = new LiveBacklog();
    live.read(one, 0);
    expect(live.read({ ...one, completed: 5 }, SPACING_MS - 1).drains).toBeUndefined();
    expect(live.read({ ...one, completed: 5 }, SPACING_MS).drains).toBe(true);
  });

  test('without repeats there is no break-even rate, and the rest is there', () => {
    const live = new LiveBacklog();
    live.read(one, 0);
    expect(live.read({ ...one, waiting: 5, completed: 5 }, 1 * S)).toMatchObject({
      drains: true,
      drainedInMs: 1 * S,
      breakEvenPerSecond: undefined,
      attemptsPerOriginal: undefined,
    });
  });

  test('an empty queue is drained, and says nothing of the capacity', () => {
    const live = new LiveBacklog();
    live.read({ waiting: 0, entered: 100, repeats: 0, completed: 100 }, 0);
    const empty = live.read({ waiting: 0, entered: 200, repeats: 0, completed: 200 }, 10 * S);
    expect(empty).toMatchObject({ drains: true, drainedInMs: 0, breakEvenPerSecond: undefined });
    // The time in which it ran empty is no part of the rates.
    const first = live.read({ waiting: 50, entered: 300, repeats: 0, completed: 250 }, 20 * S);
    expect(first.drains).toBeUndefined();
    const second = live.read({ waiting: 30, entered: 300, repeats: 0, completed: 270 }, 21 * S);
    expect(second.drainedInMs).toBe(1_500);
  });

  test.each([
    ['totals that went down: another queue of that name', { entered: 1, completed: 0 }, 10 * S],
    ['a clock that went back', { entered: 30, completed: 30 }, -1],
  ])('%s', (_, totals, at) => {
    const live = new LiveBacklog();
    live.read({ ...one, entered: 20, completed: 20 }, 0);
    expect(live.read({ ...one, ...totals }, at).drains).toBeUndefined();
  });

  test('what expires is no drain: the depth falls and the model says no', () => {
    const live = new LiveBacklog();
    live.read({ waiting: 100, entered: 100, repeats: 0, completed: 0 }, 0);
    expect(live.read({ waiting: 10, entered: 150, repeats: 0, completed: 20 }, 10 * S)).toMatchObject({
      drains: false,
      drainedInMs: undefined,
    });
  });
});

test('only the last minute counts, and no more than its readings are kept', () => {
  const live = new LiveBacklog();
  live.read({ waiting: 1_000, entered: 1_000, repeats: 0, completed: 0 }, 0);
  let figures: BacklogFigures | undefined;
  // An hour in which nothing was done, then a minute in which ten were done each second.
  live.read({ waiting: 1_000, entered: 1_000, repeats: 0, completed: 0 }, 3_600 * S);
  for (let ms = 100; ms <= WINDOW_MS; ms += 100) {
    const completed = ms / 100;
    figures = live.read(
      { waiting: 1_000 - completed, entered: 1_000, repeats: 0, completed },
      3_600 * S + ms,
    );
  }
  expect(figures?.drainedInMs).toBeCloseTo(40 * S, 3);
});
