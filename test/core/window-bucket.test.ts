import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SLOTS, WindowBucket } from '../../src/core/window-bucket.ts';

const WINDOW_MS = 2_000;
const SLOT_MS = WINDOW_MS / SLOTS;

function goTo(bucket: WindowBucket, at: number): number {
  let steps = 0;
  while (bucket.step(at)) steps++;
  return steps;
}

describe('a window', () => {
  test('forgets a deposit when the twentieth slot after its own begins', () => {
    const bucket = new WindowBucket(0, WINDOW_MS);
    goTo(bucket, 99);
    bucket.deposit(10);
    goTo(bucket, 1_999);
    expect(bucket.left).toBe(10);
    goTo(bucket, 2_000);
    expect(bucket.left).toBe(0);
    expect(bucket.steppedAt).toBe(2_000);
  });

  test('forgets a withdrawal in the same way, and owes until then', () => {
    const bucket = new WindowBucket(0, WINDOW_MS);
    bucket.deposit(10);
    goTo(bucket, 1_900);
    expect(bucket.tryWithdraw(7)).toBe(true);
    goTo(bucket, 2_000);
    expect(bucket.left).toBe(-7);
    expect(bucket.tryWithdraw(0)).toBe(false);
    goTo(bucket, 3_899);
    expect(bucket.left).toBe(-7);
    goTo(bucket, 3_900);
    expect(bucket.left).toBe(0);
  });

  test('withdraws all or nothing, and the last whole amount', () => {
    const bucket = new WindowBucket(5, WINDOW_MS);
    expect(bucket.tryWithdraw(6)).toBe(false);
    expect(bucket.tryWithdraw(5)).toBe(true);
    expect(bucket.tryWithdraw(1)).toBe(false);
    expect(bucket.tryWithdraw(Number.NaN)).toBe(false);
  });

  test('gives back the newest first, and not what is forgotten', () => {
    const bucket = new WindowBucket(10, WINDOW_MS);
    bucket.tryWithdraw(4);
    goTo(bucket, 1_000);
    bucket.tryWithdraw(3);
    expect(bucket.giveBack(5)).toBe(0);
    expect(bucket.left).toBe(8);
    // The two that are left of the older withdrawal are forgotten with it.
    goTo(bucket, 2_000);
    expect(bucket.left).toBe(10);
    expect(bucket.giveBack(1)).toBe(1);
    expect(bucket.left).toBe(10);
  });

  test('gives back slot by slot, from the newest to the oldest', () => {
    const bucket = new WindowBucket(10, WINDOW_MS);
    for (const [at, amount] of [
      [0, 4],
      [500, 3],
      [1_000, 2],
    ] as const) {
      goTo(bucket, at);
      bucket.tryWithdraw(amount);
    }
    expect(bucket.giveBack(4)).toBe(0);
    goTo(bucket, 2_000);
    expect(bucket.left).toBe(9);
    goTo(bucket, 2_500);
    expect(bucket.left).toBe(10);
  });

  test('takes no more deposits than doubles can tell apart', () => {
    const bucket = new WindowBucket(0, WINDOW_MS);
    bucket.deposit(2 ** 52 - 1);
    bucket.deposit(5);
    expect(bucket.left).toBe(2 ** 52);
    bucket.deposit(1);
    expect(bucket.left).toBe(2 ** 52);
  });

  test('ends to the millisecond where its slots do not', () => {
    const bucket = new WindowBucket(1, 3_832);
    for (let window = 0; window < 1_000; window++) {
      goTo(bucket, window * 3_832);
      expect(bucket.tryWithdraw(1)).toBe(true);
      goTo(bucket, (window + 1) * 3_832 - 0.001);
      expect(bucket.left).toBe(0);
    }
  });

  test('does not walk through an idle night: twenty steps at the most, and none when nothing is kept', () => {
    const NIGHT_MS = 10 * 3_600_000;
    const bucket = new WindowBucket(1, WINDOW_MS);
    expect(goTo(bucket, NIGHT_MS)).toBe(0);
    bucket.deposit(1);
    expect(goTo(bucket, 2 * NIGHT_MS)).toBe(SLOTS);
    expect(bucket.left).toBe(1);
    bucket.deposit(1);
    goTo(bucket, 2 * NIGHT_MS + WINDOW_MS - 1);
    expect(bucket.left).toBe(2);
    goTo(bucket, 2 * NIGHT_MS + WINDOW_MS);
    expect(bucket.left).toBe(1);
  });
});

/** The same said plainly: every entry is kept, and counted by its slot. */
class PlainWindow {
  readonly #entries: { slot: number; deposited: number; withdrawn: number }[] = [];
  readonly #reserve: number;

  constructor(reserve: number) {
    this.#reserve = reserve;
  }

  left(at: number): number {
    const slot = Math.floor(at / SLOT_MS);
    const kept = this.#entries.filter((entry) => slot - entry.slot < SLOTS);
    return kept.reduce((left, entry) => left + entry.deposited - entry.withdrawn, this.#reserve);
  }

  deposit(at: number, amount: number): void {
    this.#entries.push({ slot: Math.floor(at / SLOT_MS), deposited: amount, withdrawn: 0 });
  }

  tryWithdraw(at: number, amount: number): boolean {
    if (amount > this.left(at)) return false;
    this.#entries.push({ slot: Math.floor(at / SLOT_MS), deposited: 0, withdrawn: amount });
    return true;
  }
}

test('equals the plain definition over any sequence of deposits, withdrawals and waits', () => {
  const wait = fc.oneof(fc.integer({ min: 0, max: 150 }), fc.integer({ min: 0, max: 100_000_000 }));
  const event = fc.record({ wait, deposit: fc.boolean(), amount: fc.integer({ min: 0, max: 50 }) });
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 20 }), fc.array(event, { maxLength: 80 }), (reserve, events) => {
      const bucket = new WindowBucket(reserve, WINDOW_MS);
      const plain = new PlainWindow(reserve);
      let at = 0;
      for (const { wait, deposit, amount } of events) {
        at += wait;
        expect(goTo(bucket, at)).toBeLessThanOrEqual(SLOTS);
        if (deposit) {
          bucket.deposit(amount);
          plain.deposit(at, amount);
        } else {
          expect(bucket.tryWithdraw(amount)).toBe(plain.tryWithdraw(at, amount));
        }
        expect(bucket.left).toBe(plain.left(at));
      }
    }),
  );
});
