/**
 * What docker-compose.yml has beside the services, as far as this machine has the programs: Prometheus, the gateway
 * Collector and steady callers. For `--prometheus`.
 */
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { METRICS, type MetricDefinition, prometheusName } from '../src/telemetry/names.ts';
import type { Cleanup } from './cleanup.ts';
import { freePort } from './free-port.ts';
import { launch, newFolder, type Running } from './launch.ts';
import type { Stage } from './player.ts';
import { startTraffic } from './processes.ts';
import { programPath, programVersion } from './program.ts';

export interface Observers {
  readonly prometheus: { readonly path: string; readonly version: string | undefined } | undefined;
  readonly collector: string | undefined;
  /** A line for each that is not here, or does less: which, and how to get it. */
  readonly notes: readonly string[];
}

const SCRAPE_EVERY = '5s';
/** Those whose links lead to a Grafana on this machine. */
const RULES = fileURLToPath(new URL('../deploy/compose/time-budget.rules.yml', import.meta.url));
const GATEWAY = fileURLToPath(new URL('../collector/gateway.yaml', import.meta.url));
/** In place of a Tempo: kept traces on standard output, a line for each span. */
const COLLECTOR_ARGS = [
  `--config=${GATEWAY}`,
  '--config=yaml:exporters::debug::verbosity: normal',
  '--config=yaml:exporters::debug::use_internal_logger: false',
  '--config=yaml:service::pipelines::traces::exporters: [debug]',
];
/** As in docker-compose.yml: the longest request is over in three seconds. */
const DECISION_WAIT = '10s';
/** From which version Prometheus has the flag for it. */
const OTLP_SINCE = 3;

/** `tools` is where scripts/real-parts.sh puts what it brings. */
export function findObservers(tools?: string): Observers {
  const notes: string[] = [];
  const path = programPath('prometheus', tools);
  const version = path === undefined ? undefined : programVersion(path);
  if (path === undefined) {
    notes.push('No prometheus in .tools/bin or on the PATH: scripts/real-parts.sh prometheus brings it.');
  } else if (!takesOtlp(version)) {
    notes.push(
      `Prometheus ${version ?? 'of an unknown version'} only scrapes here: scripts/real-parts.sh prometheus brings version 3, which takes OTLP too.`,
    );
  }
  let collector = programPath('otelcol', tools) ?? programPath('otelcol-contrib', tools);
  if (collector === undefined) {
    notes.push('No otelcol in .tools/bin or on the PATH: scripts/real-parts.sh otelcol brings it.');
  } else if (spawnSync(collector, ['validate', ...COLLECTOR_ARGS]).status !== 0) {
    notes.push(
      `${collector} cannot run collector/gateway.yaml: scripts/real-parts.sh otelcol brings one that can.`,
    );
    collector = undefined;
  }
  return { prometheus: path === undefined ? undefined : { path, version }, collector, notes };
}

function takesOtlp(version: string | undefined): boolean {
  return Number.parseInt(version ?? '', 10) >= OTLP_SINCE;
}

/** Starts them and the callers; gives the lines that say where to look. `onFailure` is told when one ends by itself. */
export async function startObservers(
  { prometheus, collector }: Observers,
  stage: Stage,
  cleanup: Cleanup,
  onFailure: (error: Error) => void,
): Promise<string[]> {
  const running = { cleanup, onFailure };
  const ports = Promise.all([freePort(), freePort(), freePort(), freePort(), freePort()]);
  const [page, otlp, otlpGrpc, health, own] = await ports;
  const prometheusUrl = `http://127.0.0.1:${page}`;
  const jobs: Record<string, string> = { ...stage.metricsUrls };
  const lines: string[] = [];
  if (collector !== undefined) jobs.collector = `http://127.0.0.1:${own}/metrics`;
  if (prometheus !== undefined) {
    await startPrometheus(prometheus.path, takesOtlp(prometheus.version), page, jobs, running);
    lines.push(...(await prometheusLines(prometheusUrl, prometheus.version)));
  }
  if (collector !== undefined) {
    const env = {
      OTLP_HOST: '127.0.0.1',
      OTLP_GRPC_PORT: String(otlpGrpc),
      OTLP_HTTP_PORT: String(otlp),
      HEALTH: `127.0.0.1:${health}`,
      TELEMETRY_HOST: '127.0.0.1',
      TELEMETRY_PORT: String(own),
      PROMETHEUS: prometheusUrl,
      DECISION_WAIT,
    };
    const traces = await startCollector(collector, env, running);
    stage.receiver.forwardTo(`http://127.0.0.1:${otlp}/v1/traces`);
    lines.push('', 'The traces that tail sampling keeps, 10 s after they began, a line for each span:');
    lines.push(`  tail -f ${traces}`);
    if (takesOtlp(prometheus?.version)) {
      lines.push('A service of your own beside them, its metrics in this Prometheus:');
      lines.push(`  OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:${otlp}`);
    }
  }
  await startTraffic(stage, cleanup, onFailure);
  return lines;
}

async function startPrometheus(
  path: string,
  isOtlpOn: boolean,
  port: number,
  jobs: Readonly<Record<string, string>>,
  running: Running,
): Promise<void> {
  const folder = newFolder('prometheus', running.cleanup);
  const config = {
    global: { scrape_interval: SCRAPE_EVERY },
    rule_files: [RULES],
    storage: { tsdb: { out_of_order_time_window: '30m' } },
    scrape_configs: Object.entries(jobs).map(([job, url]) => ({
      job_name: job,
      static_configs: [{ targets: [new URL(url).host] }],
    })),
  };
  // JSON is YAML too.
  writeFileSync(join(folder, 'prometheus.json'), JSON.stringify(config));
  const args = [
    `--config.file=${join(folder, 'prometheus.json')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
    ...(isOtlpOn ? ['--web.enable-otlp-receiver'] : []),
  ];
  const readyUrl = `http://127.0.0.1:${port}/-/ready`;
  await launch({ name: 'Prometheus', path, folder, args, readyUrl }, running);
}

/** Gives the file of the kept traces. */
async function startCollector(
  path: string,
  env: Readonly<Record<string, string>>,
  running: Running,
): Promise<string> {
  const folder = newFolder('collector', running.cleanup);
  const traces = join(folder, 'traces.txt');
  const stdout = openSync(traces, 'a');
  try {
    await launch(
      {
        name: 'the Collector',
        path,
        folder,
        args: COLLECTOR_ARGS,
        env: { ...env, STORAGE: join(folder, 'queue') },
        stdout,
        readyUrl: `http://${env.HEALTH}`,
      },
      running,
    );
  } finally {
    closeSync(stdout);
  }
  return traces;
}

async function prometheusLines(url: string, version: string | undefined): Promise<string[]> {
  const increase = (metric: MetricDefinition, label: string) =>
    `sum by (job, ${label}) (increase(${prometheusName(metric)}[1m])) > 0`;
  const queries = [
    increase(METRICS.outcomes, 'outcome'),
    increase(METRICS.expiries, 'phase'),
    increase(METRICS.expiryCauses, 'cause'),
  ];
  // One that was built from its module alone has none.
  const hasPages = await fetch(url).then(
    ({ ok }) => ok,
    () => false,
  );
  return [
    '',
    `Prometheus ${version ?? ''} reads the services every ${SCRAPE_EVERY} and has the rules; callers keep them busy.`,
    `  Prometheus      ${url}${hasPages ? '' : '   its API alone: this build has no pages'}`,
    `  active alerts   ${url}/api/v1/alerts`,
    'How requests ended, in which phases time ran out, and why, in the last minute:',
    ...queries.map((query) => `  curl -s ${url}/api/v1/query --data-urlencode 'query=${query}'`),
    `Grafana: add a Prometheus data source, URL ${url}, scrape interval ${SCRAPE_EVERY}; then import`,
    `  ${fileURLToPath(new URL('../dashboards/json', import.meta.url))}/*.json`,
  ];
}
