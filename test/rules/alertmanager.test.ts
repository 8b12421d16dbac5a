/** The example for Alertmanager: it is one, who gets what, and what hides what. */
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../demo/free-port.ts';
import { ALERT_NAMES } from '../../rules/alert-names.ts';
import { findProgram } from '../support/real-program.ts';

const FILE = fileURLToPath(new URL('../../dashboards/alerts/alertmanager.yml', import.meta.url));
const amtool = findProgram('amtool');
const alertmanager = findProgram('prometheus-alertmanager');

test('it names only alerts that exist', () => {
  const text = JSON.stringify(parse(readFileSync(FILE, 'utf8')).inhibit_rules);
  const known: readonly string[] = ALERT_NAMES;
  const named = [...text.matchAll(/alertname=~?\\"([^"\\]+)/g)].flatMap(([, names = '']) => names.split('|'));
  expect(named.length).toBeGreaterThan(5);
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
});

describe.skipIf(amtool === undefined)('amtool', () => {
  const run = (...args: string[]) => spawnSync(amtool ?? 'amtool', args, { encoding: 'utf8' });

  test('the file is right', () => {
    expect(run('check-config', FILE)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('SUCCESS'),
    });
  });

  test.each([
    ['component=time-budget severity=critical', 'page'],
    ['component=time-budget severity=warning', 'ticket'],
    ['component=time-budget severity=info', 'dashboard'],
    ['component=other severity=critical', 'dashboard'],
  ])('%s goes to %s', (labels, receiver) => {
    const { stdout } = run('config', 'routes', 'test', `--config.file=${FILE}`, ...labels.split(' '));
    expect(stdout.trim()).toBe(receiver);
  });
});

describe.skipIf(alertmanager === undefined)('a real Alertmanager', () => {
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-alertmanager-'));
  let api = '';
  let server: ReturnType<typeof spawn>;

  beforeAll(async () => {
    const port = await freePort();
    api = `http://127.0.0.1:${port}/api/v2/alerts`;
    const args = [
      `--config.file=${FILE}`,
      `--storage.path=${folder}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--cluster.listen-address=',
    ];
    server = spawn(alertmanager ?? 'prometheus-alertmanager', args, { stdio: 'ignore' });
    const giveUpAt = performance.now() + 30_000;
    while (
      !(await fetch(api).then(
        (answer) => answer.ok,
        () => false,
      ))
    ) {
      if (performance.now() > giveUpAt) throw new Error('Alertmanager does not answer');
      await new Promise((done) => setTimeout(done, 50));
    }
  });

  afterAll(async () => {
    const ended = new Promise((done) => server.once('close', done));
    server.kill('SIGKILL');
    await ended;
    rmSync(folder, { recursive: true, force: true });
  });

  /** Names of those that are hidden, when all of these fire in one service. */
  async function hidden(job: string, alerts: readonly Readonly<Record<string, string>>[]): Promise<string[]> {
    const labels = alerts.map((alert) => ({ component: 'time-budget', job, ...alert }));
    const body = JSON.stringify(labels.map((each) => ({ labels: each })));
    const posted = await fetch(api, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    expect(posted.status).toBe(200);
    const giveUpAt = performance.now() + 20_000;
    for (;;) {
      const answer = await fetch(`${api}?filter=${encodeURIComponent(`job="${job}"`)}`);
      // What its API gives.
      const all = (await answer.json()) as { labels: Record<string, string>; status: { state: string } }[];
      const isDone =
        all.length === alerts.length && all.every(({ status }) => status.state !== 'unprocessed');
      if (isDone) {
        const suppressed = all.filter(({ status }) => status.state === 'suppressed');
        return suppressed.map((alert) => alert.labels.alertname ?? '').sort();
      }
      if (performance.now() > giveUpAt) throw new Error(`not looked at: ${JSON.stringify(all)}`);
      await new Promise((done) => setTimeout(done, 100));
    }
  }

  const slow = { alertname: 'DependencySlow', severity: 'warning', dependency: 'stock' };
  const exhausted = { alertname: 'RetryBudgetExhausted', severity: 'warning', dependency: 'stock' };
  const draining = { alertname: 'RetryBudgetDraining', severity: 'info', dependency: 'stock' };
  const wasted = { alertname: 'WastedExecution', severity: 'warning', dependency: 'stock' };
  const burn = { alertname: 'TimeBudgetBurn', operation: 'pay' };
  const missing = { alertname: 'TimeBudgetTelemetryMissing', severity: 'warning' };

  test('a slow dependency hides what it leads to, of this dependency only', async () => {
    const other = { ...exhausted, dependency: 'mail' };
    expect(await hidden('slow', [slow, wasted, exhausted, other])).toEqual([
      'RetryBudgetExhausted',
      'WastedExecution',
    ]);
  });

  test('an empty budget hides that it was nearly empty', async () => {
    expect(await hidden('empty', [exhausted, draining])).toEqual(['RetryBudgetDraining']);
  });

  test('a page hides the ticket of the same alert and operation only', async () => {
    const page = { ...burn, severity: 'critical', window: '1h' };
    const ticket = { ...burn, severity: 'warning', window: '1d' };
    expect(await hidden('burn', [page, ticket, { ...ticket, operation: 'list' }, exhausted])).toEqual([
      'TimeBudgetBurn',
    ]);
  });

  test('a service without metrics is told as that and nothing else', async () => {
    const page = { ...burn, severity: 'critical', window: '1h' };
    expect(await hidden('gone', [missing, page, slow])).toEqual(['DependencySlow', 'TimeBudgetBurn']);
  });

  test('the pair hides neither of the two', async () => {
    const caller = { alertname: 'CallerBudgetUnrealistic', severity: 'warning', caller: 'web' };
    expect(await hidden('pair', [slow, caller])).toEqual([]);
  });
});
