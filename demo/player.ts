/** Plays one scenario against the running services and collects what they tell about it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, type Caller, newTraceIds } from './caller.ts';
import { type Figures, readFigures } from './figures.ts';
import { type Hop, readHops } from './hops.ts';
import type { OtlpReceiver } from './otlp-receiver.ts';
import { BASELINE_REQUESTS, pathOf, type Scenario, USUAL_BUDGET_MS } from './scenarios.ts';
import { added, type Sample, scrape } from './scrape.ts';

export interface Stage {
  readonly gatewayUrl: string;
  readonly ordersUrl: string;
  /** Where each service shows its metrics, outermost first. */
  readonly metricsUrls: Readonly<Record<string, string>>;
  readonly receiver: OtlpReceiver;
  readonly caller: Caller;
}

export interface Played {
  readonly scenario: Scenario;
  readonly answer: Answer;
  readonly hops: readonly Hop[];
  readonly figures: readonly Figures[];
}

const OPERATIONS: Readonly<Record<string, string>> = {
  gateway: 'GET /orders/:id',
  orders: 'GET /orders/:id',
  inventory: 'GET /stock/:item',
};

const TRACE_TIMEOUT_MS = 5000;
/** Few enough that the baseline has no queue of its own on a small machine. */
const BASELINE_AT_ONCE = 4;
/** How long the neighbours have to take what they hold before the caller's request comes. */
const NEIGHBOURS_LEAD_MS = 150;

/** One request of the scenario, with all that goes with it; returns when the last piece of work has ended. */
export async function play(scenario: Scenario, stage: Stage): Promise<Played> {
  const before = await scrapeAll(stage);
  if (scenario.name === 'healthy') await sendBaseline(stage, BASELINE_REQUESTS - 1, BASELINE_AT_ONCE);
  const ids = newTraceIds();
  stage.receiver.expect(ids.traceId);
  const beside = sendNeighbours(scenario, stage);
  if (beside.length > 0) await sleep(NEIGHBOURS_LEAD_MS);
  const answer = await stage.caller.get(
    {
      url: stage.gatewayUrl + pathOf(scenario),
      budgetMs: scenario.budgetMs,
      leavesAfterMs: scenario.leavesAfterMs,
    },
    ids,
  );
  await Promise.all(beside);
  const services = Object.keys(stage.metricsUrls);
  const spans = await stage.receiver.take(ids.traceId, ids.spanId, services, TRACE_TIMEOUT_MS);
  const after = await scrapeAll(stage);
  return {
    scenario,
    answer,
    hops: readHops(spans, answer.sentAt),
    figures: services.map((service) =>
      readFigures(service, OPERATIONS[service] ?? '', added(before[service] ?? [], after[service] ?? [])),
    ),
  };
}

/** Requests of the usual kind, so many at once. */
export async function sendBaseline(stage: Stage, count: number, atOnce: number): Promise<void> {
  let left = count;
  const one = async () => {
    while (left-- > 0)
      await stage.caller.get({ url: `${stage.gatewayUrl}/orders/7`, budgetMs: USUAL_BUDGET_MS });
  };
  await Promise.all(Array.from({ length: atOnce }, one));
}

function sendNeighbours({ neighbours }: Scenario, { caller, ordersUrl }: Stage): Promise<Answer>[] {
  if (neighbours === undefined) return [];
  const { path, count } = neighbours;
  return Array.from({ length: count }, () => caller.get({ url: ordersUrl + path }));
}

async function scrapeAll({ metricsUrls }: Stage): Promise<Record<string, Sample[]>> {
  const scraped = Object.entries(metricsUrls).map(
    async ([service, url]) => [service, await scrape(url)] as const,
  );
  return Object.fromEntries(await Promise.all(scraped));
}
