import pRetry from 'p-retry';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { enterScope } from '../../src/current.ts';
import { setRepeated, withBudget } from '../../src/index.ts';
import { guardPRetry, mayRetry, type OwedRepeat, retryBudget } from '../../src/retry/index.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import {
  DEPENDENCY,
  type FailingServer,
  fetchItems,
  type RetryStage,
  startFailingServer,
  startRetryStage,
} from '../support/retry-stage.ts';

type OnEmpty = 'original_error' | 'managed_background' | 'degrade';

/** One repeat in stock, and one that the floor has in every minute: two in all. */
const config = (onEmpty: OnEmpty, mode: 'observe' | 'enforce' = 'enforce'): ConfigOptions => ({
  mode,
  retryBudgets: {
    stock: {
      model: 'fixed_quota',
      capacity: 1,
      attemptCost: 1,
      successAmount: 1,
      floor: { attempts: 1, everyMs: 60_000 },
      onEmpty,
    },
  },
});
const PAID = 2;

let server: FailingServer;
let stage: RetryStage;
let handed: OwedRepeat[];

beforeEach(async () => {
  enterScope(undefined);
  server = await startFailingServer();
  handed = [];
});

afterEach(async () => {
  stage.stop();
  await server.close();
});

const owed = () => stage.t.value('retryOwed', { dependency: DEPENDENCY });
const dispositions = (onEmpty: OnEmpty) =>
  stage.t.value('retryDispositions', { dependency: DEPENDENCY, on_empty: onEmpty });

/** An operation of two attempts; gives the status of what its caller gets. */
async function operate(background?: (repeat: OwedRepeat) => void): Promise<unknown> {
  const options = { retries: 1, minTimeout: 1 };
  const policy = { dependency: DEPENDENCY, background };
  return stage.inRequest(5_000, () =>
    pRetry(() => fetchItems(server.url), guardPRetry(policy, options)).catch(
      (error) => error.response.status,
    ),
  );
}

const hand = (repeat: OwedRepeat): void => {
  handed.push(repeat);
};

describe('R-21, R-26: what becomes of repeats that an empty budget refuses', () => {
  test('managed background: the caller gets its error, and what is put off is owed until it is settled', async () => {
    stage = startRetryStage(server.port, config('managed_background'));
    server.failures = 12;
    const grown = [];
    for (let i = 0; i < 6; i++) {
      expect(await operate(hand)).toBe(503);
      grown.push(owed());
    }
    // Growth while the budget is empty.
    expect(grown).toEqual([0, 0, 1, 2, 3, 4]);
    expect(server.arrivals).toBe(6 + PAID);
    expect(dispositions('managed_background')).toBe(4);
    expect(stage.t.value('refused', { attempt: 'repeat', reason: 'retry_budget_empty' })).toBe(4);
    expect(handed.map(({ dependency, attempt }) => [dependency, attempt])).toEqual(
      Array(4).fill([DEPENDENCY, 2]),
    );
    expect(handed[0]?.error).toHaveProperty('response.status', 503);
  });

  test('the background pays from the same budget: nothing while it is empty, then one for one', async () => {
    stage = startRetryStage(server.port, config('managed_background'));
    server.failures = 6;
    for (let i = 0; i < 4; i++) await operate(hand);
    expect(handed).toHaveLength(2);

    const run = (repeat: OwedRepeat) =>
      withBudget(5_000, async () => {
        if (!repeat.tryPay()) return 'empty';
        setRepeated('service', repeat.attempt);
        const text = await fetchItems(server.url);
        repeat.settle();
        return text;
      });
    const [first, second] = handed;
    if (first === undefined || second === undefined) throw new Error('two were handed over');
    expect(await run(first)).toBe('empty');
    expect([owed(), server.arrivals]).toEqual([2, 6]);

    retryBudget(DEPENDENCY).deposit(performance.now());
    expect(await run(first)).toBe('stocked');
    expect([owed(), server.arrivals]).toEqual([1, 7]);
    // It has succeeded, and brings its cost back: the next one can be made.
    expect(await run(second)).toBe('stocked');
    expect(owed()).toBe(0);
    expect(stage.t.value('retried')).toBe(2);
    expect(stage.t.value('arrivalRepeats', { owner: 'service' })).toBe(2);
    // Settled is settled.
    second.settle();
    expect([owed(), second.tryPay()]).toEqual([0, false]);
  });

  test.each([
    ['nobody takes over', undefined],
    [
      'a background that throws',
      () => {
        throw new Error('full');
      },
    ],
  ])('managed background, but %s: the original error, and nothing is owed', async (_, background) => {
    stage = startRetryStage(server.port, config('managed_background'));
    server.failures = 9;
    for (let i = 0; i < 3; i++) expect(await operate(background)).toBe(503);
    expect([owed(), dispositions('original_error'), dispositions('managed_background')]).toEqual([0, 1, 0]);
  });

  test.each(['original_error', 'degrade'] as const)(
    '%s: counted as that, and nobody is handed anything',
    async (onEmpty) => {
      stage = startRetryStage(server.port, config(onEmpty));
      server.failures = 9;
      for (let i = 0; i < 3; i++) expect(await operate(hand)).toBe(503);
      expect([dispositions(onEmpty), handed.length, owed()]).toEqual([1, 0, 0]);
      // The answer carries it, for a loop of one's own that has something else to give.
      const error = Object.assign(new Error('busy'), { status: 503 });
      const answer = mayRetry({ dependency: DEPENDENCY, error, attempt: 1, maxAttempts: 2 });
      expect([answer.isAllowed, answer.onEmpty]).toEqual([false, onEmpty]);
    },
  );

  test('an async background that fails owes nothing, and its rejection is heard', async () => {
    stage = startRetryStage(server.port, config('managed_background'));
    server.failures = 6;
    for (let i = 0; i < PAID + 1; i++) {
      expect(await operate(async () => Promise.reject(new Error('queue is full')))).toBe(503);
    }
    expect([owed(), dispositions('managed_background')]).toEqual([0, 1]);
  });

  test('observe refuses nothing, so nothing is put off', async () => {
    stage = startRetryStage(server.port, config('managed_background', 'observe'));
    server.failures = 9;
    for (let i = 0; i < 4; i++) await operate(hand);
    expect([server.arrivals, handed.length, owed()]).toEqual([8, 0, 0]);
    expect(dispositions('managed_background')).toBe(0);
  });

  test('every series is there at 0 from the start', () => {
    stage = startRetryStage(server.port, config('original_error'));
    expect(stage.t.recorder.families.retryOwed.cells).toHaveLength(1);
    expect(stage.t.recorder.families.retryDispositions.cells).toHaveLength(3);
  });
});
