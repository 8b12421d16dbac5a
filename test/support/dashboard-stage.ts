/** The demo's services and one that does the rest, under a small load whose numbers are known, scraped by a real Prometheus. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cleanup } from '../../demo/cleanup.ts';
import { play, type Stage, sendBaseline } from '../../demo/player.ts';
import { startStage } from '../../demo/processes.ts';
import { SCENARIOS } from '../../demo/scenarios.ts';
import { readOptions } from '../../rules/options.ts';
import { rulesFile } from '../../rules/rules-file.ts';
import { Prometheus } from './prometheus.ts';
import { type Metrics, Service } from './service.ts';

/** Between two scrapes, s; windows of the rules are those of the defaults times this scale. */
const SCRAPE_S = 0.5;
const SCALE = 0.01;
/** Work behind the gate, which lets one in and two wait. */
const HOLD_MS = 40;
const LONG_HOLD_MS = 1500;
const PLAYED = ['slow-dependency', 'unrealistic-budget', 'client-leaves', 'fresh-timeout'];
/** Nobody sends anything to it. */
export const IDLE = 'idle';

/** Requests of one round to the service that does the rest: path, how many, budget in ms, caller. */
const ROUND: readonly (readonly [
  path: string,
  count: number,
  budgetMs: number | undefined,
  caller?: string,
])[] = [
  ['/work', 30, 2000, 'web'],
  ['/slow', 10, 60, 'batch'],
  ['/thrice', 10, 2000],
  ['/retry', 12, 2000],
  ['/price', 6, 2000],
  ['/broken', 2, 2000],
  ['/replay', 5, undefined],
  ['/pressed', 3, 2000],
  ['/hedged', 2, 2000],
  ['/twice', 3, 2000],
  ['/unsure', 4, 2000],
  ['/settled', 2, 2000],
  ['/aside', 2, 2000],
  ['/restored', 1, 2000],
  ['/degraded', 4, 2000],
  ['/hold', 5, 2000],
  ['/full', 5, 2000],
];

export interface DashboardStage {
  readonly prometheus: Prometheus;
  /** Unix seconds: the whole load lies before it, and as many seconds before it the load began. */
  readonly atS: number;
  readonly rangeS: number;
  stop(): Promise<void>;
}

export async function startDashboardStage(): Promise<DashboardStage> {
  const cleanup = new Cleanup();
  try {
    return await start(cleanup);
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

async function start(cleanup: Cleanup): Promise<DashboardStage> {
  const demo = await startStage(cleanup, (error) => console.error(error));
  const peer = await startPeer(cleanup);
  const shop = await startShop('shop', peer, cleanup);
  const idle = await startShop(IDLE, peer, cleanup);
  const prometheus = await Prometheus.start({
    pages: { ...demo.metricsUrls, shop: shop.page, [IDLE]: idle.page },
    scrapeInterval: `${SCRAPE_S * 1000}ms`,
    rules: scaledRules(),
  });
  cleanup.add(() => prometheus.stop());

  // Series that begin with their first value show no increase by it.
  await sendBaseline(demo, 30, 2);
  await playDemo(demo, PLAYED);
  await sendRound(shop);
  await seen(prometheus, shop);
  await sleep(3 * SCRAPE_S * 1000);
  const fromS = Date.now() / 1000;
  await sleep(2 * SCRAPE_S * 1000);
  await playDemo(demo, PLAYED);
  await sendBaseline(demo, 20, 2);
  await sendRound(shop);
  await seen(prometheus, shop);
  // At the end one is worked on and two wait.
  const waiting = Array.from({ length: 3 }, () => send(shop, '/hold', 20_000, undefined, LONG_HOLD_MS));
  await prometheus.until(
    'something waits',
    async () =>
      (await prometheus.query('time_budget_queue_depth{queue="counter",job="shop"} > 1')).length > 0,
  );
  await prometheus.until(
    'a usual latency is known',
    async () =>
      (await prometheus.query('dependency:time_budget_call_duration_seconds:p95_per_baseline1d')).length > 0,
  );
  const atS = Date.now() / 1000;
  await Promise.all(waiting);
  return { prometheus, atS, rangeS: Math.ceil(atS - fromS), stop: () => cleanup.run() };
}

/** Everything asks it. `/slow` is slower than some callers wait. */
async function startPeer(cleanup: Cleanup): Promise<string> {
  const server = http.createServer(async (request, response) => {
    await sleep(request.url === '/slow' ? 150 : 5);
    response.statusCode = request.url === '/fail' ? 503 : 200;
    response.end('stock');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  cleanup.add(async () => {
    server.closeAllConnections();
    server.close();
  });
  // It listens on a port.
  return String((server.address() as AddressInfo).port);
}

async function startShop(name: string, peer: string, cleanup: Cleanup): Promise<Service> {
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-dashboards-'));
  cleanup.add(async () => rmSync(folder, { recursive: true }));
  const config = join(folder, 'time-budget.yaml');
  const routes = [...ROUND.map(([path]) => path), '/mended'].map(
    (path) => `{ path: '${path}', operation: 'GET ${path}' }`,
  );
  // Two names of one machine are two dependencies.
  writeFileSync(
    config,
    `version: 1
mode: enforce
policy_version: '7'
routes: [${routes.join(', ')}]
operations: { 'GET /slow': { typical_ms: 200 } }
dependencies:
  stock: { match: ['127.0.0.1:${peer}'], cap_ms: 500, reserve_ms: 10, minimum_ms: 100 }
  price: { match: ['localhost:${peer}'] }
retry_budgets:
  stock: { model: token_bucket, ratio: 0.5, reserve_per_second: 1, ttl_ms: 10000 }
`,
  );
  const service = await Service.start('apps/dashboards.mjs', {
    env: {
      OTEL_SERVICE_NAME: name,
      OTEL_TRACES_EXPORTER: 'none',
      TIME_BUDGET_CONFIG: config,
      STOCK_URL: `http://127.0.0.1:${peer}`,
      PRICE_URL: `http://localhost:${peer}`,
    },
  });
  cleanup.add(() => service.stop());
  return service;
}

function scaledRules(): string {
  const read = readOptions({
    scale: [String(SCALE)],
    'slow-offset': ['2m'],
    'slow-for': ['1m'],
    'slow-least-seconds': ['0'],
    'least-per-second': ['0'],
  });
  if ('problems' in read) throw new RangeError(read.problems.join('\n'));
  return rulesFile(read.options, 'a test');
}

async function playDemo(stage: Stage, names: readonly string[]): Promise<void> {
  for (const scenario of SCENARIOS.filter(({ name }) => names.includes(name))) await play(scenario, stage);
}

async function sendRound(shop: Service): Promise<void> {
  for (const [path, count, budgetMs, caller] of ROUND) {
    for (let i = 0; i < count; i += 5) {
      await Promise.all(
        Array.from({ length: Math.min(5, count - i) }, () => send(shop, path, budgetMs, caller)),
      );
    }
  }
  // Open, then let through as a probe, then closed.
  await sleep(100);
  for (let i = 0; i < 3; i++) await send(shop, '/mended', 2000);
  await fetch(`${shop.origin}/work`, { headers: { 'x-request-timeout-ms': 'soon' } }).then((one) =>
    one.text(),
  );
  await leave(shop);
}

async function send(
  shop: Service,
  path: string,
  budgetMs?: number,
  caller?: string,
  holdMs: number = HOLD_MS,
): Promise<void> {
  const headers: Record<string, string> = { 'x-hold-ms': String(holdMs) };
  if (budgetMs !== undefined) headers['x-request-timeout-ms'] = String(budgetMs);
  // What a service that runs the package sends.
  if (caller !== undefined) headers['time-budget'] = `remaining=${budgetMs}, caller=${caller}`;
  await (await fetch(shop.origin + path, { headers })).text();
}

/** A client that does not wait for what it asked. */
async function leave(shop: Service): Promise<void> {
  const leaving = AbortSignal.timeout(40);
  const headers = { 'x-request-timeout-ms': '5000' };
  await fetch(`${shop.origin}/slow`, { headers, signal: leaving }).catch(() => undefined);
}

/** Until Prometheus has what the service itself says, when all has ended. */
async function seen(prometheus: Prometheus, shop: Service): Promise<void> {
  const isAtRest = (metrics: Metrics) =>
    metrics.value('time_budget_in_flight') === 0 && metrics.value('time_budget_executing') === 0;
  const metrics = await shop.until(isAtRest);
  const ended = metrics.value('time_budget_outcomes_total');
  await prometheus.until('all was scraped', async () => {
    const [series] = await prometheus.query('sum(time_budget_outcomes_total{job="shop"})');
    return series?.value === ended;
  });
}
