/** M-18, M-19, D-24: what fills up in a service that does nothing for it, read from its page. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ask, RawClient } from '../support/loopback.ts';
import { Service } from '../support/service.ts';

let service: Service;

beforeEach(async () => {
  service = await Service.start('apps/saturated.mjs', { env: { NODE_OPTIONS: '--max-old-space-size=200' } });
});

afterEach(() => service.stop());

test('requests in flight, and the files that their connections are', async () => {
  await ask(service.port, { path: '/' });
  const before = await service.metrics();
  const clients = await Promise.all(Array.from({ length: 30 }, () => RawClient.connect(service.port)));
  for (const client of clients) client.send('GET', '/hold');
  const during = await service.until(
    (each) => each.value('time_budget_in_flight', { state: 'arriving' }) === 30,
  );
  const files = (each: typeof during) => each.value('time_budget_open_files');
  if (process.platform === 'linux') {
    expect(files(during) - files(before)).toBeGreaterThanOrEqual(25);
    expect(during.value('time_budget_open_files_limit')).toBeGreaterThan(files(during));
  }
  expect(during.value('time_budget_heap_used_bytes')).toBeGreaterThan(1_000_000);
  expect(during.value('time_budget_heap_used_bytes')).toBeLessThan(100_000_000);
  expect(during.value('time_budget_heap_limit_bytes')).toBe(200 * 2 ** 20);
  await ask(service.port, { path: '/open' });
  const after = await service.until((each) => each.value('time_budget_in_flight') === 0);
  expect(after.value('time_budget_outcomes_total', { outcome: 'useful' })).toBe(32);
  for (const { socket } of clients) socket.destroy();
});

test('A-16: how long arrivals lie unnoticed while the loop is busy', async () => {
  // Nothing is known of a loop before it has slept between two events.
  for (let i = 0; i < 3; i++) await ask(service.port, { path: '/' });
  let delayS = 0;
  // Three quick requests do not make sure of it on a busy machine: then the first burst is not measured.
  for (let burst = 0; burst < 5 && delayS <= 0.25; burst++) {
    await Promise.all(Array.from({ length: 5 }, () => ask(service.port, { path: '/?100' })));
    delayS = (await service.metrics()).value('time_budget_loop_delay_seconds') ?? 0;
  }
  // The last of five waited for four.
  expect(delayS).toBeGreaterThan(0.25);
  expect(delayS).toBeLessThan(10);
});
