import { describe, expect, test } from 'vitest';
import { type AllowanceTerms, decideAllowance, isReset } from '../../src/core/allowance.ts';

const EXPIRED = 'deadline_exceeded_before_dispatch';
const allowed = (allowanceMs: number, bindingTerm: string) => ({
  allowanceMs,
  bindingTerm,
  refusal: undefined,
});
const refused = (allowanceMs: number, bindingTerm: string, refusal: string) => ({
  allowanceMs,
  bindingTerm,
  refusal,
});
const REMAINING = 'remaining_minus_reserve';

describe('the figures of the sources', () => {
  test('N-09, B-20: 1,200 - 100 - 200 - 250 leaves 650; the normal timeout or 650, whichever is less', () => {
    const remainingMs = 1_200 - 100 - 200;
    expect(decideAllowance({ remainingMs, reserveMs: 250, dependencyCapMs: 400 })).toEqual(
      allowed(400, 'dependency_cap'),
    );
    expect(decideAllowance({ remainingMs, reserveMs: 250, dependencyCapMs: 800 })).toEqual(
      allowed(650, REMAINING),
    );
  });

  test('N-10, B-21: 40 left and 150 usual is refused', () => {
    expect(decideAllowance({ remainingMs: 40, reserveMs: 0, minimumMs: 150 })).toEqual(
      refused(40, REMAINING, 'below_useful_minimum'),
    );
  });

  test('N-11: 20 left and a tail of 80 is refused', () => {
    expect(decideAllowance({ remainingMs: 20, reserveMs: 0, minimumMs: 80 }).refusal).toBe(
      'below_useful_minimum',
    );
  });

  test('N-12, B-31: usual 40, left 15: a fixed setting of 100 is no reason to start', () => {
    expect(decideAllowance({ remainingMs: 15, reserveMs: 0, dependencyCapMs: 100, minimumMs: 40 })).toEqual(
      refused(15, REMAINING, 'below_useful_minimum'),
    );
  });

  test.each([
    [10_000, allowed(5_000, 'dependency_cap')],
    [5_076, allowed(5_000, 'dependency_cap')],
    [5_075, allowed(5_000, REMAINING)],
    [5_074, allowed(4_999, REMAINING)],
    [1_500, allowed(1_425, REMAINING)],
    [76, allowed(1, REMAINING)],
    [75, refused(0, REMAINING, EXPIRED)],
    [74, refused(-1, REMAINING, EXPIRED)],
    [0, refused(-75, REMAINING, EXPIRED)],
    [-300, refused(-375, REMAINING, EXPIRED)],
  ])('N-13, B-17: ceiling 5,000, reserve 75, %d left', (remainingMs, expected) => {
    expect(decideAllowance({ remainingMs, reserveMs: 75, dependencyCapMs: 5_000 })).toEqual(expected);
  });

  test('N-14: a path of 1,500 never hands 1,500 to the database', () => {
    expect(decideAllowance({ remainingMs: 1_500, reserveMs: 75 })).toEqual(allowed(1_425, REMAINING));
  });

  test('N-15, B-40: of 2,000 with 600 spent at most 1,400 - reserve goes down, even where 2,000 are set', () => {
    expect(
      decideAllowance({
        remainingMs: 2_000 - 600,
        reserveMs: 75,
        dependencyCapMs: 2_000,
        ownTimeoutMs: 2_000,
      }),
    ).toEqual(allowed(1_325, REMAINING));
  });

  test('N-16: two limits of 2 s in turn, 4 s in all, do not fit into 2 s', () => {
    const first = decideAllowance({ remainingMs: 2_000, reserveMs: 0, ownTimeoutMs: 2_000 });
    const second = decideAllowance({ remainingMs: 2_000 - 2_000, reserveMs: 0, ownTimeoutMs: 2_000 });
    expect(first).toEqual(allowed(2_000, REMAINING));
    expect(second).toEqual(refused(0, REMAINING, EXPIRED));
  });

  test('N-17: five services of 500 each spend 500 in all, not 2,500', () => {
    let remainingMs = 500;
    let spentMs = 0;
    for (let service = 0; service < 5; service++) {
      const { allowanceMs, refusal } = decideAllowance({ remainingMs, reserveMs: 0, ownTimeoutMs: 500 });
      if (refusal !== undefined) continue;
      spentMs += allowanceMs ?? 0;
      remainingMs -= allowanceMs ?? 0;
    }
    expect(spentMs).toBe(500);
  });

  test('N-18: an inner client of 20 s within 5 s is cut by 15 s, 75 % of its call', () => {
    const ownTimeoutMs = 20_000;
    const { allowanceMs = 0 } = decideAllowance({ remainingMs: 5_000, reserveMs: 0, ownTimeoutMs });
    expect(allowanceMs).toBe(5_000);
    expect((ownTimeoutMs - allowanceMs) / ownTimeoutMs).toBe(0.75);
  });
});

describe('X-04: equality at the reserve', () => {
  test.each([
    [249, refused(-1, REMAINING, EXPIRED)],
    [250, refused(0, REMAINING, EXPIRED)],
    [251, allowed(1, REMAINING)],
  ])('reserve 250, %d left', (remainingMs, expected) => {
    expect(decideAllowance({ remainingMs, reserveMs: 250 })).toEqual(expected);
  });

  test('a part of a millisecond over the reserve is time', () => {
    expect(decideAllowance({ remainingMs: 250.25, reserveMs: 250 })).toEqual(allowed(0.25, REMAINING));
  });
});

describe('minimum useful time', () => {
  test.each([
    [149, 'below_useful_minimum'],
    [150, undefined],
    [151, undefined],
  ])('150, %d left', (remainingMs, refusal) => {
    expect(decideAllowance({ remainingMs, reserveMs: 0, minimumMs: 150 }).refusal).toBe(refusal);
  });

  test('the reserve counts against it', () => {
    expect(decideAllowance({ remainingMs: 200, reserveMs: 75, minimumMs: 150 }).refusal).toBe(
      'below_useful_minimum',
    );
  });

  test('what is over is expired rather than too little', () => {
    expect(decideAllowance({ remainingMs: 50, reserveMs: 75, minimumMs: 150 }).refusal).toBe(EXPIRED);
  });

  test('it grants nothing and limits nothing on its own', () => {
    expect(decideAllowance({ reserveMs: 75, minimumMs: 150 }).allowanceMs).toBeUndefined();
  });
});

describe('B-13: terms', () => {
  test('without any limit all is absent, whatever the reserve', () => {
    const nothing = { allowanceMs: undefined, bindingTerm: undefined, refusal: undefined };
    expect(decideAllowance({ reserveMs: 75 })).toEqual(nothing);
    expect(
      decideAllowance({ reserveMs: 75, remainingMs: Infinity, ownTimeoutMs: NaN, latencyMs: Infinity }),
    ).toEqual(nothing);
  });

  test.each<[string, Partial<AllowanceTerms>]>([
    ['remaining_minus_reserve', { remainingMs: 175 }],
    ['dependency_cap', { dependencyCapMs: 100 }],
    ['latency_derived', { latencyMs: 100 }],
    ['own_timeout', { ownTimeoutMs: 100 }],
  ])('%s binds where it is the smallest, and where it is alone', (term, terms) => {
    const larger = { remainingMs: 5_000, dependencyCapMs: 4_000, latencyMs: 3_000, ownTimeoutMs: 2_000 };
    expect(decideAllowance({ reserveMs: 75, ...larger, ...terms })).toEqual(allowed(100, term));
    expect(decideAllowance({ reserveMs: 75, ...terms })).toEqual(allowed(100, term));
  });

  test('of equal terms the first in BINDING_TERMS binds', () => {
    const own = { reserveMs: 0, ownTimeoutMs: 100 };
    expect(decideAllowance({ ...own, latencyMs: 100 }).bindingTerm).toBe('latency_derived');
    expect(decideAllowance({ ...own, latencyMs: 100, dependencyCapMs: 100 }).bindingTerm).toBe(
      'dependency_cap',
    );
    expect(
      decideAllowance({ ...own, latencyMs: 100, dependencyCapMs: 100, remainingMs: 100 }).bindingTerm,
    ).toBe(REMAINING);
  });

  test('B1: an own deadline of 5,000 gets the 700 left, one of 200 stays', () => {
    expect(decideAllowance({ remainingMs: 700, reserveMs: 0, ownTimeoutMs: 5_000 })).toEqual(
      allowed(700, REMAINING),
    );
    expect(decideAllowance({ remainingMs: 700, reserveMs: 0, ownTimeoutMs: 200 })).toEqual(
      allowed(200, 'own_timeout'),
    );
  });

  test("a call whose own deadline is over is refused as expired, with the request's time left", () => {
    expect(decideAllowance({ remainingMs: 700, reserveMs: 0, ownTimeoutMs: 0 })).toEqual(
      refused(0, 'own_timeout', EXPIRED),
    );
  });
});

describe('B-26: resets', () => {
  test('B-40, N-15: 2,000 received where 1,400 was handed down', () => {
    expect(isReset(2_000, 1_400)).toBe(true);
  });

  test('the same or less is none', () => {
    expect(isReset(1_400, 1_400)).toBe(false);
    expect(isReset(0, 0)).toBe(false);
    expect(isReset(200, 1_400)).toBe(false);
  });

  test('1 ms more is rounding by the peer, anything above is a reset', () => {
    expect(isReset(701, 700)).toBe(false);
    expect(isReset(701.5, 700)).toBe(true);
    expect(isReset(702, 700)).toBe(true);
  });

  test('anything after the time is over is a reset', () => {
    expect(isReset(100, -50)).toBe(true);
  });
});
