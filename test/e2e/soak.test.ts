/** A hundred thousand requests through one service, aborts among them: nothing of ours may grow. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Child, REGISTER, testFile } from '../support/child.ts';

const CHECKPOINTS = [20_000, 60_000, 100_000] as const;
const AT_ONCE = 32;
/**
 * A leak of one object per request would be at least 40 bytes for each of the 40,000 between two readings, 1.6 MB.
 * Half of that is more than the heap of the same service varies by after three collections (measured: 0.2 MB).
 */
const HEAP_TOLERANCE_BYTES = 800_000;

/** Its buckets, sum and count. */
const HISTOGRAM_LINES = 12 + 3;

interface Self {
  /** As the service itself has counted them. */
  readonly requests: number;
  readonly heapUsed: number;
  readonly timers: number;
  readonly listeners: readonly number[];
}

const agent = new http.Agent({ keepAlive: true, maxSockets: AT_ONCE });
const upstream = http.createServer((_, response) => response.end('7'));
let service: Child;
let port = 0;
let scrapePort = 0;

function freePort(): Promise<number> {
  const server = http.createServer();
  return new Promise((resolve) =>
    server.listen(0, '127.0.0.1', () => {
      const { port: free } = server.address() as AddressInfo;
      server.close(() => resolve(free));
    }),
  );
}

beforeAll(async () => {
  await new Promise<void>((done) => upstream.listen(0, '127.0.0.1', done));
  scrapePort = await freePort();
  service = new Child(['--expose-gc', '--import', REGISTER, testFile('apps/soak.mjs')], {
    STOCK_URL: `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`,
    OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
    OTEL_EXPORTER_PROMETHEUS_PORT: String(scrapePort),
  });
  port = await service.port();
});

afterAll(async () => {
  agent.destroy();
  await service.stop();
  upstream.closeAllConnections();
  upstream.close();
});

/** One request: every 20th by fetch, every 20th by http, every 20th cut off by its caller. */
function send(i: number): Promise<void> {
  const kind = i % 20;
  const path = kind === 0 ? '/fetch' : kind === 1 ? '/http' : kind === 2 ? '/slow' : '/plain';
  const headers = {
    'time-budget': `remaining=${1000 + (i % 7)}, attempt=1, caller=caller-${i % 5000}`,
    'x-request-id': String(i),
  };
  return new Promise((resolve) => {
    const request = http.get(
      { port, host: '127.0.0.1', path: `${path}/${i}`, agent, headers },
      (response) => {
        response.resume();
      },
    );
    request.once('error', () => {});
    request.once('close', resolve);
    if (path === '/slow') setTimeout(() => request.destroy(), 5);
  });
}

async function sendUpTo(from: number, to: number): Promise<void> {
  let next = from;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < to) await send(next++);
    }),
  );
}

async function text(url: string): Promise<string> {
  return (await fetch(url)).text();
}

test('heap, timers, listeners and series stay where they are', async () => {
  const selves: Self[] = [];
  const series: number[] = [];
  let sent = 0;
  for (const checkpoint of CHECKPOINTS) {
    await sendUpTo(sent, checkpoint);
    sent = checkpoint;
    // The last aborted handlers and their calls end.
    await new Promise((done) => setTimeout(done, 300));
    selves.push(JSON.parse(await text(`http://127.0.0.1:${port}/self`)));
    const page = await text(`http://127.0.0.1:${scrapePort}/metrics`);
    series.push(page.split('\n').filter((line) => line.startsWith('time_budget_')).length);
  }
  const [, second, third] = selves;
  const told = JSON.stringify({ selves, series });
  expect(third?.heapUsed ?? 0, told).toBeLessThan((second?.heapUsed ?? 0) + HEAP_TOLERANCE_BYTES);
  expect(third?.timers, told).toBe(second?.timers);
  expect(third?.listeners, told).toEqual(second?.listeners);
  // A histogram appears with its first value: a rare phase (a blocked loop, say) may still be among the last 40,000.
  expect((series[2] ?? 0) - (series[1] ?? 0), told).toBeLessThanOrEqual(2 * HISTOGRAM_LINES);

  const page = await text(`http://127.0.0.1:${scrapePort}/metrics`);
  const value = (pattern: RegExp) =>
    [...page.matchAll(pattern)].reduce((sum, [, number]) => sum + Number(number), 0);
  const offered = value(/^time_budget_offered_total\{.*\} (\d+)$/gm);
  // Some were cut off before they arrived, so what counts is what the service has seen.
  expect(third?.requests, told).toBeGreaterThan(CHECKPOINTS[2] * 0.99);
  expect(offered).toBe(third?.requests);
  expect(value(/^time_budget_outcomes_total\{.*\} (\d+)$/gm)).toBe(offered);
  expect(value(/^time_budget_outcomes_total\{.*outcome="cancelled".*\} (\d+)$/gm)).toBeGreaterThan(1000);
  expect(value(/^time_budget_executing\{.*\} (-?\d+)$/gm)).toBe(0);
  expect(value(/^time_budget_internal_errors_total (\d+)$/gm)).toBe(0);
  // T-28: 5,000 callers are 8 and `other`.
  expect(new Set([...page.matchAll(/caller="([^"]*)"/g)].map(([, name]) => name)).size).toBeLessThanOrEqual(
    10,
  );
  const ours = page.split('\n').filter((line) => line.startsWith('time_budget_'));
  const values = new Set(ours.flatMap((line) => [...line.matchAll(/="([^"]*)"/g)].map(([, value]) => value)));
  expect([...values].filter((value) => /plain|slow|fetch\/|\d{9}/.test(value ?? ''))).toEqual([]);
}, 240_000);
