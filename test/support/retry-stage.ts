/** For tests of repeats: a server that fails as often as it is told, and one operation in each client library. */
import http from 'node:http';
import axios from 'axios';
import axiosRetry, { retryAfter } from 'axios-retry';
import { ConstantBackoff, handleAll, retry } from 'cockatiel';
import got from 'got';
import pRetry from 'p-retry';
import { Agent, interceptors, RetryAgent, request as undiciRequest } from 'undici8';
import { httpClient } from '../../instrumentation/http-client/http-client.ts';
import { undiciClient } from '../../instrumentation/undici/undici.ts';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import type { AttemptOwner } from '../../src/core/terms.ts';
import { runInScope } from '../../src/current.ts';
import type { RequestRecord } from '../../src/records.ts';
import {
  backoff,
  guardAxiosRetry,
  guardBackoff,
  guardGotDelay,
  guardPRetry,
  guardUndici,
  mayRetry,
  withRequest,
} from '../../src/retry/index.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { createTestHooks, type TestHooks } from './hooks.ts';
import { close, listen } from './loopback.ts';

export const DEPENDENCY = 'stock';

export interface FailingServer {
  readonly url: string;
  readonly port: number;
  arrivals: number;
  /** Requests that are still to be answered with 503. */
  failures: number;
  retryAfter: string | undefined;
  close(): Promise<void>;
}

export async function startFailingServer(): Promise<FailingServer> {
  const server = http.createServer((request, response) => {
    request.resume();
    state.arrivals++;
    if (state.failures-- <= 0) {
      response.end('stocked');
      return;
    }
    const headers = state.retryAfter === undefined ? {} : { 'retry-after': state.retryAfter };
    response.writeHead(503, headers).end('busy');
  });
  const port = await listen(server);
  const state: FailingServer = {
    url: `http://127.0.0.1:${port}/items`,
    port,
    arrivals: 0,
    failures: 0,
    retryAfter: undefined,
    close: () => close(server),
  };
  return state;
}

/** What an answer of 503 is thrown as where a library throws nothing itself. */
export class AnswerError extends Error {
  readonly response: Response;

  constructor(response: Response) {
    super(`answered ${response.status}`);
    this.response = response;
  }
}

export async function fetchItems(url: string): Promise<string> {
  const response = await fetch(url);
  const text = await response.text();
  if (!response.ok) throw new AnswerError(response);
  return text;
}

export interface Operation {
  readonly url: string;
  readonly maxAttempts: number;
  readonly delayMs: number;
}

export interface Client {
  readonly library: string;
  /** Whose its repeats are. */
  readonly owner: AttemptOwner;
  run(operation: Operation): Promise<string>;
  /** The status that the error of the last attempt tells. */
  statusOf(error: unknown): unknown;
}

const policy = { dependency: DEPENDENCY };
const statusOfAnswer = (error: unknown) => (error instanceof AnswerError ? error.response.status : undefined);
const statusOfField = (error: unknown) =>
  typeof error === 'object' && error !== null ? Reflect.get(error, 'statusCode') : undefined;

async function undiciText(dispatcher: Parameters<typeof undiciRequest>[1], url: string): Promise<string> {
  const { body } = await undiciRequest(url, dispatcher);
  return body.text();
}

const undiciOptions = ({ maxAttempts, delayMs }: Operation) => ({
  maxRetries: maxAttempts - 1,
  minTimeout: delayMs,
  timeoutFactor: 1,
});

export const CLIENTS: readonly Client[] = [
  {
    library: 'a loop of one’s own',
    owner: 'service',
    statusOf: statusOfAnswer,
    async run({ url, maxAttempts, delayMs }) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await fetchItems(url);
        } catch (error) {
          const answer = mayRetry({ ...policy, error, attempt, maxAttempts, backoffMs: delayMs });
          if (!answer.isAllowed || !(await backoff(answer))) throw error;
        }
      }
    },
  },
  {
    library: 'p-retry',
    owner: 'service',
    statusOf: statusOfAnswer,
    run: ({ url, maxAttempts, delayMs }) =>
      pRetry(
        () => fetchItems(url),
        guardPRetry(policy, { retries: maxAttempts - 1, minTimeout: delayMs, factor: 1 }),
      ),
  },
  {
    library: 'cockatiel',
    owner: 'service',
    statusOf: statusOfAnswer,
    run: ({ url, maxAttempts, delayMs }) =>
      retry(handleAll, {
        maxAttempts: maxAttempts - 1,
        backoff: guardBackoff({ ...policy, maxAttempts }, new ConstantBackoff(delayMs)),
      }).execute(() => fetchItems(url)),
  },
  {
    library: 'got',
    // Its own channel is not listened to on this stage; its guard knows it.
    owner: 'got',
    statusOf: (error) =>
      error instanceof Error && 'response' in error ? statusOfField(error.response) : undefined,
    run: ({ url, maxAttempts, delayMs }) =>
      got(url, {
        retry: {
          limit: maxAttempts - 1,
          backoffLimit: delayMs,
          noise: 0,
          calculateDelay: guardGotDelay(policy),
        },
      }).text(),
  },
  {
    library: 'axios-retry',
    owner: 'unknown',
    statusOf: (error) => (axios.isAxiosError(error) ? error.response?.status : undefined),
    async run({ url, maxAttempts, delayMs }) {
      const client = axios.create();
      axiosRetry(
        client,
        guardAxiosRetry(policy, {
          retries: maxAttempts - 1,
          retryCondition: axiosRetry.isNetworkOrIdempotentRequestError,
          retryDelay: (_count, error) => Math.max(delayMs, retryAfter(error)),
        }),
      );
      return (await client.get(url)).data;
    },
  },
  {
    library: 'the retry interceptor of undici',
    owner: 'undici',
    statusOf: statusOfField,
    async run(operation) {
      const agent = new Agent();
      const dispatcher = agent.compose(
        interceptors.retry(guardUndici(policy, undiciOptions(operation))),
        withRequest,
      );
      try {
        return await undiciText({ dispatcher }, operation.url);
      } finally {
        await agent.close();
      }
    },
  },
  {
    library: 'RetryAgent of undici',
    owner: 'undici',
    statusOf: statusOfField,
    async run(operation) {
      const agent = new Agent();
      const retries = new RetryAgent(agent, guardUndici(policy, undiciOptions(operation)));
      try {
        return await undiciText({ dispatcher: retries.compose(withRequest) }, operation.url);
      } finally {
        await agent.close();
      }
    },
  },
];

export interface RetryStage {
  readonly t: TestHooks;
  /** Runs work in a request with this budget, and ends the request with it. */
  inRequest<T>(budgetMs: number | undefined, work: (record: RequestRecord) => Promise<T>): Promise<T>;
  stop(): void;
}

/** The server is the dependency `stock`. */
export function startRetryStage(port: number, config: ConfigOptions): RetryStage {
  const t = createTestHooks({
    adapters: [httpClient, undiciClient],
    config: {
      ...config,
      dependencies: {
        ...config.dependencies,
        [DEPENDENCY]: { match: [`127.0.0.1:${port}`], ...config.dependencies?.[DEPENDENCY] },
      },
    },
  });
  activateRecorder(t.recorder);
  return {
    t,
    async inRequest(budgetMs, work) {
      const headers = budgetMs === undefined ? {} : { 'x-request-timeout-ms': String(budgetMs) };
      const facts = { headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' };
      const record = t.recorder.enter(facts, t.hooks.now());
      t.recorder.handling(record, 'GET /', t.hooks.now());
      try {
        return await runInScope(record, () => work(record));
      } finally {
        t.recorder.finish(record, { completed: true, status: 200 }, t.hooks.now());
      }
    },
    stop() {
      t.stop();
      deactivateRecorder(t.recorder);
    },
  };
}
