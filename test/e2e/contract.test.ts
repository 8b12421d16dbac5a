/**
 * One name on every path: each metric of the catalogue, as Prometheus 3 has it from the page of a service, from the
 * Collector's page, by OTLP and by remote write. Dashboards and rules are written once because of it.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { freePort } from '../../demo/free-port.ts';
import { METRICS, prometheusName } from '../../src/telemetry/names.ts';
import { Collector, hasCollector } from '../support/otel-collector.ts';
import { Prometheus, type Series } from '../support/prometheus.ts';
import { findProgram, findPrometheus3 } from '../support/real-program.ts';
import { Service } from '../support/service.ts';
import { TracedServices } from '../support/traced-services.ts';

const CONFIG = new URL('../../collector/prometheus.yml', import.meta.url);
const promtool = findProgram('promtool');
const OURS = '{__name__=~"(time_budget|retry_budget|db_client_connection)_.+",job="every"}';
/** Ways into Prometheus, told apart by a label that the test adds; OTLP has none. */
const PATHS = {
  page: 'page',
  collectorPage: 'collector_page',
  otlp: '',
  remoteWrite: 'remote_write',
} as const;
type Path = keyof typeof PATHS;

const undo: (() => Promise<void>)[] = [];
let prometheus: Prometheus;
let service: Service;
let services: TracedServices;
let gatewayPage = '';
const found = new Map<Path, readonly Series[]>();

function settings(jobs: readonly object[]): object {
  // A file of ours, which is a mapping.
  return { ...(parse(readFileSync(CONFIG, 'utf8')) as object), scrape_configs: jobs };
}

function job(name: string, page: string, path: Path, more: object = {}): object {
  return {
    job_name: name,
    scrape_interval: '1s',
    static_configs: [{ targets: [page], labels: { path: PATHS[path] } }],
    ...more,
  };
}

/** Name and labels without those that say which way it came. */
function identity({ labels }: Series): string {
  const { path, instance, ...rest }: Record<string, string> = labels;
  // Scraped bounds are 1.0, pushed ones 1.
  if (rest.le !== undefined && rest.le !== '+Inf') rest.le = String(Number(rest.le));
  return JSON.stringify(Object.entries(rest).sort());
}

beforeAll(async () => {
  if (!hasCollector || findPrometheus3() === undefined) return;
  gatewayPage = `127.0.0.1:${await freePort()}`;
  const agent = await Collector.prepare(['agent.yaml']);
  undo.push(() => agent.remove());
  service = await Service.start('apps/every-metric.mjs', {
    env: {
      OTEL_SERVICE_NAME: 'every',
      OTEL_METRICS_EXPORTER: 'prometheus,otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '500',
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_EXPORTER_OTLP_ENDPOINT: agent.url,
    },
  });
  undo.push(() => service.stop());
  prometheus = await Prometheus.run(
    settings([
      job('every', new URL(service.page).host, 'page'),
      job('gateway', gatewayPage, 'collectorPage', { honor_labels: true }),
    ]),
    { args: ['--web.enable-otlp-receiver', '--web.enable-remote-write-receiver'] },
  );
  undo.push(() => prometheus.stop());
  const gateway = await Collector.start(
    [
      'gateway.yaml',
      'metrics-page.yaml',
      'metrics-remote-write.yaml',
      'yaml:exporters::prometheus_remote_write::external_labels: { path: remote_write }',
      'yaml:service::pipelines::metrics::exporters: [prometheus, prometheus_remote_write, otlp_http/prometheus]',
    ],
    {
      PAGE: gatewayPage,
      PROMETHEUS: prometheus.api,
      REMOTE_WRITE: `${prometheus.api}/api/v1/write`,
    },
  );
  undo.push(() => gateway.remove());
  await agent.start({ GATEWAY: gateway.grpc });
  services = await TracedServices.start(agent.url, {
    OTEL_METRICS_EXPORTER: 'prometheus,otlp',
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: 'delta',
  });
  undo.push(() => services.stop());
  await prometheus
    .until('as many series on every path', async () => {
      for (const [path, label] of Object.entries(PATHS)) {
        // The keys of PATHS.
        found.set(path as Path, await prometheus.query(OURS.replace('}', `,path="${label}"}`)));
      }
      const counts = [...found.values()].map((series) => series.length);
      return counts.every((count) => count > 0 && count === counts[0]);
    })
    .catch((error: unknown) => console.warn(error));
}, 120_000);

afterAll(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

describe.skipIf(!hasCollector || findPrometheus3() === undefined)('one name on every path', () => {
  test('every metric of the catalogue is on the page', () => {
    const names = new Set(
      found.get('page')?.map(({ labels }) => (labels.__name__ ?? '').replace(/_(bucket|sum|count)$/, '')),
    );
    expect([...names].sort()).toEqual(Object.values(METRICS).map(prometheusName).sort());
  });

  test.each(['collectorPage', 'otlp', 'remoteWrite'] as const)(
    'M4: by %s: the same names and labels',
    (path) => {
      expect(found.get(path)?.map(identity).sort()).toEqual(found.get('page')?.map(identity).sort());
    },
  );

  test('the same types: on both pages as they say, and by the others no histogram that is native', async () => {
    const types = async (page: string) => {
      const text = await (await fetch(page)).text();
      const lines = [...text.matchAll(/^# TYPE ((?:time_budget|retry_budget|db_client)\S*) (\S+)$/gm)];
      return lines.map(([, name, type]) => `${name} ${type}`).sort();
    };
    const expected = Object.values(METRICS).map((metric) => `${prometheusName(metric)} ${metric.type}`);
    expect(await types(service.page)).toEqual(expected.sort());
    expect(await types(`http://${gatewayPage}/metrics`)).toEqual(expected);
    // What has no type of its own in a store is told by its names: _total, or _bucket, _sum and _count.
    const native = await prometheus.query(`histogram_count(${OURS.replace('}', ',path!="page"}')})`);
    expect(native).toEqual([]);
  });

  test('job is the service on every path; instance its address on a page, its id where it pushes', () => {
    const instances = (path: Path) => [...new Set(found.get(path)?.map(({ labels }) => labels.instance))];
    const [id] = instances('otlp');
    expect(id).toMatch(/^[0-9a-f-]{36}$/);
    expect([...found.keys()].map(instances)).toEqual([[new URL(service.page).host], [id], [id], [id]]);
  });

  test('values arrive as they were', async () => {
    const ours = 'job="every",operation="a \\"operation\\""';
    const values = async (name: string) =>
      (await prometheus.query(`${name}{${ours}}`)).map(({ value }) => value);
    expect(await values('time_budget_outcomes_total')).toEqual([2, 2, 2, 2]);
    expect(await values('time_budget_overrun_seconds_sum')).toEqual([0.7, 0.7, 0.7, 0.7]);
  });

  test('a service that sends deltas loses none of them: Prometheus would refuse the whole batch', async () => {
    for (let i = 0; i < 3; i++) await services.send('useful');
    const value = async (name: string, labels: string) => {
      const [series] = await prometheus.query(`sum(${name}{job="web",path="",${labels}})`);
      return series?.value;
    };
    await prometheus.until(
      'three requests by OTLP',
      async () => (await value('time_budget_outcomes_total', 'outcome="useful"')) === 3,
    );
    await services.send('useful');
    await prometheus.until(
      'the fourth is added to them',
      async () => (await value('time_budget_outcomes_total', 'outcome="useful"')) === 4,
    );
    expect(await value('time_budget_call_duration_seconds_count', '')).toBe(4);
  });

  test.skipIf(promtool === undefined)('promtool finds nothing to say about collector/prometheus.yml', () => {
    const file = fileURLToPath(CONFIG);
    const said = execFileSync(promtool ?? 'promtool', ['check', 'config', '--lint=all', file], {
      encoding: 'utf8',
    });
    expect(said).toContain('SUCCESS');
    expect(said).not.toMatch(/warning|error/i);
  });
});
