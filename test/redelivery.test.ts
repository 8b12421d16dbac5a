/**
 * R-33, L-35 and the first scene of T-23, by the public API: a consumer says which delivery of a message it handles.
 * What a broker's own client could say of it without a word waits for the adapters of brokers.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../src/active.ts';
import { enterScope } from '../src/current.ts';
import { recordDuplicate, setRepeated, withBudget } from '../src/index.ts';
import { createTestHooks, type TestHooks } from './support/hooks.ts';

let t: TestHooks;

beforeEach(() => {
  enterScope(undefined);
  t = createTestHooks();
  activateRecorder(t.recorder);
});

afterEach(() => deactivateRecorder(t.recorder));

interface Message {
  readonly id: string;
  readonly delivery: number;
}

/** A store of what was done, and its effects. */
class Consumer {
  readonly done = new Map<string, string>();
  effects = 0;

  handle(message: Message): string {
    return withBudget(
      1_000,
      () => {
        if (message.delivery > 1) setRepeated('broker', message.delivery);
        const before = this.done.get(message.id);
        if (before !== undefined) {
          recordDuplicate('recognised', 'prevented', 'returned');
          return before;
        }
        this.effects++;
        const receipt = `receipt of ${message.id}`;
        this.done.set(message.id, receipt);
        return receipt;
      },
      { operation: 'book' },
    );
  }
}

const duplicates = (ability: string) => t.value('duplicates', { operation: 'book', ability });

describe('T-23: redelivery of a message that was done', () => {
  test('no second effect, the duplicate is recognised, and its sender gets the first result', () => {
    const consumer = new Consumer();
    const receipts = [1, 2, 3].map((delivery) => consumer.handle({ id: 'a', delivery }));
    expect(new Set(receipts)).toEqual(new Set(['receipt of a']));
    expect(consumer.effects).toBe(1);
    expect([duplicates('recognised'), duplicates('prevented'), duplicates('returned')]).toEqual([2, 2, 2]);
  });

  test('R-33: a delivery after the first is an attempt of the broker, and part of what the operation costs', () => {
    const consumer = new Consumer();
    consumer.handle({ id: 'a', delivery: 1 });
    for (const delivery of [2, 3]) consumer.handle({ id: 'a', delivery });
    expect(t.value('arrivalRepeats', { owner: 'broker' })).toBe(2);
    expect([t.value('admitted', { operation: 'book' }), t.value('retried', { operation: 'book' })]).toEqual([
      3, 2,
    ]);
  });
});

describe('L-35: three abilities, counted on their own', () => {
  test('one that only knows', () => {
    withBudget(1_000, () => recordDuplicate('recognised'), { operation: 'book' });
    expect([duplicates('recognised'), t.value('duplicates')]).toEqual([1, 1]);
  });

  test('outside a request, and a word that is none', () => {
    recordDuplicate('prevented', 'guessed' as 'returned');
    expect(t.value('duplicates', { operation: 'unmatched', ability: 'prevented' })).toBe(1);
    expect(t.value('duplicates')).toBe(1);
  });
});
