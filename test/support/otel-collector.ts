/** A real Collector with the project's configurations, on free ports, whose figures can be asked for. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { freePort } from '../../demo/free-port.ts';
import { parseExposition } from '../../demo/scrape.ts';
import { findProgram } from './real-program.ts';

const otelcol = findProgram('otelcol');
export const hasCollector: boolean = otelcol !== undefined;

/** A file of collector/, or a piece of configuration as `yaml:key::key: value`. */
export type ConfigSource = string;
export type Environment = Readonly<Record<string, string>>;

function argumentsOf(sources: readonly ConfigSource[]): string[] {
  return sources.map((source) => {
    const isPiece = source.startsWith('yaml:');
    return `--config=${isPiece ? source : fileURLToPath(new URL(`../../collector/${source}`, import.meta.url))}`;
  });
}

/** What `otelcol validate` says of configurations laid over one another; empty = nothing. */
export function validate(sources: readonly ConfigSource[], env: Environment = {}): string {
  if (otelcol === undefined) throw new Error('no collector');
  const { status, stdout, stderr } = spawnSync(otelcol, ['validate', ...argumentsOf(sources)], {
    env,
    encoding: 'utf8',
  });
  return status === 0 ? stdout + stderr : `exit ${status}: ${stdout}${stderr}`;
}

/** One process after the other with the same ports and the same folder on disk. */
export class Collector {
  readonly #sources: readonly ConfigSource[];
  readonly #env: Environment;
  readonly #storage: string;
  readonly #ports: { readonly grpc: number; readonly http: number; health: number; telemetry: number };
  #process: ChildProcess | undefined;
  /** What all its processes have said. */
  log = '';

  private constructor(
    sources: readonly ConfigSource[],
    env: Environment,
    ports: readonly [number, number, number, number],
  ) {
    this.#sources = sources;
    this.#env = env;
    this.#storage = mkdtempSync(join(tmpdir(), 'time-budget-collector-'));
    const [grpc, http, health, telemetry] = ports;
    this.#ports = { grpc, http, health, telemetry };
  }

  /** Ports and folder only; `start` starts it. */
  static async prepare(sources: readonly ConfigSource[], env: Environment = {}): Promise<Collector> {
    const ports = await Promise.all([freePort(), freePort(), freePort(), freePort()]);
    return new Collector(sources, env, ports);
  }

  static async start(sources: readonly ConfigSource[], env: Environment = {}): Promise<Collector> {
    const collector = await Collector.prepare(sources, env);
    await collector.start();
    return collector;
  }

  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get url(): string {
    return `http://127.0.0.1:${this.#ports.http}`;
  }

  /** Host and port for OTLP over gRPC. */
  get grpc(): string {
    return `127.0.0.1:${this.#ports.grpc}`;
  }

  /** Some of the variables may differ from those of the process before. */
  async start(env: Environment = {}): Promise<void> {
    if (otelcol === undefined) throw new Error('no collector');
    const { grpc, http, health, telemetry } = this.#ports;
    const child = spawn(otelcol, argumentsOf(this.#sources), {
      env: {
        OTLP_HOST: '127.0.0.1',
        OTLP_GRPC_PORT: String(grpc),
        OTLP_HTTP_PORT: String(http),
        HEALTH: `127.0.0.1:${health}`,
        TELEMETRY_HOST: '127.0.0.1',
        TELEMETRY_PORT: String(telemetry),
        STORAGE: this.#storage,
        ...this.#env,
        ...env,
      },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.log += text;
    });
    this.#process = child;
    await this.until('it is healthy', async () => {
      if (child.exitCode !== null) throw new Error('ended');
      return (await fetch(`http://127.0.0.1:${health}`)).ok;
    });
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    const child = this.#process;
    this.#process = undefined;
    if (child === undefined || child.exitCode !== null) return;
    const ended = new Promise((done) => child.once('close', done));
    child.kill(signal);
    await ended;
  }

  async remove(): Promise<void> {
    await this.stop('SIGKILL');
    rmSync(this.#storage, { recursive: true, force: true });
  }

  /** Sum of its own series of this name with these labels; counters have no `_total` here. */
  async figure(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const page = await (await fetch(`http://127.0.0.1:${this.#ports.telemetry}/metrics`)).text();
    return parseExposition(page)
      .filter((sample) => sample.name === name)
      .filter((sample) => Object.entries(labels).every(([key, value]) => sample.labels[key] === value))
      .reduce((sum, { value }) => sum + value, 0);
  }

  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const giveUpAt = performance.now() + 40_000;
    while (!(await holds().catch(() => false))) {
      if (performance.now() > giveUpAt)
        throw new Error(`too late: ${what}\n${this.complaints().slice(-5).join('\n')}`);
      await sleep(50);
    }
  }

  /** Lines of its log at these levels. */
  complaints(levels: readonly string[] = ['warn', 'error']): string[] {
    return this.log.split('\n').filter((line) => levels.some((level) => line.includes(`\t${level}\t`)));
  }
}
