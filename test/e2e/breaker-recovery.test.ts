/**
 * T-18 and L-23 over real processes: a dependency recovers while callers wait for it. Whether the close of the
 * breaker sends them all at once is read from the service's own metrics, and is what the dependency saw itself.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { Child, testFile } from '../support/child.ts';
import { type Metrics, Service } from '../support/service.ts';

const CALLERS = 30;
/** Between the first and the last of the callers that spread themselves. */
const SPREAD_MS = 2_000;

let stock: Child;
let service: Service;

async function start(breaker: string): Promise<void> {
  stock = new Child([testFile('apps/recovering.mjs')], {});
  const url = `http://127.0.0.1:${await stock.port()}`;
  service = await Service.start('apps/breaker.mjs', {
    env: {
      BREAKER: breaker,
      NEXT_URL: url,
      OTEL_TRACES_EXPORTER: 'none',
    },
  });
}

afterEach(async () => {
  await Promise.all([service.stop(), stock.stop('SIGKILL')]);
});

const ask = async (waitMs: number): Promise<number> => {
  const response = await fetch(service.origin, { headers: { 'x-wait-ms': String(waitMs) } });
  await response.text();
  return response.status;
};

const probes = (metrics: Metrics) => metrics.value('time_budget_breaker_probes_total');
const afterClose = (metrics: Metrics, le: string) =>
  metrics.value('time_budget_breaker_after_close_seconds_bucket', { le });

/** The breaker is half open, its probe is under way at a dependency that does not answer yet. */
async function holdProbe(): Promise<{ readonly probe: Promise<number> }> {
  expect(await ask(0)).toBe(503);
  await service.until(
    (metrics) => metrics.value('time_budget_breaker_transitions_total', { state: 'open' }) === 1,
  );
  stock.signal('SIGUSR1');
  await stock.says(/holding\./);
  // Blocked at first, and then let through as the probe, in which it stays.
  const probe = ask(20);
  await service.until((metrics) => probes(metrics) === 1);
  return { probe };
}

/** Starts callers, and waits until all of them are inside. */
async function startCallers(waitMs: (index: number) => number): Promise<readonly Promise<number>[]> {
  const callers = Array.from({ length: CALLERS }, (_, index) => ask(waitMs(index)));
  let inside = 0;
  // With the probe.
  while (inside < CALLERS + 1) {
    await sleep(5);
    inside = Number(await (await fetch(`${service.origin}/inside`)).text());
  }
  return callers;
}

/** Arrivals that the dependency itself saw behind the probe: the most in any half second. */
async function largestWave(): Promise<number> {
  stock.signal('SIGHUP');
  const all: number[] = JSON.parse(await stock.says(/arrivals (\[.*\])\./));
  const behind = all.slice(2);
  return Math.max(...behind.map((from) => behind.filter((at) => at >= from && at < from + 500).length));
}

describe('T-18, L-23: a dependency recovers while callers wait', () => {
  test('cockatiel keeps those that come during the probe, and its close sends all at once: the wave is seen', async () => {
    await start('cockatiel');
    const { probe } = await holdProbe();
    const callers = await startCallers(() => 0);
    stock.signal('SIGUSR2');
    expect(await probe).toBe(200);
    expect(await Promise.all(callers)).toEqual(Array(CALLERS).fill(200));
    const metrics = await service.until((each) => afterClose(each, '+Inf') === CALLERS);
    expect(metrics.value('time_budget_breaker_transitions_total', { state: 'closed' })).toBe(1);
    expect(probes(metrics)).toBe(1);
    // None of them has waited for anything but the close.
    expect(afterClose(metrics, '0.5')).toBe(CALLERS);
    expect(await largestWave()).toBeGreaterThan(CALLERS / 2);
  });

  test('callers that are blocked at once and wait differently come one by one', async () => {
    await start('opossum');
    const { probe } = await holdProbe();
    const callers = await startCallers((index) => 300 + (index * SPREAD_MS) / CALLERS);
    stock.signal('SIGUSR2');
    expect(await probe).toBe(200);
    expect(await Promise.all(callers)).toEqual(Array(CALLERS).fill(200));
    const metrics = await service.until((each) => afterClose(each, '+Inf') === CALLERS);
    expect(probes(metrics)).toBe(1);
    expect(metrics.value('time_budget_breaker_blocked_total')).toBeGreaterThanOrEqual(CALLERS);
    expect(afterClose(metrics, '0.5')).toBeLessThan(CALLERS / 2);
    expect(afterClose(metrics, '10')).toBe(CALLERS);
    expect(await largestWave()).toBeLessThan(CALLERS / 2);
    expect(metrics.value('time_budget_breaker_state', { state: 'closed' })).toBe(1);
    expect(metrics.value('time_budget_breaker_state', { state: 'open' })).toBe(0);
  });
});
