/** T-17 over real processes: a mode of the configuration file, in front of a dependency that counts what reaches it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Counted } from '../support/counted.ts';
import { ask } from '../support/loopback.ts';
import { type Metrics, Service } from '../support/service.ts';

const METRIC = 'time_budget_outcomes_total';
const folder = mkdtempSync(join(tmpdir(), 'time-budget-degraded-'));
let dependency: Counted;
let service: Service;

beforeAll(async () => {
  const config = join(folder, 'time-budget.yaml');
  writeFileSync(
    config,
    `version: 1
routes: [{ path: /price, operation: price }, { path: /pay, operation: pay }]
degraded_modes:
  cached-prices:
    trigger:
      metric: ${METRIC}
      labels: [operation=price, outcome=failed]
      enter_at: 1
      exit_at: 0.1
      window_ms: 200
    least_ms: 3000
    non_degradable: [pay]
`,
  );
  dependency = await Counted.start(0);
  service = await Service.start('apps/degrading.mjs', {
    env: { TIME_BUDGET_CONFIG: config, NEXT_URL: dependency.url },
  });
});

afterAll(async () => {
  await Promise.all([service.stop(), dependency.stop()]);
  rmSync(folder, { recursive: true });
});

function active(metrics: Metrics): number {
  return metrics.value('time_budget_degraded_active', { mode: 'cached-prices', trigger: METRIC });
}

function changes(metrics: Metrics): number[] {
  return ['enter', 'exit'].map((change) =>
    metrics.value('time_budget_degraded_changes_total', { mode: 'cached-prices', trigger: METRIC, change }),
  );
}

/** Asks until it is answered so. Gives how many answers there were. */
async function askUntil(answer: string): Promise<number> {
  const giveUpAt = performance.now() + 20_000;
  for (let count = 1; ; count++) {
    const { body } = await ask(service.port, { path: '/price' });
    if (body === answer) return count;
    if (performance.now() > giveUpAt) throw new Error(`still answered ${body}`);
  }
}

test('T-17: entry and exit by the named metric; the fallback does not touch the failed dependency', async () => {
  expect((await ask(service.port, { path: '/price' })).body).toBe('fresh');
  const before = await service.until((each) => each.value(METRIC, { outcome: 'useful' }) === 1);
  expect([active(before), ...changes(before)]).toEqual([0, 0, 0]);

  await dependency.fail();
  await askUntil('known: fresh');
  const during = await service.until((each) => each.value(METRIC, { outcome: 'degraded' }) === 1);
  expect([active(during), ...changes(during)]).toEqual([1, 1, 0]);

  // While it is on, nothing reaches the dependency; the mode ends because nothing fails any more.
  const { arrivals } = await dependency.state();
  let degraded = 1;
  for (;;) {
    const { body, status } = await ask(service.port, { path: '/price' });
    if (body !== 'known: fresh') break;
    expect(status).toBe(200);
    degraded++;
  }
  expect(degraded).toBeGreaterThan(1);
  // The answer that ended it came from there, and was the only one.
  expect((await dependency.state()).arrivals).toBe(arrivals + 1);

  await dependency.heal();
  await askUntil('fresh');
  const after = await service.until((each) => active(each) === 0);
  const [entered, left] = changes(after);
  expect(entered).toBe(left);
  expect(after.value('time_budget_violations_total', { kind: 'degraded_non_degradable' })).toBe(0);
});

test('L-27: an operation that must not degrade asks the dependency meanwhile; a degraded answer is a violation', async () => {
  await dependency.fail();
  await askUntil('known: fresh');
  const { arrivals } = await dependency.state();
  expect((await ask(service.port, { path: '/pay' })).status).toBe(502);
  expect((await dependency.state()).arrivals).toBe(arrivals + 1);
  await ask(service.port, { path: '/pay?careless' });
  const metrics = await service.until(
    (each) => each.value('time_budget_violations_total', { kind: 'degraded_non_degradable' }) === 1,
  );
  expect(metrics.value(METRIC, { operation: 'pay', outcome: 'degraded' })).toBe(1);
  expect(metrics.value(METRIC, { operation: 'pay', outcome: 'useful' })).toBe(0);
});
