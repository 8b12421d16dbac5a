/** Real services in the situations that alerts are about, with dependencies whose behaviour may change. */
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { close, listen } from './loopback.ts';
import { Service } from './service.ts';

/** Long beside the noise of a small, busy machine. */
const USUAL_MS = 120;

/** What the services call. Its behaviour may change at any moment. */
export class Dependency {
  delayMs = USUAL_MS;
  /** By the ordinal of what arrives, from 0. */
  status: (ordinal: number) => number = () => 200;
  readonly #server: http.Server;
  #arrivals = 0;

  constructor() {
    this.#server = http.createServer((_request, response) => {
      const status = this.status(this.#arrivals++);
      setTimeout(() => response.writeHead(status).end('items'), this.delayMs);
    });
  }

  async start(): Promise<number> {
    return listen(this.#server);
  }

  async stop(): Promise<void> {
    await close(this.#server);
  }
}

export interface Ask {
  readonly path: string;
  readonly budgetMs?: number;
  readonly caller?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** The client goes away after this long. */
  readonly leaveAfterMs?: number;
}

/** A service of `apps/alerts.mjs` with dependencies of its own, as one job of Prometheus. */
export class Job<Name extends string> {
  readonly dependencies: Readonly<Record<Name, Dependency>>;
  readonly service: Service;
  readonly #agent = new http.Agent({ keepAlive: true });
  readonly #timers = new Set<NodeJS.Timeout>();

  private constructor(dependencies: Readonly<Record<Name, Dependency>>, service: Service) {
    this.dependencies = dependencies;
    this.service = service;
  }

  static async start<Name extends string>(
    names: readonly Name[],
    folder: string,
    settings: { readonly config?: Readonly<Record<string, unknown>>; readonly gate?: string } = {},
  ): Promise<Job<Name>> {
    const entries = names.map((name) => [name, new Dependency()] as const);
    const ports = await Promise.all(entries.map(([, dependency]) => dependency.start()));
    const { dependencies = {}, ...config } = settings.config ?? {};
    const own = names.map((name, i) => [
      name,
      { match: [`127.0.0.1:${ports[i]}`], ...Object(Reflect.get(Object(dependencies), name)) },
    ]);
    const file = join(folder, `${ports.join('-')}.yaml`);
    // JSON is YAML too.
    writeFileSync(file, JSON.stringify({ version: 1, ...config, dependencies: Object.fromEntries(own) }));
    const service = await Service.start('apps/alerts.mjs', {
      env: {
        TIME_BUDGET_CONFIG: file,
        DEPENDENCIES: JSON.stringify(
          Object.fromEntries(names.map((name, i) => [name, `http://127.0.0.1:${ports[i]}`])),
        ),
        ...(settings.gate === undefined ? {} : { GATE: settings.gate }),
      },
    });
    // With settings that are wrong the service runs without the package.
    await service.metrics().catch(() => {
      throw new Error(`no metrics: ${service.child.stderr}`);
    });
    // Made of the same names just above.
    return new Job(Object.fromEntries(entries) as Record<Name, Dependency>, service);
  }

  ask({ path, budgetMs, caller = 'web', headers = {}, leaveAfterMs }: Ask): Promise<void> {
    const budget = budgetMs === undefined ? `caller=${caller}` : `remaining=${budgetMs}, caller=${caller}`;
    return new Promise((done) => {
      const request = http.get(
        `${this.service.origin}${path}`,
        {
          agent: leaveAfterMs === undefined ? this.#agent : false,
          headers: { 'time-budget': budget, ...headers },
        },
        (response) => response.resume().once('close', done),
      );
      request.once('error', () => done());
      if (leaveAfterMs !== undefined) setTimeout(() => request.destroy(), leaveAfterMs);
    });
  }

  /** So many per second, whatever becomes of them, until it is undone or the job is stopped. */
  traffic(perSecond: number, ask: Ask): () => void {
    const timer = setInterval(() => void this.ask(ask), 1000 / perSecond);
    this.#timers.add(timer);
    return () => {
      clearInterval(timer);
      this.#timers.delete(timer);
    };
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer);
    await this.service.stop();
    this.#agent.destroy();
    // The names of a Record<Name, Dependency> have a Dependency each.
    await Promise.all(Object.values<Dependency>(this.dependencies).map((dependency) => dependency.stop()));
  }
}
