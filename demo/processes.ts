/** The services, their database and the receiver of their traces: started, watched, and gone without a trace. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Caller } from './caller.ts';
import type { Cleanup } from './cleanup.ts';
import { freePort } from './free-port.ts';
import { OtlpReceiver } from './otlp-receiver.ts';
import type { Stage } from './player.ts';
import { startPostgres } from './postgres.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SERVICES = ['gateway', 'orders', 'inventory'] as const;
type Service = (typeof SERVICES)[number];

/** A service that does not go within this time after being asked to is killed. */
const STOP_MS = 2000;
const MAX_LOG_LENGTH = 4000;
/**
 * Ends a service when its standard input closes, which the death of the player does too, whatever it died of. It does
 * not keep one that is done.
 */
const ORPHAN_GUARD = 'data:text/javascript,process.stdin.once("close",()=>process.exit()).resume().unref()';

const SCHEMA = new URL('./schema.sql', import.meta.url);

/** Starts everything. `onFailure` is told when a service ends that was not stopped. */
export async function startStage(cleanup: Cleanup, onFailure: (error: Error) => void): Promise<Stage> {
  const folder = mkdtemp(join(tmpdir(), 'time-budget-demo-'));
  cleanup.add(async () => rm(await folder, { recursive: true, force: true }));
  const receiver = new OtlpReceiver();
  cleanup.add(async () => receiver.stop());
  const caller = new Caller();
  cleanup.add(async () => caller.close());
  const postgres = readFile(SCHEMA, 'utf8').then((schema) => startPostgres({ database: 'orders', schema }));
  cleanup.add(async () => (await postgres).stop());

  const [tracesUrl, ports, { connection }] = await Promise.all([receiver.start(), freePorts(), postgres]);
  const config = join(await folder, 'time-budget.yaml');
  await writeFile(config, await fillIn(ports.http));
  const { user, password, host, port, database } = connection;
  const own: Readonly<Record<Service, NodeJS.ProcessEnv>> = {
    gateway: { ORDERS_URL: url(ports.http.orders) },
    orders: {
      INVENTORY_URL: url(ports.http.inventory),
      DATABASE_URL: `postgresql://${user}:${password}@${host}:${port}/${database}`,
    },
    inventory: {},
  };
  if (cleanup.hasBegun) throw new Error('stopped while starting');
  const starting = SERVICES.map((service) => {
    const env = {
      ...telemetry(service, tracesUrl, config, ports.metrics[service]),
      ...own[service],
      PORT: String(ports.http[service]),
    };
    return startService(service, env, cleanup, onFailure);
  });
  await Promise.all(starting);
  return {
    gatewayUrl: url(ports.http.gateway),
    ordersUrl: url(ports.http.orders),
    metricsUrls: Object.fromEntries(SERVICES.map((one) => [one, `${url(ports.metrics[one])}/metrics`])),
    receiver,
    caller,
  };
}

/** The standard variables of OpenTelemetry, and the one of ours. Nothing of the player's own gets through. */
function telemetry(
  service: Service,
  tracesUrl: string,
  config: string,
  metricsPort: number,
): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH,
    OTEL_SERVICE_NAME: service,
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: tracesUrl,
    OTEL_BSP_SCHEDULE_DELAY: '100',
    OTEL_METRICS_EXPORTER: 'prometheus',
    OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
    OTEL_EXPORTER_PROMETHEUS_PORT: String(metricsPort),
    OTEL_LOGS_EXPORTER: 'none',
    TIME_BUDGET_CONFIG: config,
  };
}

function startService(
  service: Service,
  env: NodeJS.ProcessEnv,
  cleanup: Cleanup,
  onFailure: (error: Error) => void,
): Promise<void> {
  const args = ['--import', 'otel-time-budget/register', `demo/services/${service}.ts`];
  return startNode(`the service ${service}`, `${service} is up`, args, env, cleanup, onFailure);
}

/** Steady callers (demo/traffic.ts). */
export async function startTraffic(
  { gatewayUrl, ordersUrl }: Stage,
  cleanup: Cleanup,
  onFailure: (error: Error) => void,
): Promise<void> {
  if (cleanup.hasBegun) throw new Error('stopped while starting');
  const { PATH, TMPDIR } = process.env;
  const env = { PATH, TMPDIR, GATEWAY_URL: gatewayUrl, ORDERS_URL: ordersUrl };
  return startNode('the traffic', 'traffic is up', ['demo/traffic.ts'], env, cleanup, onFailure);
}

/** Resolves when the process has printed `sign`. */
function startNode(
  name: string,
  sign: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  cleanup: Cleanup,
  onFailure: (error: Error) => void,
): Promise<void> {
  const child = spawn(process.execPath, ['--import', ORPHAN_GUARD, ...args], {
    cwd: ROOT,
    env,
    // A group of its own: Ctrl-C in a terminal reaches the player alone, which then stops the services in order.
    detached: true,
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  cleanup.add(() => stopService(child));
  let log = '';
  return new Promise((resolve, reject) => {
    const onText = (text: string) => {
      log = (log + text).slice(-MAX_LOG_LENGTH);
      if (log.includes(sign)) resolve();
    };
    child.stdout.setEncoding('utf8').on('data', onText);
    child.stderr.setEncoding('utf8').on('data', onText);
    child.once('error', reject);
    child.once('close', (code, signal) => {
      if (cleanup.hasBegun) return;
      const error = new Error(`${name} ended (${signal ?? code}):\n${log}`);
      reject(error);
      onFailure(error);
    });
  });
}

async function stopService(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const closed = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
  await closed;
  clearTimeout(timer);
}

interface Ports {
  readonly http: Readonly<Record<Service, number>>;
  readonly metrics: Readonly<Record<Service, number>>;
}

async function freePorts(): Promise<Ports> {
  const numbers = await Promise.all([...SERVICES, ...SERVICES].map(() => freePort()));
  const named = (from: number) =>
    // One number per service was asked for just above.
    Object.fromEntries(SERVICES.map((service, i) => [service, numbers[from + i]])) as Record<Service, number>;
  return { http: named(0), metrics: named(SERVICES.length) };
}

async function fillIn(ports: Ports['http']): Promise<string> {
  const template = await readFile(new URL('./time-budget.yaml', import.meta.url), 'utf8');
  return template
    .replaceAll('ORDERS_PORT', String(ports.orders))
    .replaceAll('INVENTORY_PORT', String(ports.inventory));
}

function url(port: number): string {
  return `http://127.0.0.1:${port}`;
}
