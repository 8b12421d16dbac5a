/** D-01: a slow dependency and an impatient caller look alike from outside, and must never be taken for each other. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newTraceIds } from '../../demo/caller.ts';
import { Cleanup } from '../../demo/cleanup.ts';
import { type Hop, readHops } from '../../demo/hops.ts';
import type { Stage } from '../../demo/player.ts';
import { startStage } from '../../demo/processes.ts';
import type { ExpiryCause } from '../../src/core/terms.ts';

const RUNS = 50;
const AT_ONCE = 6;
const BASELINE = 100;
/** The first requests of a process are slow. Few at a time, they stay below the twentieth that makes the p95. */
const COLD = 6;
const SERVICES = ['gateway', 'orders', 'inventory'];

interface Kind {
  readonly query: string;
  readonly budgetMs: number;
}
/** Long enough that the noise of a small, busy machine is small beside it. */
const USUAL: Kind = { query: '?inventory_ms=280', budgetMs: 5000 };
const SLOW: Kind = { query: '?inventory_ms=1500', budgetMs: 1200 };
const IMPATIENT: Kind = { query: '?inventory_ms=280', budgetMs: 200 };

const cleanup = new Cleanup();
let stage: Stage;

beforeAll(async () => {
  stage = await startStage(cleanup, (error) => {
    throw error;
  });
  const ask = async () => {
    await stage.caller.get({ url: urlOf(USUAL), budgetMs: USUAL.budgetMs });
  };
  await repeat(COLD, 2, ask);
  await repeat(BASELINE, AT_ONCE, ask);
});
afterAll(() => cleanup.run());

function urlOf({ query }: Kind): string {
  return `${stage.gatewayUrl}/orders/42${query}`;
}

async function repeat(count: number, atOnce: number, work: () => Promise<void>): Promise<void> {
  let left = count;
  const some = async () => {
    while (left-- > 0) await work();
  };
  await Promise.all(Array.from({ length: atOnce }, some));
}

async function ask(kind: Kind): Promise<Hop[]> {
  const ids = newTraceIds();
  stage.receiver.expect(ids.traceId);
  const { sentAt } = await stage.caller.get({ url: urlOf(kind), budgetMs: kind.budgetMs }, ids);
  return readHops(await stage.receiver.take(ids.traceId, ids.spanId, SERVICES, 10_000), sentAt);
}

/** How often a service gave each cause. */
type Counts = Map<string, number>;

async function causesOf(kind: Kind): Promise<Record<'gateway' | 'orders', Counts>> {
  const counts = { gateway: new Map<string, number>(), orders: new Map<string, number>() };
  await repeat(RUNS, AT_ONCE, async () => {
    for (const { service, cause = 'none' } of await ask(kind)) {
      if (service !== 'gateway' && service !== 'orders') continue;
      counts[service].set(cause, (counts[service].get(cause) ?? 0) + 1);
    }
  });
  return counts;
}

test(`D-01: ${RUNS} slow dependencies and ${RUNS} impatient callers side by side, none taken for the other`, async () => {
  const [slow, impatient] = await Promise.all([causesOf(SLOW), causesOf(IMPATIENT)]);
  const told = JSON.stringify({ slow, impatient }, (_, value) =>
    value instanceof Map ? Object.fromEntries(value) : value,
  );
  const of = (counts: Counts, cause: ExpiryCause) => counts.get(cause) ?? 0;
  expect(of(slow.gateway, 'caller_budget_too_small'), told).toBe(0);
  expect(of(slow.orders, 'caller_budget_too_small'), told).toBe(0);
  expect(of(impatient.gateway, 'slow_dependency'), told).toBe(0);
  expect(of(impatient.orders, 'slow_dependency'), told).toBe(0);
  // Other work on the machine may starve a process for longer than the caller gave: then neither is to blame.
  for (const service of ['gateway', 'orders'] as const) {
    expect(of(slow[service], 'slow_dependency'), told).toBeGreaterThanOrEqual(RUNS * 0.8);
    expect(of(impatient[service], 'caller_budget_too_small'), told).toBeGreaterThanOrEqual(RUNS * 0.7);
  }
}, 60_000);
