/** The files of deploy/stores for VictoriaMetrics, on a real one with the series of real services. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { isPrometheusInstalled, Prometheus, type Series } from '../support/prometheus.ts';
import { makeRules, RULES } from '../support/promtool.ts';
import { Service } from '../support/service.ts';
import { hasVictoriaMetrics, VictoriaMetrics } from '../support/victoria-metrics.ts';

const STORES = fileURLToPath(new URL('../../deploy/stores/', import.meta.url));
const REQUESTS = 7;

interface Rules {
  readonly groups: readonly {
    readonly rules: readonly { readonly record?: string; readonly alert?: string; readonly expr: string }[];
  }[];
}

const running: { stop(): Promise<unknown> }[] = [];

afterEach(async () => {
  for (const one of running.splice(0).reverse()) await one.stop();
});

function keep<T extends { stop(): Promise<unknown> }>(one: T): T {
  running.push(one);
  return one;
}

async function startService(env: Readonly<Record<string, string>> = {}): Promise<Service> {
  const service = await Service.start('apps/plain.mjs', { env: { OTEL_SERVICE_NAME: 'shop', ...env } });
  keep({ stop: () => service.child.stop() });
  return service;
}

async function send({ origin }: Service, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const response = await fetch(origin, { headers: { 'x-request-timeout-ms': '1000' } });
    await response.text();
  }
}

function rules(text: string): Rules['groups'][number]['rules'] {
  // Of our own generator.
  return (parse(text) as Rules).groups.flatMap((group) => group.rules);
}

/** Values by their labels, in an order that is always the same. */
function sorted(series: readonly Series[]): [string, number][] {
  return series
    .map(({ labels, value }): [string, number] => [JSON.stringify(Object.entries(labels).sort()), value])
    .sort(([left], [right]) => (left < right ? -1 : 1));
}

describe.skipIf(!hasVictoriaMetrics)('VictoriaMetrics', () => {
  it('answers every expression of the rules', async () => {
    const store = keep(await VictoriaMetrics.start());
    for (const { expr } of rules(readFileSync(RULES, 'utf8'))) {
      await expect(store.query(expr)).resolves.toBeInstanceOf(Array);
    }
    await expect(store.query('sum by (job) (rate(x[5m])')).rejects.toThrow('unexpected token');
  });

  it.skipIf(!isPrometheusInstalled())(
    'has by remote write what Prometheus has, records too, and answers a record as it does',
    async () => {
      const store = keep(await VictoriaMetrics.start());
      const service = await startService();
      const file = parse(readFileSync(join(STORES, 'prometheus-remote-write-victoriametrics.yml'), 'utf8'));
      const [write] = file.remote_write;
      write.url = write.url.replace('http://victoriametrics:8428', store.url);
      write.queue_config.batch_send_deadline = '100ms';
      // A sixtieth of every duration: windows of five seconds.
      const made = makeRules({ scale: ['0.01667'] });
      const prometheus = keep(
        await Prometheus.run(
          {
            global: { external_labels: file.global.external_labels },
            remote_write: file.remote_write,
            scrape_configs: [
              {
                job_name: 'shop',
                scrape_interval: '500ms',
                scrape_timeout: '500ms',
                static_configs: [{ targets: [new URL(service.page).host] }],
              },
            ],
          },
          { rules: made },
        ),
      );
      await send(service, REQUESTS);

      const record = rules(made).find((rule) => rule.record?.startsWith('operation:time_budget_ended:'));
      await store.until('the record has come', async () => {
        await send(service, 1);
        return (await store.query(`${record?.record} > 0`)).length > 0;
      });
      // Both ask the same series; Prometheus puts its external labels on what it hands out, not on what it answers.
      const expected = await prometheus.query(`${record?.record}`);
      const [found] = await store.query(`${record?.record}`);
      expect(found?.labels).toEqual({ ...expected[0]?.labels, cluster: 'main' });
      const own = await store.query(record?.expr ?? '');
      expect(own.map(({ labels }) => labels)).toEqual([{ job: 'shop', operation: 'unmatched' }]);
      expect(own[0]?.value).toBeGreaterThan(0);

      // No more traffic: now both have the same counts.
      const counts = 'sum by (job, operation, outcome) (time_budget_outcomes_total) > 0';
      await store.until('the counts are the same', async () => {
        const there = sorted(await prometheus.query(counts));
        return (
          there.length > 0 && JSON.stringify(there) === JSON.stringify(sorted(await store.query(counts)))
        );
      });
      // What nobody reads is not sent.
      expect(await prometheus.query('count(scrape_duration_seconds)')).toHaveLength(1);
      expect(await store.query('count(scrape_duration_seconds)')).toEqual([]);
    },
  );

  it('takes what a service pushes to it, under the same names and split by the same label', async () => {
    const store = keep(
      await VictoriaMetrics.start([
        '-opentelemetry.usePrometheusNaming',
        '-opentelemetry.promoteScopeMetadata=false',
        `-relabelConfig=${join(STORES, 'victoriametrics-relabel.yml')}`,
      ]),
    );
    const service = await startService({
      OTEL_METRICS_EXPORTER: 'otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '200',
      OTEL_METRIC_EXPORT_TIMEOUT: '200',
      OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${store.url}/opentelemetry/v1/metrics`,
    });
    await send(service, REQUESTS);
    const outcomes = 'sum by (job, operation) (time_budget_outcomes_total{outcome="useful"})';
    await store.until('the outcomes have come', async () => {
      const [found] = await store.query(outcomes);
      return found?.value === REQUESTS;
    });
    expect(await store.query(outcomes)).toEqual([
      { labels: { job: 'shop', operation: 'unmatched' }, value: REQUESTS },
    ]);
    const [bucket] = await store.query('time_budget_received_seconds_bucket{le="1"}');
    expect(bucket?.value).toBe(REQUESTS);
    expect(bucket?.labels.instance).toBeTruthy();
  });

  it('sums two instances as they come in, and keeps the series of one', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'time-budget-aggregation-'));
    try {
      const file = join(folder, 'aggregation.yml');
      const text = readFileSync(join(STORES, 'victoriametrics-stream-aggregation.yml'), 'utf8');
      writeFileSync(file, text.replace('interval: 15s', 'interval: 1s'));
      const store = keep(
        await VictoriaMetrics.start([
          '-opentelemetry.usePrometheusNaming',
          '-opentelemetry.promoteScopeMetadata=false',
          `-relabelConfig=${join(STORES, 'victoriametrics-relabel.yml')}`,
          `-streamAggr.config=${file}`,
        ]),
      );
      const env = {
        OTEL_METRICS_EXPORTER: 'otlp',
        OTEL_METRIC_EXPORT_INTERVAL: '200',
        OTEL_METRIC_EXPORT_TIMEOUT: '200',
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${store.url}/opentelemetry/v1/metrics`,
      };
      const services = [await startService(env), await startService(env)];
      // What a series begins with is no increase for the aggregation, or is one, by how long the store has run.
      for (const service of services) await send(service, 1);
      await store.until('both have begun', async () => {
        const begun = await store.query('time_budget_workload_peak_rate{workload="live"} > 0');
        return begun.length === services.length;
      });
      for (const service of services) await send(service, REQUESTS);
      const outcomes = 'time_budget_outcomes_total{outcome="useful"}';
      await store.until('both are counted', async () => {
        const [found] = await store.query(outcomes);
        return (found?.value ?? 0) >= 2 * REQUESTS;
      });
      expect((await store.query(outcomes))[0]?.value).toBeLessThanOrEqual(2 * REQUESTS + 2);
      const found = await store.query(outcomes);
      expect(found).toHaveLength(1);
      expect(found[0]?.labels).not.toHaveProperty('instance');
      // Gauges are left alone: one of each instance.
      expect(await store.query('time_budget_in_flight{state="admitted"}')).toHaveLength(2);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
