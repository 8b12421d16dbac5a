/** A real Prometheus scrapes a real service. Skipped, and said so, where Prometheus is not installed. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../demo/free-port.ts';
import { seriesBound } from '../../src/telemetry/metrics.ts';
import { METRICS } from '../../src/telemetry/names.ts';
import { Child, REGISTER, testFile } from '../support/child.ts';

const isInstalled = ['prometheus', 'promtool'].every((name) => spawnSync(name, ['--version']).status === 0);
if (!isInstalled) console.warn('SKIPPED: prometheus and promtool are not on the PATH; .ci/run installs them');

async function until<T>(what: string, look: () => Promise<T | undefined>): Promise<T> {
  const end = performance.now() + 30_000;
  for (;;) {
    const found = await look().catch(() => undefined);
    if (found !== undefined) return found;
    if (performance.now() > end) throw new Error(`too late: ${what}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

describe.skipIf(!isInstalled)('a real Prometheus', () => {
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-prometheus-'));
  let service: Child;
  let prometheus: ReturnType<typeof spawn>;
  let page = '';
  let api = '';

  async function query(expression: string): Promise<{ metric: Record<string, string>; value: number }[]> {
    const response = await fetch(`${api}/api/v1/query?query=${encodeURIComponent(expression)}`);
    const { data } = (await response.json()) as {
      data: { result: { metric: Record<string, string>; value: [number, string] }[] };
    };
    return data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
  }

  beforeAll(async () => {
    const [scrapePort, apiPort, downstream] = await Promise.all([freePort(), freePort(), freePort()]);
    service = new Child(['--import', REGISTER, testFile('apps/service.mjs')], {
      OTEL_SERVICE_NAME: 'orders',
      OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
      OTEL_EXPORTER_PROMETHEUS_PORT: String(scrapePort),
      // Nobody listens there: the calls fail, which is telling enough.
      STOCK_URL: `http://127.0.0.1:${downstream}`,
    });
    const port = await service.port();
    for (let i = 0; i < 5; i++) {
      await fetch(`http://127.0.0.1:${port}/orders/${i}`, { headers: { 'x-request-timeout-ms': '500' } });
    }
    page = await until('the page', async () => {
      const text = await (await fetch(`http://127.0.0.1:${scrapePort}/metrics`)).text();
      return text.includes('time_budget_outcomes_total') ? text : undefined;
    });
    const config = join(folder, 'prometheus.json');
    // JSON is YAML too.
    const scrape = {
      job_name: 'orders',
      scrape_interval: '1s',
      static_configs: [{ targets: [`127.0.0.1:${scrapePort}`] }],
    };
    writeFileSync(config, JSON.stringify({ scrape_configs: [scrape] }));
    prometheus = spawn(
      'prometheus',
      [
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${apiPort}`,
      ],
      { stdio: 'ignore' },
    );
    api = `http://127.0.0.1:${apiPort}`;
    await until('the first sample', async () =>
      (await query('time_budget_policy_info')).length > 0 ? true : undefined,
    );
  });

  afterAll(async () => {
    const ended = new Promise((done) => prometheus.once('close', done));
    prometheus.kill('SIGTERM');
    await Promise.all([ended, service.stop()]);
    rmSync(folder, { recursive: true, force: true });
  });

  test('promtool finds nothing to say about the page', () => {
    expect(execFileSync('promtool', ['check', 'metrics'], { input: page, encoding: 'utf8' })).toBe('');
  });

  test('outcomes and received budgets arrive as they were', async () => {
    const labels = 'operation="GET /orders/:id",caller="unknown",priority="unset"';
    expect((await query(`time_budget_outcomes_total{${labels},outcome="failed"}`))[0]?.value).toBe(5);
    expect((await query(`sum(time_budget_outcomes_total{${labels}})`))[0]?.value).toBe(5);
    const received = 'time_budget_received_seconds';
    expect((await query(`${received}_sum{operation="GET /orders/:id"}`))[0]?.value).toBeCloseTo(2.5, 9);
    expect((await query(`histogram_quantile(0.5, ${received}_bucket)`))[0]?.value).toBeGreaterThan(0.25);
  });

  test('what has not happened yet is there at 0, so that its first time is seen', async () => {
    const violations = await query('time_budget_violations_total');
    expect(violations.map(({ value }) => value)).toEqual([0, 0, 0, 0]);
    expect((await query('time_budget_internal_errors_total'))[0]?.value).toBe(0);
  });

  test('no label has a value of a request, and the series stay far under their bound', async () => {
    const series = await query('{job="orders",__name__=~"time_budget_.+"}');
    for (const { metric } of series) expect(Object.values(metric).join(' ')).not.toMatch(/orders\/\d|\d{10}/);
    const caps = { operation: 50, dependency: 20, caller: 8 };
    const bound = Object.values(METRICS).reduce((sum, metric) => sum + seriesBound(metric, caps), 0);
    expect(series.length).toBeGreaterThan(100);
    expect(series.length).toBeLessThan(bound);
  });
});
