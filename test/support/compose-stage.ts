/**
 * docker-compose.yml played without Docker: the same commands, environments and files, with every `service:port` an
 * address of this machine. Tempo is a server that only counts, and Grafana is left out.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { freePort } from '../../demo/free-port.ts';
import { type Postgres, startPostgres } from '../../demo/postgres.ts';
import { findProgram } from './real-program.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

interface Service {
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
}

/** What each listens on inside, beside what the file says. */
const INSIDE: Readonly<Record<string, readonly number[]>> = {
  gateway: [8080, 9464],
  orders: [8080, 9464],
  inventory: [8080, 9464],
  postgres: [5432],
  'collector-agent': [4317, 4318, 8888, 13_133],
  'collector-gateway': [4317, 4318, 8888, 13_133],
  prometheus: [9090],
  alertmanager: [9093],
  tempo: [3200, 4318],
};

const PROGRAMS = {
  'collector-agent': 'otelcol',
  'collector-gateway': 'otelcol',
  prometheus: 'prometheus',
  alertmanager: 'prometheus-alertmanager',
} as const;

export class ComposeStage {
  readonly #services: Readonly<Record<string, Service>>;
  readonly #ports = new Map<string, number>();
  readonly #folder = mkdtempSync(join(tmpdir(), 'time-budget-compose-'));
  readonly #processes: { readonly name: string; readonly process: ChildProcess; log: string }[] = [];
  #postgres: Postgres | undefined;
  #tempo: Server | undefined;
  /** Exports that reached Tempo's address. */
  traceExports = 0;

  constructor() {
    const file = parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8'), { merge: true });
    this.#services = file.services;
  }

  /** In the order of the file's `depends_on`. */
  async start(): Promise<void> {
    const inside = Object.entries(INSIDE).flatMap(([name, ports]) => ports.map((port) => `${name}:${port}`));
    for (const address of inside) this.#ports.set(address, await freePort());
    this.#postgres = await startPostgres({
      database: 'orders',
      schema: readFileSync(join(ROOT, 'demo/schema.sql'), 'utf8'),
    });
    this.#ports.set('postgres:5432', this.#postgres.connection.port);
    this.#tempo = createServer((request, response) => {
      if (request.url === '/v1/traces') this.traceExports++;
      request.resume().once('end', () => response.end());
    });
    await new Promise<void>((done) => this.#tempo?.listen(this.port('tempo:4318'), '127.0.0.1', done));
    for (const name of ['prometheus', 'alertmanager', 'collector-gateway', 'collector-agent'] as const) {
      this.#startProgram(name);
    }
    for (const name of ['inventory', 'orders', 'gateway', 'traffic']) this.#startNode(name);
  }

  port(address: string): number {
    const port = this.#ports.get(address);
    if (port === undefined) throw new Error(`nothing listens at ${address}`);
    return port;
  }

  /** Of the health check that the file has for a service. */
  health(name: string): number | null {
    const [, program = '', ...args] = this.#service(name).healthcheck?.test ?? [];
    const own = args.map((arg) => this.#here(arg, name));
    return spawnSync(program === 'node' ? process.execPath : (findProgram(program) ?? program), own, {
      timeout: 10_000,
    }).status;
  }

  async until(what: string, holds: () => boolean | Promise<boolean>, timeoutMs = 60_000): Promise<void> {
    const giveUpAt = performance.now() + timeoutMs;
    for (;;) {
      if (await Promise.resolve(holds()).catch(() => false)) return;
      const ended = this.#processes.filter(({ process: one }) => one.exitCode !== null);
      if (ended.length > 0 || performance.now() > giveUpAt) {
        const logs = (ended.length > 0 ? ended : this.#processes).map(({ name, log }) => `${name}: ${log}`);
        throw new Error(`too late: ${what}\n${logs.join('\n')}`);
      }
      await sleep(200);
    }
  }

  async stop(): Promise<void> {
    for (const { process: one } of this.#processes.reverse()) {
      if (one.exitCode !== null || one.signalCode !== null) continue;
      const ended = new Promise((done) => one.once('close', done));
      one.kill('SIGTERM');
      const timer = setTimeout(() => one.kill('SIGKILL'), 10_000);
      await ended;
      clearTimeout(timer);
    }
    this.#tempo?.close();
    this.#tempo?.closeAllConnections();
    await this.#postgres?.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #service(name: string): Service {
    const service = this.#services[name];
    if (service === undefined) throw new Error(`no service ${name}`);
    return service;
  }

  /** Addresses of services become those of this machine; `localhost` and 127.0.0.1 are the service's own. */
  #here(text: string, own: string): string {
    return text.replace(/\b([a-z][a-z-]*|127\.0\.0\.1):(\d+)/g, (whole, host: string, port: string) => {
      const name = host === 'localhost' || host === '127.0.0.1' ? own : host;
      const mapped = this.#ports.get(`${name}:${port}`);
      return mapped === undefined ? whole : `127.0.0.1:${mapped}`;
    });
  }

  #environment(name: string): Record<string, string> {
    const entries = Object.entries(this.#service(name).environment ?? {});
    return Object.fromEntries(entries.map(([key, value]) => [key, this.#here(value, name)]));
  }

  /** The mounted files in a folder of the service's own, addresses in them replaced. */
  #mount(name: string): string {
    const root = join(this.#folder, name);
    for (const volume of this.#service(name).volumes ?? []) {
      const [source = '', target = ''] = volume.split(':');
      const path = join(root, target);
      mkdirSync(source.startsWith('./') ? dirname(path) : path, { recursive: true });
      if (!source.startsWith('./')) continue;
      writeFileSync(path, this.#here(readFileSync(join(ROOT, source), 'utf8'), name));
    }
    return root;
  }

  #startNode(name: string): void {
    const [, ...args] = this.#service(name).command ?? [];
    const root = this.#mount(name);
    const env = this.#environment(name);
    const listens = this.#ports.get(`${name}:8080`);
    this.#spawn(name, process.execPath, args, {
      ...env,
      ...(env.TIME_BUDGET_CONFIG === undefined
        ? {}
        : { TIME_BUDGET_CONFIG: join(root, env.TIME_BUDGET_CONFIG) }),
      ...(listens === undefined
        ? {}
        : {
            PORT: String(listens),
            HOST: '127.0.0.1',
            OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
            OTEL_EXPORTER_PROMETHEUS_PORT: String(this.port(`${name}:9464`)),
          }),
    });
  }

  #startProgram(name: keyof typeof PROGRAMS): void {
    const root = this.#mount(name);
    const paths = (this.#service(name).command ?? []).map((arg) =>
      this.#here(arg.replace(/=(\/)/, `=${root}/`), name),
    );
    const own = {
      otelcol: {
        STORAGE: join(root, 'storage'),
        OTLP_HOST: '127.0.0.1',
        OTLP_GRPC_PORT: String(this.#ports.get(`${name}:4317`)),
        OTLP_HTTP_PORT: String(this.#ports.get(`${name}:4318`)),
        HEALTH: `127.0.0.1:${this.#ports.get(`${name}:13133`)}`,
        TELEMETRY_HOST: '127.0.0.1',
        TELEMETRY_PORT: String(this.#ports.get(`${name}:8888`)),
      },
      prometheus: {},
      'prometheus-alertmanager': {},
    }[PROGRAMS[name]];
    const listen =
      PROGRAMS[name] === 'otelcol'
        ? []
        : [`--web.listen-address=127.0.0.1:${this.port(`${name}:${INSIDE[name]?.[0]}`)}`];
    const program = findProgram(PROGRAMS[name]) ?? PROGRAMS[name];
    this.#spawn(name, program, [...paths, ...listen], { ...this.#environment(name), ...own });
  }

  #spawn(
    name: string,
    program: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
  ): void {
    const child = spawn(program, args, {
      cwd: ROOT,
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const started = { name, process: child, log: '' };
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => {
        started.log = (started.log + text).slice(-3000);
      });
    }
    this.#processes.push(started);
  }
}
