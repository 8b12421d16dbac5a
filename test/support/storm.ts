/**
 * The retry storm: a page, an order-status service and its dependency as processes of their own, a fixed schedule of
 * original demand, and a fault in the middle of it. Everything that is told is read from their metrics pages.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Experiment } from './experiment.ts';
import { type Metrics, Service } from './service.ts';

const TIERS = ['page', 'status', 'stock'] as const;
export type Tier = (typeof TIERS)[number];
export type Pages = Readonly<Record<Tier, Metrics>>;

/**
 * One original each; two minutes of the story are 3 s here. Rates are small, so that it is the dependency that is
 * short and not the processor: callers that are themselves held up send less, and there is no storm.
 */
const EVERY_MS = 100;
export const ORIGINALS = 105;
export const FAULT_FROM = 15;
export const FAULT_UNTIL = 45;
/** Four seconds after the fault, the last part of the schedule. */
export const AFTER_FROM = 85;
/** A user presses the button once, after a moment. */
const PRESS_AFTER_MS = 300;

export interface StormFigures {
  /** Pages of metrics when the schedule comes to these originals, and at the end, when everybody has an answer. */
  readonly start: Pages;
  readonly faultFrom: Pages;
  readonly faultUntil: Pages;
  readonly afterFrom: Pages;
  readonly afterUntil: Pages;
  readonly end: Pages;
  /** What the driver itself has counted. */
  readonly pressed: number;
  readonly succeeded: number;
  /** How long the schedule took. */
  readonly scheduleMs: number;
}

export async function playStorm(
  policyVersion: string,
  budgets: Readonly<Partial<Record<Tier, string>>>,
): Promise<Experiment<StormFigures>> {
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-storm-'));
  const services: Service[] = [];
  try {
    let next: Service | undefined;
    const byTier = new Map<Tier, Service>();
    for (const tier of [...TIERS].reverse()) {
      const config = join(folder, `${tier}.yaml`);
      writeFileSync(config, configOf(policyVersion, budgets[tier] ?? '', tier, next));
      const env = {
        OTEL_SERVICE_NAME: tier,
        TIME_BUDGET_CONFIG: config,
        ...(next === undefined ? {} : { NEXT_URL: next.origin }),
      };
      next = await Service.start(`apps/storm/${tier}.mjs`, { env });
      services.push(next);
      byTier.set(tier, next);
    }
    return await drive(byTier);
  } finally {
    await Promise.all(services.map((service) => service.stop()));
    rmSync(folder, { recursive: true });
  }
}

function configOf(policyVersion: string, budget: string, tier: Tier, next: Service | undefined): string {
  const below = TIERS[TIERS.indexOf(tier) + 1];
  return [
    'version: 1',
    'mode: enforce',
    `policy_version: "${policyVersion}"`,
    "routes: [{ path: '/orders/:id', operation: 'GET /orders/:id' }]",
    next === undefined ? '' : `dependencies: { ${below}: { match: ['127.0.0.1:${next.port}'] } }`,
    budget,
    '',
  ].join('\n');
}

async function drive(services: ReadonlyMap<Tier, Service>): Promise<Experiment<StormFigures>> {
  const page = serviceOf(services, 'page');
  const stock = serviceOf(services, 'stock');
  const agent = new http.Agent({ keepAlive: true });
  const pages = () => pagesOf(services);
  const marks = new Map<number, Promise<Pages>>();
  const start = await pages();
  const said = new Set<string>();
  for (const { policy_version } of policies(start)) said.add(policy_version ?? '');

  let pressed = 0;
  let succeeded = 0;
  const operation = async (index: number) => {
    if (await ask(agent, `${page.origin}/orders/${index}`, {})) return void succeeded++;
    await sleep(PRESS_AFTER_MS);
    pressed++;
    if (await ask(agent, `${page.origin}/orders/${index}`, { 'x-pressed-again': '1' })) succeeded++;
  };

  const operations: Promise<void>[] = [];
  const startedAt = performance.now();
  for (let index = 0; index < ORIGINALS; index++) {
    // From the start of the schedule, so that a late one makes no other late.
    const dueInMs = startedAt + index * EVERY_MS - performance.now();
    if (dueInMs > 0) await sleep(dueInMs);
    if (index === FAULT_FROM || index === FAULT_UNTIL) stock.child.signal('SIGUSR2');
    if (index === FAULT_FROM || index === FAULT_UNTIL || index === AFTER_FROM) marks.set(index, pages());
    operations.push(operation(index));
  }
  const scheduleMs = performance.now() - startedAt;
  const afterUntil = await pages();
  await Promise.all(operations);
  const [faultFrom, faultUntil, afterFrom] = await Promise.all(
    [FAULT_FROM, FAULT_UNTIL, AFTER_FROM].map((index) => marks.get(index) ?? pages()),
  );
  agent.destroy();
  const end = await atRest(services);
  if (faultFrom === undefined || faultUntil === undefined || afterFrom === undefined)
    throw new Error('the schedule was not played');
  return {
    conditions: {
      arrivals: `${ORIGINALS} originals, one every ${EVERY_MS} ms`,
      tasks: 'GET /orders/:id',
      dependency: `ten times as slow from original ${FAULT_FROM} until ${FAULT_UNTIL}`,
      policyVersion: [...said].join(', '),
    },
    originals: ORIGINALS,
    source: 'measured',
    figures: { start, faultFrom, faultUntil, afterFrom, afterUntil, end, pressed, succeeded, scheduleMs },
  };
}

function serviceOf(services: ReadonlyMap<Tier, Service>, tier: Tier): Service {
  const service = services.get(tier);
  if (service === undefined) throw new Error(`${tier} is not there`);
  return service;
}

async function pagesOf(services: ReadonlyMap<Tier, Service>): Promise<Pages> {
  const [page, status, stock] = await Promise.all(TIERS.map((tier) => serviceOf(services, tier).metrics()));
  if (page === undefined || status === undefined || stock === undefined) throw new Error('no page');
  return { page, status, stock };
}

/** When every request that was admitted has ended; the dependency works off what it has queued first. */
async function atRest(services: ReadonlyMap<Tier, Service>): Promise<Pages> {
  await serviceOf(services, 'page').until(isAtRest);
  await serviceOf(services, 'status').until(isAtRest);
  return pagesOf(services);
}

function isAtRest(metrics: Metrics): boolean {
  return metrics.value('time_budget_offered_total') === metrics.value('time_budget_outcomes_total');
}

function policies(pages: Pages): Readonly<Record<string, string>>[] {
  return TIERS.flatMap((tier) =>
    pages[tier].samples.filter(({ name }) => name === 'time_budget_policy_info').map(({ labels }) => labels),
  );
}

function ask(agent: http.Agent, url: string, headers: http.OutgoingHttpHeaders): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent, headers: { ...headers, 'x-request-timeout-ms': '10000' } });
    request.on('response', (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode === 200));
    });
    request.on('error', reject);
  });
}
