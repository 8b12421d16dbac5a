/**
 * Steady callers for docker-compose.yml: mostly healthy requests, and every few seconds one of the demo's situations,
 * so that each panel has something to show. GATEWAY_URL and ORDERS_URL say where to.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Caller } from './caller.ts';
import { pathOf, SCENARIOS, type Scenario, USUAL_BUDGET_MS } from './scenarios.ts';

const HEALTHY_EVERY_MS = 200;
/** Longer than the longest situation takes, so that one is over before the next begins. */
const SITUATION_EVERY_MS = 4000;

const gatewayUrl = String(process.env.GATEWAY_URL);
const ordersUrl = String(process.env.ORDERS_URL);
const caller = new Caller();
const stopped = new AbortController();
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopped.abort());

console.log('traffic is up');
await Promise.all([every(HEALTHY_EVERY_MS, sendHealthy), every(SITUATION_EVERY_MS, nextSituation())]);
caller.close();

async function every(periodMs: number, send: () => void): Promise<void> {
  while (!stopped.signal.aborted) {
    send();
    await sleep(periodMs, undefined, { signal: stopped.signal }).catch(() => undefined);
  }
}

function sendHealthy(): void {
  get(`${gatewayUrl}/orders/${1 + Math.floor(Math.random() * 100)}`, USUAL_BUDGET_MS);
}

function nextSituation(): () => void {
  const situations = SCENARIOS.filter(({ name }) => name !== 'healthy');
  let turn = 0;
  return () => {
    const situation = situations[turn++ % situations.length];
    if (situation !== undefined) sendSituation(situation);
  };
}

function sendSituation(scenario: Scenario): void {
  const { neighbours, budgetMs, leavesAfterMs } = scenario;
  for (let i = 0; i < (neighbours?.count ?? 0); i++) get(`${ordersUrl}${neighbours?.path ?? ''}`);
  get(`${gatewayUrl}${pathOf(scenario)}`, budgetMs, leavesAfterMs);
}

/** What comes of it is for the services to tell; one that is not there yet is asked again soon. */
function get(url: string, budgetMs?: number, leavesAfterMs?: number): void {
  caller.get({ url, budgetMs, leavesAfterMs }).catch(() => undefined);
}
