import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { phaseIndex } from '../../src/core/call.ts';
import { enterScope } from '../../src/current.ts';
import { signal } from '../../src/index.ts';
import type { RequestRecord } from '../../src/records.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import {
  CLIENTS,
  DEPENDENCY,
  type FailingServer,
  type RetryStage,
  startFailingServer,
  startRetryStage,
} from '../support/retry-stage.ts';

/** One repeat in ten seconds, whatever the originals. */
const ONE_REPEAT: ConfigOptions = {
  retryBudgets: { stock: { model: 'token_bucket', ratio: 0, reservePerSecond: 0.1, ttlMs: 10_000 } },
};
const AMPLE: ConfigOptions = {
  retryBudgets: { stock: { model: 'token_bucket', ratio: 0.5, reservePerSecond: 10, ttlMs: 10_000 } },
};
const DELAY_MS = 30;

let server: FailingServer;
let stage: RetryStage;

beforeEach(async () => {
  enterScope(undefined);
  server = await startFailingServer();
});

afterEach(async () => {
  stage.stop();
  await server.close();
});

function timers(): number {
  return process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
}

function backoffMs(record: RequestRecord): number {
  const term = record.ledger.terms.find(({ dependency }) => dependency === DEPENDENCY);
  return term?.phaseMs[phaseIndex('backoff')] ?? 0;
}

function repeatsRefused(reason: string): number {
  return stage.t.value('refused', { dependency: DEPENDENCY, attempt: 'repeat', reason });
}

function withdrawals(result: string): number {
  return stage.t.value('retryWithdrawals', { dependency: DEPENDENCY, result });
}

async function failing(work: Promise<unknown>): Promise<unknown> {
  try {
    await work;
  } catch (error) {
    return error;
  }
  throw new Error('it has succeeded');
}

describe.each(CLIENTS)('$library', ({ run, statusOf, owner }) => {
  const operation = (maxAttempts: number, delayMs = DELAY_MS) => ({ url: server.url, maxAttempts, delayMs });

  test('T-07: the first attempt fails and time is left: one more, paid by a token, and the wait is backoff', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...AMPLE });
    server.failures = 1;
    const record = await stage.inRequest(5_000, async (request) => {
      expect(await run(operation(3))).toBe('stocked');
      // Kept, once it has been asked for.
      expect(request.ledger.terms).toHaveLength(1);
      return request;
    });
    expect(server.arrivals).toBe(2);
    expect([withdrawals('granted'), withdrawals('refused')]).toEqual([1, 0]);
    expect(stage.t.value('refused', { attempt: 'repeat' })).toBe(0);
    // The original has paid in, the repeat has not.
    expect(stage.t.value('retryDeposits', { dependency: DEPENDENCY, source: 'original' })).toBe(1);
    expect(stage.t.value('retryDeposits', { source: 'refund' })).toBe(0);
    expect(backoffMs(record)).toBeGreaterThanOrEqual(DELAY_MS - 2);
    expect(backoffMs(record)).toBeLessThanOrEqual(DELAY_MS);
    expect(record.openCalls).toBe(0);
  });

  test('T-27: each of its repeats has its owner, in observe as well', async () => {
    stage = startRetryStage(server.port, {});
    server.failures = 2;
    await stage.inRequest(5_000, () => run(operation(3)));
    expect(stage.t.value('attempts', { kind: 'original', owner: 'none' })).toBe(1);
    expect(stage.t.value('attempts', { kind: 'reexecute', owner })).toBe(2);
    expect(stage.t.value('attempts')).toBe(3);
  });

  test('R-03: how many attempts it makes at the most is told, the original included', async () => {
    stage = startRetryStage(server.port, AMPLE);
    server.failures = 1;
    await stage.inRequest(5_000, () => run(operation(3)));
    expect(stage.t.value('permittedAttempts', { dependency: DEPENDENCY })).toBe(3);
  });

  test('T-07, R-11, R-30: no time is left: none, the error of the attempt, counted, and no token', async () => {
    stage = startRetryStage(server.port, {
      mode: 'enforce',
      ...AMPLE,
      dependencies: { stock: { reserveMs: 400, typicalMs: 300 } },
    });
    server.failures = 9;
    const error = await stage.inRequest(650, () => failing(run(operation(3))));
    expect(statusOf(error)).toBe(503);
    expect(server.arrivals).toBe(1);
    expect(repeatsRefused('does_not_fit_retry')).toBe(1);
    expect(stage.t.value('retryWithdrawals')).toBe(0);
  });

  test('R-18: the budget is empty: no attempt, the original error, counted as refused and as exhausted', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...ONE_REPEAT });
    server.failures = 9;
    const error = await stage.inRequest(5_000, () => failing(run(operation(5))));
    expect(statusOf(error)).toBe(503);
    expect(server.arrivals).toBe(2);
    expect([withdrawals('granted'), withdrawals('refused')]).toEqual([1, 1]);
    expect(repeatsRefused('retry_budget_empty')).toBe(1);
    const { families } = stage.t.recorder;
    families.retryExhausted.refresh?.();
    expect(stage.t.value('retryExhausted', { dependency: DEPENDENCY })).toBeGreaterThan(0);
    expect(stage.t.value('retryBalance')).toBe(0);
    expect(stage.t.value('retryCapacity')).toBe(1);
  });

  test('observe: what would have been refused is counted, and every repeat is made', async () => {
    stage = startRetryStage(server.port, ONE_REPEAT);
    server.failures = 3;
    expect(await stage.inRequest(5_000, () => run(operation(4)))).toBe('stocked');
    expect(server.arrivals).toBe(4);
    expect([withdrawals('granted'), withdrawals('refused')]).toEqual([1, 2]);
    expect(repeatsRefused('retry_budget_empty')).toBe(2);
    expect(stage.t.value('retryDeposits', { source: 'original' })).toBe(0);
  });

  test('observe: a repeat that does not fit is made, and the attempts of the loop still end it', async () => {
    stage = startRetryStage(server.port, { ...AMPLE, dependencies: { stock: { reserveMs: 10_000 } } });
    server.failures = 9;
    const error = await stage.inRequest(5_000, () => failing(run(operation(2))));
    expect(statusOf(error)).toBe(503);
    expect(server.arrivals).toBe(2);
    expect(repeatsRefused('deadline_exceeded_before_dispatch')).toBe(1);
    expect(stage.t.value('retryWithdrawals')).toBe(0);
  });

  test('Retry-After is obeyed when it fits', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...AMPLE });
    server.failures = 1;
    server.retryAfter = '1';
    const startedAt = performance.now();
    expect(await stage.inRequest(5_000, () => run(operation(3)))).toBe('stocked');
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(990);
    expect(server.arrivals).toBe(2);
  });

  test('Retry-After that does not fit is not waited for', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...AMPLE });
    server.failures = 9;
    server.retryAfter = '3';
    const startedAt = performance.now();
    const error = await stage.inRequest(2_500, () => failing(run(operation(3))));
    expect(statusOf(error)).toBe(503);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
    expect(server.arrivals).toBe(1);
    expect(repeatsRefused('does_not_fit_retry')).toBe(1);
    expect(stage.t.value('retryWithdrawals')).toBe(0);
  });

  test('outside a request and without the package it works as it does alone', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...AMPLE });
    stage.stop();
    server.failures = 2;
    expect(await run(operation(3))).toBe('stocked');
    expect(server.arrivals).toBe(3);
  });

  test('no timer and no listener is left', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...ONE_REPEAT });
    server.failures = 9;
    const before = timers();
    await stage.inRequest(undefined, async () => {
      const inside = signal();
      await failing(run(operation(5)));
      expect(inside === undefined ? [] : getEventListeners(inside, 'abort')).toEqual([]);
    });
    expect(timers()).toBeLessThanOrEqual(before);
  });
});
