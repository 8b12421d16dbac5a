/** However the demo ends, nothing of it is left. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type DemoRun, endDemos, expectNothingLeft, processesOf, startDemo } from '../support/demo-run.ts';

afterEach(endDemos);

async function starting(...args: string[]): Promise<DemoRun> {
  const run = startDemo(...args);
  while (!run.stdout.includes('Starting') && run.child.exitCode === null) await sleep(10);
  return run;
}

// While the database is made, while the services start, and in the middle of a scenario.
test.each([0, 300, 1500, 5000])('Ctrl-C after %i ms: 130, no process and no file left', async (ms) => {
  const run = await starting();
  await sleep(ms);
  run.child.kill('SIGINT');
  expect({ code: await run.ended, stderr: run.stderr }).toEqual({ code: 130, stderr: '' });
  expectNothingLeft(run);
});

test('with --keep it shows the addresses and goes on until it is told to end', async () => {
  const run = await starting('--keep', '--scenario', 'healthy');
  while (!run.stderr.includes('inventory ') && run.child.exitCode === null) await sleep(50);
  if (process.platform === 'linux') expect(processesOf(run).length).toBeGreaterThan(4);
  const metricsUrl = /gateway +(http:\/\/\S+)/.exec(run.stderr)?.[1] ?? '';
  expect(await (await fetch(metricsUrl)).text()).toContain('time_budget_offered_total');
  const lines = run.stdout.split('\n');
  expect(lines[0]).toBe(
    'Where the time of a request went: three real services and PostgreSQL, watched by otel-time-budget.',
  );
  expect(run.stdout).not.toContain('\u001b');
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(100);
  run.child.kill('SIGTERM');
  expect(await run.ended).toBe(143);
  expectNothingLeft(run);
});

test('a player that is killed takes its services and its database with it', async () => {
  const run = await starting();
  while (!run.stdout.includes('healthy') && run.child.exitCode === null) await sleep(50);
  run.child.kill('SIGKILL');
  await run.ended;
  for (let i = 0; i < 100 && processesOf(run).length > 0; i++) await sleep(50);
  expect(processesOf(run)).toEqual([]);
});

test.runIf(process.platform === 'linux')(
  'a service that fails ends it: exit code 1, its last words',
  async () => {
    const run = await starting();
    while (!run.stdout.includes('healthy') && run.child.exitCode === null) await sleep(50);
    const orders = processesOf(run).find(({ command }) => command.includes('services/orders.ts'));
    if (orders === undefined) throw new Error('orders does not run');
    process.kill(orders.pid, 'SIGKILL');
    expect(await run.ended).toBe(1);
    expect(run.stderr).toContain('the service orders ended (SIGKILL):\norders is up\n');
    expectNothingLeft(run);
  },
);

test('a wrong option: one line, at once, exit code 1', async () => {
  const run = startDemo('--scenario', 'slow-qery');
  expect(await run.ended).toBe(1);
  expect(run.stderr).toBe('unknown scenario "slow-qery", did you mean slow-query?; --list shows all\n');
  expect(run.stdout).toBe('');
});
