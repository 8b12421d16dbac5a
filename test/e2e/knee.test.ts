/**
 * T-19, L-05: the concurrency limit is raised step by step in front of a dependency of fixed capacity. The knee, where
 * more concurrency brings no more useful work but a longer wait, is found at that capacity.
 */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Child, testFile } from '../support/child.ts';
import { ask } from '../support/loopback.ts';
import { Service } from '../support/service.ts';

const CAPACITY = 4;
const LIMITS = [1, 2, 4, 8, 16];
/** In a closed loop: each sends its next one when it has its answer. */
const CLIENTS = 24;
const REQUESTS = 48;
/** A step that brings less than this is none; a doubling within the capacity brings 2. */
const RISE = 1.4;

let dependency: Child;
let service: Service;
let dependencyPort: number;

beforeAll(async () => {
  dependency = new Child([testFile('apps/ticking.mjs')], { CAPACITY: String(CAPACITY), TICK_MS: '30' });
  dependencyPort = await dependency.port();
  service = await Service.start('apps/stepped.mjs', {
    env: {
      TIME_BUDGET_MODE: 'enforce',
      LIMITS: LIMITS.join(','),
      NEXT_URL: `http://127.0.0.1:${dependencyPort}`,
    },
  });
});

afterAll(async () => {
  await Promise.all([service.stop(), dependency.stop('SIGKILL')]);
});

interface Step {
  readonly limit: number;
  /** Per tick of the dependency in which it worked at all. */
  readonly useful: number;
  /** The most that stood before the dependency. */
  readonly most: number;
}

async function step(limit: number): Promise<Step> {
  const before = (await service.metrics()).value('time_budget_outcomes_total', { outcome: 'useful' });
  let left = REQUESTS;
  const client = async () => {
    while (left-- > 0) await ask(service.port, { path: `/limit/${limit}` });
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  const metrics = await service.until(
    (each) => each.value('time_budget_outcomes_total', { outcome: 'useful' }) === before + REQUESTS,
  );
  expect(metrics.value('time_budget_concurrency_limit', { dependency: `limit-${limit}` })).toBe(limit);
  expect(metrics.value('time_budget_shed_total')).toBe(0);
  const { served, ticks, most } = JSON.parse((await ask(dependencyPort, { path: '/counts' })).body);
  expect(served).toBe(REQUESTS);
  return { limit, useful: served / ticks, most };
}

test('T-19: useful throughput rises up to the capacity of the dependency and no further', async () => {
  const steps: Step[] = [];
  for (const limit of LIMITS) steps.push(await step(limit));
  const knee = steps.find(({ useful }, index) => (steps[index + 1]?.useful ?? 0) < RISE * useful);
  expect(knee?.limit, JSON.stringify(steps)).toBe(CAPACITY);
  // The limit is what stands before the dependency: above the knee it only waits there.
  for (const { limit, most } of steps) expect(most).toBeLessThanOrEqual(limit);
  expect(steps.at(-1)?.most).toBeGreaterThan(CAPACITY);
  expect(steps.at(-1)?.useful).toBeLessThanOrEqual(CAPACITY);
});
