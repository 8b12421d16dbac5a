/** A real Prometheus scrapes a real service. Skipped, and said so, where Prometheus is not installed. */
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refusedPort } from '../../demo/free-port.ts';
import { seriesBound } from '../../src/telemetry/metrics.ts';
import { CLOSED_LABELS, METRICS } from '../../src/telemetry/names.ts';
import { isPrometheusInstalled, Prometheus } from '../support/prometheus.ts';
import { findProgram } from '../support/real-program.ts';
import { Service } from '../support/service.ts';

const promtool = findProgram('promtool');

describe.skipIf(!isPrometheusInstalled())('a real Prometheus', () => {
  let service: Service;
  let prometheus: Prometheus;
  let page = '';

  beforeAll(async () => {
    service = await Service.start('apps/service.mjs', {
      env: {
        OTEL_SERVICE_NAME: 'orders',
        // Nobody listens there: the calls fail, which is telling enough.
        STOCK_URL: `http://127.0.0.1:${await refusedPort()}`,
      },
    });
    for (let i = 0; i < 5; i++) {
      await fetch(`${service.origin}/orders/${i}`, { headers: { 'x-request-timeout-ms': '500' } });
    }
    await service.until((metrics) => metrics.value('time_budget_outcomes_total') === 5);
    page = await (await fetch(service.page)).text();
    prometheus = await Prometheus.start({ pages: { orders: service.page }, scrapeInterval: '1s' });
    await prometheus.until(
      'the first sample',
      async () => (await prometheus.query('time_budget_policy_info')).length > 0,
    );
  });

  afterAll(async () => {
    await Promise.all([prometheus.stop(), service.stop()]);
  });

  test('promtool finds nothing to say about the page', () => {
    const said = execFileSync(promtool ?? 'promtool', ['check', 'metrics'], {
      input: page,
      encoding: 'utf8',
    });
    expect(said).toBe('');
  });

  test('outcomes and received budgets arrive as they were', async () => {
    const labels = 'operation="GET /orders/:id",caller="unknown",priority="unset"';
    const value = async (expression: string) => (await prometheus.query(expression))[0]?.value;
    expect(await value(`time_budget_outcomes_total{${labels},outcome="failed"}`)).toBe(5);
    expect(await value(`sum(time_budget_outcomes_total{${labels}})`)).toBe(5);
    const received = 'time_budget_received_seconds';
    expect(await value(`${received}_sum{operation="GET /orders/:id"}`)).toBeCloseTo(2.5, 9);
    expect(await value(`histogram_quantile(0.5, ${received}_bucket)`)).toBeGreaterThan(0.25);
  });

  test('what has not happened yet is there at 0, so that its first time is seen', async () => {
    const violations = await prometheus.query('time_budget_violations_total');
    expect(violations.map(({ value }) => value)).toEqual(CLOSED_LABELS.violation.map(() => 0));
    expect((await prometheus.query('time_budget_internal_errors_total'))[0]?.value).toBe(0);
  });

  test('no label has a value of a request, and the series stay far under their bound', async () => {
    const series = await prometheus.query('{job="orders",__name__=~"time_budget_.+"}');
    for (const { labels } of series) expect(Object.values(labels).join(' ')).not.toMatch(/orders\/\d|\d{10}/);
    const caps = { operation: 50, dependency: 20, caller: 8 };
    const bound = Object.values(METRICS).reduce((sum, metric) => sum + seriesBound(metric, caps), 0);
    expect(series.length).toBeGreaterThan(100);
    expect(series.length).toBeLessThan(bound);
  });
});
