/** Two services with the package, one behind the other, whose traces go to a collector; and requests with known trace ids. */
import { randomBytes } from 'node:crypto';
import http, { type ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { close, listen, until } from './loopback.ts';
import { Service } from './service.ts';

/** What each request comes to; `useful` is the only kind that nobody needs a trace of. */
export type Kind = 'useful' | 'late' | 'expired' | 'cancelled' | 'refused' | 'repeated' | 'failed';

const PATHS: Readonly<Record<Kind, string>> = {
  useful: '/useful',
  late: '/held',
  expired: '/held',
  cancelled: '/held',
  refused: '/useful',
  repeated: '/repeated',
  failed: '/failing',
};
const BUDGETS_MS: Readonly<Record<Kind, number>> = {
  useful: 60_000,
  late: 100,
  expired: 100,
  cancelled: 60_000,
  // Less than the reserve: a call that would not have been made.
  refused: 5_000,
  repeated: 60_000,
  failed: 60_000,
};
const RESERVE_MS = 10_000;
/** Server and call of each of the two services; one attempt more is the call, the other server and its call. */
export function spansOf(kind: Kind): number {
  return kind === 'repeated' ? 7 : 4;
}

export class TracedServices {
  readonly #services: Service[] = [];
  readonly #held: ServerResponse[] = [];
  #isFlakyAgain = false;
  readonly #peer = http.createServer((request, response) => {
    const [path] = (request.url ?? '').split('?');
    if (path === '/held') {
      this.#held.push(response);
      return;
    }
    if (path === '/flaky') this.#isFlakyAgain = !this.#isFlakyAgain;
    if (path === '/failing') response.statusCode = 500;
    if (path === '/flaky' && this.#isFlakyAgain) response.statusCode = 503;
    response.end('answer');
  });

  static async start(endpoint: string, env: Readonly<Record<string, string>> = {}): Promise<TracedServices> {
    const services = new TracedServices();
    let backUrl = `http://127.0.0.1:${await listen(services.#peer)}`;
    for (const name of ['back', 'web']) {
      const service = await Service.start('apps/traced.mjs', {
        env: {
          OTEL_SERVICE_NAME: name,
          OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
          OTEL_BSP_SCHEDULE_DELAY: '50',
          OTEL_METRIC_EXPORT_INTERVAL: '500',
          TIME_BUDGET_RESERVE_MS: String(RESERVE_MS),
          BACK_URL: backUrl,
          ...env,
        },
      });
      services.#services.push(service);
      backUrl = service.origin;
    }
    return services;
  }

  get url(): string {
    return this.#web.origin;
  }

  get #web(): Service {
    const web = this.#services.at(-1);
    if (web === undefined) throw new Error('not started');
    return web;
  }

  /** Sends one request; gives the id of its trace, once both services have counted its end. */
  async send(kind: Kind, lastDigit?: string): Promise<string> {
    const id = randomBytes(16).toString('hex').slice(0, 31) + (lastDigit ?? '5');
    const before = await this.#ended();
    const left = new AbortController();
    const answer = fetch(this.#web.origin + PATHS[kind], {
      headers: {
        traceparent: `00-${id}-00f067aa0ba902b7-01`,
        'x-request-timeout-ms': String(BUDGETS_MS[kind]),
      },
      signal: left.signal,
    }).catch(() => undefined);
    if (PATHS[kind] === '/held') {
      await until(() => this.#held.length > 0, 'the request at the peer');
      if (kind !== 'cancelled') await sleep(BUDGETS_MS[kind] + 20);
      if (kind !== 'late') {
        left.abort();
        // The client's going has to be seen before there is work after it.
        await this.#until(async () => (await this.#endedBy(this.#web)) > (before.at(-1) ?? 0));
        await sleep(20);
      }
      this.#held.pop()?.end('late answer');
    }
    await answer;
    const more = kind === 'repeated' ? [2, 1] : [1, 1];
    await this.#until(async () => {
      const now = await this.#ended();
      return now.every((count, i) => count === (before[i] ?? 0) + (more[i] ?? 0));
    });
    return id;
  }

  async #endedBy(service: Service): Promise<number> {
    return (await service.metrics()).value('time_budget_outcomes_total');
  }

  async #ended(): Promise<number[]> {
    return Promise.all(this.#services.map((service) => this.#endedBy(service)));
  }

  async #until(holds: () => Promise<boolean>): Promise<void> {
    const giveUpAt = performance.now() + 10_000;
    while (!(await holds())) {
      if (performance.now() > giveUpAt) throw new Error('the services have not counted the request');
      await sleep(10);
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#services.map((service) => service.stop()));
    await close(this.#peer);
  }
}
