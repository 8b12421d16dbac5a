/**
 * N-05 and N-06 over real processes: three tiers that repeat, above one that always fails. What one operation costs
 * is read at each tier from its own scraped metrics, without a trace, and is what the tier counted itself.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../demo/free-port.ts';
import { worstCaseAttempts } from '../../src/core/attempt.ts';
import { Child, REGISTER, testFile } from '../support/child.ts';

const TIERS = ['edge', 'orders', 'stock', 'store'] as const;
const OPERATION = 'GET /orders/:id';
/** Operations sent; each is to cost exactly the same. */
const OPERATIONS = 2;

interface Tier {
  readonly child: Child;
  readonly scrapePort: number;
}

/** The page, once it is served: a little after the start. */
async function scrape(port: number): Promise<string> {
  const giveUpAt = performance.now() + 30_000;
  for (;;) {
    const page = await fetch(`http://127.0.0.1:${port}/metrics`).then(
      (response) => response.text(),
      () => '',
    );
    if (page.includes('time_budget_offered_total')) return page;
    if (performance.now() > giveUpAt) throw new Error('too late: the page of metrics');
    await sleep(50);
  }
}

type Labels = Readonly<Record<string, string>>;

/** The sum of a metric's series with these labels, from the text that Prometheus would scrape. */
function sum(page: string, name: string, labels: Labels = {}): number {
  let total = 0;
  for (const line of page.split('\n')) {
    if (!line.startsWith(`${name}{`)) continue;
    if (!Object.entries(labels).every(([key, value]) => line.includes(`${key}="${value}"`))) continue;
    total += Number(
      line
        .slice(line.lastIndexOf('}') + 1)
        .trim()
        .split(' ')[0],
    );
  }
  return total;
}

describe.each([
  ['N-05: three attempts', 3, [1, 3, 9, 27]],
  ['N-06: three retries, which are four attempts', 4, [1, 4, 16, 64]],
] as const)('%s in each of three tiers', (_, attempts, rings) => {
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-attempts-'));
  const tiers: Tier[] = [];
  let pages: string[] = [];
  let counted: number[] = [];

  beforeAll(async () => {
    const config = join(folder, 'time-budget.yaml');
    writeFileSync(config, `version: 1\nroutes: [{ path: '/orders/:id', operation: '${OPERATION}' }]\n`);
    let next: string | undefined;
    for (const [index, name] of [...TIERS.entries()].reverse()) {
      const scrapePort = await freePort();
      const child = new Child(['--import', REGISTER, testFile('apps/attempts.mjs')], {
        OTEL_SERVICE_NAME: name,
        OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
        OTEL_EXPORTER_PROMETHEUS_PORT: String(scrapePort),
        TIME_BUDGET_CONFIG: config,
        ATTEMPTS: String(attempts),
        // Both clients, in turn.
        CLIENT: index % 2 === 0 ? 'fetch' : 'http',
        ...(next === undefined ? {} : { NEXT_URL: next }),
      });
      next = `http://127.0.0.1:${await child.port()}`;
      tiers.unshift({ child, scrapePort });
    }
    for (let i = 1; i <= OPERATIONS; i++) {
      const response = await fetch(`${next}/orders/${i}`);
      expect(response.status).toBe(503);
      await response.text();
    }
    counted = await Promise.all(
      tiers.map(async ({ child }) => {
        child.signal('SIGUSR2');
        return Number(await child.says(/arrivals (\d+)\./));
      }),
    );
    pages = await Promise.all(tiers.map(({ scrapePort }) => scrape(scrapePort)));
  });

  afterAll(async () => {
    await Promise.all(tiers.map(({ child }) => child.stop()));
    rmSync(folder, { recursive: true });
  });

  /** Per operation that was sent. */
  const perOperation = (name: string, labels: Labels = {}) =>
    pages.map((page) => sum(page, name, labels) / OPERATIONS);

  test('arrivals at each tier, from its metrics alone, are what it counted itself', () => {
    expect(perOperation('time_budget_offered_total', { operation: OPERATION })).toEqual(rings);
    expect(counted.map((arrivals) => arrivals / OPERATIONS)).toEqual(rings);
  });

  test('all but one of them are repeats, so the ratio says what one operation costs', () => {
    const admitted = perOperation('time_budget_admitted_total');
    const retried = perOperation('time_budget_retried_total');
    expect(retried).toEqual(rings.map((ring) => ring - 1));
    const ratios = admitted.map((count, index) => count / (count - (retried[index] ?? Number.NaN)));
    expect(ratios).toEqual(rings);
    // every attempt was made, so what is measured is the bound.
    expect(ratios).toEqual(worstCaseAttempts([attempts, attempts, attempts]));
  });

  test('each tier sees its own part as well: attempts per call that it made of its own', () => {
    const made = perOperation('time_budget_attempts_total', { operation: OPERATION });
    const originals = perOperation('time_budget_attempts_total', { kind: 'original', owner: 'none' });
    const repeats = perOperation('time_budget_attempts_total', { kind: 'reexecute', owner: 'unknown' });
    expect(made).toEqual([...rings.slice(1), 0]);
    expect(originals).toEqual([...rings.slice(0, -1), 0]);
    expect(repeats).toEqual([...rings.slice(0, -1).map((ring) => ring * (attempts - 1)), 0]);
    expect(perOperation('time_budget_repeat_results_total', { result: 'failed' })).toEqual(repeats);
    expect(perOperation('time_budget_repeat_results_total', { result: 'useful' })).toEqual([0, 0, 0, 0]);
  });

  test('R-07: every repeat that repeats is told of, and the first owner is not one', () => {
    const expected = [0, ...rings.slice(1, -1).map((ring) => ring - 1), 0];
    expect(perOperation('time_budget_violations_total', { kind: 'double_owner' })).toEqual(expected);
  });
});
