/** One service as a child process with the flag, whose metrics can be asked for. */
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../demo/free-port.ts';
import { parseExposition, type Sample } from '../../demo/scrape.ts';
import { Child, REGISTER, testFile } from './child.ts';

export interface ServiceOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Modules to load before ours and after it, by their URLs. */
  readonly before?: readonly string[];
  readonly after?: readonly string[];
  /** False for the same service without the flag. */
  readonly flag?: boolean;
  /** The most files that it may have open. */
  readonly openFiles?: number;
}

/** A label that is left out matches any. */
type Labels = Readonly<Record<string, string>>;

export class Metrics {
  readonly samples: readonly Sample[];

  constructor(samples: readonly Sample[]) {
    this.samples = samples;
  }

  /** Sum of the samples with these labels; of a histogram, ask for its `_count`, `_sum` or `_bucket`. */
  value(name: string, labels: Labels = {}): number {
    const wanted = this.samples.filter(
      (sample) =>
        sample.name === name && Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    );
    return wanted.reduce((sum, sample) => sum + sample.value, 0);
  }

  /** Series of ours. */
  get own(): readonly Sample[] {
    return this.samples.filter(({ name }) => /^(time_budget|db_client_connection)_/.test(name));
  }
}

export class Service {
  readonly child: Child;
  readonly port: number;
  /** Where Prometheus would scrape it. */
  readonly page: string;

  private constructor(child: Child, port: number, page: string) {
    this.child = child;
    this.port = port;
    this.page = page;
  }

  /** `script` lies in test/e2e. */
  static async start(script: string, options: ServiceOptions = {}): Promise<Service> {
    const { env = {}, before = [], after = [], flag = true, openFiles } = options;
    const page = String(await freePort());
    const modules = [...before, ...(flag ? [REGISTER] : []), ...after];
    const args = [...modules.flatMap((module) => ['--import', module]), '--expose-gc', testFile(script)];
    const allEnv = {
      OTEL_SERVICE_NAME: 'service',
      OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
      OTEL_EXPORTER_PROMETHEUS_PORT: page,
      ...env,
    };
    const child = new Child(args, allEnv, openFiles);
    return new Service(child, await child.port(), `http://127.0.0.1:${page}/metrics`);
  }

  get origin(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The page is opened just after the service has said that it listens. */
  async metrics(): Promise<Metrics> {
    const giveUpAt = performance.now() + 10_000;
    for (;;) {
      try {
        return new Metrics(parseExposition(await (await fetch(this.page)).text()));
      } catch (error) {
        if (performance.now() > giveUpAt) throw error;
        await sleep(10);
      }
    }
  }

  /** Waits until the metrics say so: the end of a request is counted a moment after its client has seen it. */
  async until(holds: (metrics: Metrics) => boolean): Promise<Metrics> {
    const giveUpAt = performance.now() + 10_000;
    for (;;) {
      const metrics = await this.metrics();
      if (holds(metrics)) return metrics;
      if (performance.now() > giveUpAt) {
        throw new Error(`not counted: ${JSON.stringify(metrics.own.filter(({ value }) => value > 0))}`);
      }
      await sleep(10);
    }
  }

  async stop(): Promise<void> {
    await this.child.stop('SIGKILL');
  }
}
