/** H1: a cluster that is down keeps its commands, and no timer of ioredis ends the wait. */
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster } from 'ioredis';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { refusedPort } from '../../demo/free-port.ts';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { enterScope } from '../../src/current.ts';
import { remainingMs, withBudget } from '../../src/index.ts';
import { recordCall } from '../../src/manual/index.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { until } from '../support/loopback.ts';

let t: TestHooks;

beforeEach(() => {
  enterScope(undefined);
  t = createTestHooks();
  activateRecorder(t.recorder);
});

afterEach(() => deactivateRecorder(t.recorder));

test('H1: budget 200: phase queue, remaining 0 at 200, still pending then, and what follows is for nobody', async () => {
  let isGivenUp = false;
  const cluster = new Cluster([{ host: '127.0.0.1', port: await refusedPort() }], {
    clusterRetryStrategy: () => (isGivenUp ? null : 20),
  });
  cluster.on('error', () => {});
  let state = 'pending';
  let command: Promise<unknown> | undefined;
  let leftMs: number | undefined;
  const askedAt = performance.now();
  await withBudget(
    200,
    async () => {
      command = recordCall('redis', (call) => {
        // What ioredis cannot send yet stands in its offline queue.
        if (cluster.status !== 'ready') call.enter('queue');
        return cluster.get('basket');
      }).then(
        () => (state = 'answered'),
        () => (state = 'failed'),
      );
      while ((leftMs = remainingMs() ?? 0) > 0) await sleep(leftMs);
    },
    { operation: 'basket' },
  );
  expect(state).toBe('pending');
  expect(leftMs).toBeLessThanOrEqual(0);
  expect(t.value('expiries', { dependency: 'redis', phase: 'queue' })).toBe(1);
  expect(t.value('outcomes', { operation: 'basket', outcome: 'late' })).toBe(1);
  expect(t.value('executing', { dependency: 'redis' })).toBe(1);
  expect(t.value('postCancelSeconds', { dependency: 'redis' })).toBe(0);

  await sleep(100);
  isGivenUp = true;
  await until(() => cluster.status === 'end');
  await command;
  const sinceS = (performance.now() - askedAt - 200) / 1_000;
  expect(state).toBe('failed');
  const lateS = t.value('postCancelSeconds', { dependency: 'redis' });
  expect(lateS).toBeGreaterThan(0.09);
  expect(lateS).toBeLessThanOrEqual(sinceS);
  expect(t.value('postCancelItems', { dependency: 'redis', result: 'failed' })).toBe(1);
  expect(t.value('executing', { dependency: 'redis' })).toBe(0);
  const phase = t.histogram('callPhase', { dependency: 'redis', phase: 'queue' });
  expect([phase.count, t.histogram('callPhase', { dependency: 'redis' }).count]).toEqual([1, 1]);
});
