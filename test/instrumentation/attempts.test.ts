/** Attempts as real clients and real retry libraries make them, against a real server, without a word from any. */
import http, { type ServerResponse } from 'node:http';
import axios from 'axios';
import axiosRetry from 'axios-retry';
import { ConstantBackoff, handleAll, retry } from 'cockatiel';
import got from 'got';
import pRetry from 'p-retry';
import * as undici6 from 'undici6';
import * as undici7 from 'undici7';
import * as undici8 from 'undici8';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { got as gotAdapter } from '../../instrumentation/got.ts';
import { httpClient } from '../../instrumentation/http-client/http-client.ts';
import { undiciClient } from '../../instrumentation/undici/undici.ts';
import type { CallRecord } from '../../src/records.ts';
import { close, listen } from '../support/loopback.ts';
import { headerValues, inRequest, type Seen, type Watched, watchCalls } from '../support/outgoing.ts';

/** Nothing listens there, and nothing that a test starts can get the port. */
const NOBODY = 'http://127.0.0.1:2';

let watched: Watched;
let server: http.Server;
let origin = '';
let seen: Pick<Seen, 'url' | 'rawHeaders'>[] = [];
/** Answers the n-th arrival, from 1. */
let answer: (count: number, response: ServerResponse) => void;

const failTwice = (count: number, response: ServerResponse) => {
  response.statusCode = count < 3 ? 503 : 200;
  response.end('x');
};

beforeEach(async () => {
  seen = [];
  answer = failTwice;
  server = http.createServer((request, response) => {
    seen.push({ url: request.url ?? '', rawHeaders: request.rawHeaders });
    request.resume();
    answer(seen.length, response);
  });
  origin = `http://127.0.0.1:${await listen(server)}`;
  watched = watchCalls([gotAdapter, httpClient, undiciClient]);
});

afterEach(async () => {
  watched.stop();
  await close(server);
});

function run(work: () => Promise<unknown>): Promise<unknown> {
  return inRequest(watched, 10_000, work);
}

function told(): string[] {
  return seen.map((one) => headerValues(one as Seen, 'time-budget')[0]?.replace(/remaining=\d+, /, '') ?? '');
}

function owners(): (string | undefined)[] {
  return watched.calls.map(({ tried }) => tried?.owner);
}

function summary(calls: readonly CallRecord[]): unknown[] {
  return calls.map(({ tried }) => [tried?.kind, tried?.ordinal, tried?.reason]);
}

function request(path: string, options: http.RequestOptions = {}, body?: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const call = http.request(`${origin}${path}`, options, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', reject);
    });
    call.on('error', reject);
    call.end(body);
  });
}

async function failing(response: Promise<{ readonly ok: boolean; readonly status: number }>): Promise<void> {
  const { ok, status } = await response;
  if (!ok) throw new Error(`status ${status}`);
}

const THREE = [
  ['original', 1, undefined],
  ['reexecute', 2, 'error_answer'],
  ['reexecute', 3, 'error_answer'],
];
const THREE_TOLD = [
  'attempt=1, caller=test-service',
  'attempt=2, repeated, caller=test-service',
  'attempt=3, repeated, caller=test-service',
];

const get = (path = '/items/1?page=2') => fetch(`${origin}${path}`);

/** Repeats until three attempts are made, however each library counts. */
const DETECTED: Readonly<Record<string, () => Promise<unknown>>> = {
  'a loop around node:http': async () => {
    while ((await request('/items/1')) !== 200);
  },
  'a loop around fetch that reads no error body': async () => {
    while (!(await get()).ok);
  },
  'p-retry around fetch': () => pRetry(() => failing(get()), { retries: 2, minTimeout: 1 }),
  'cockatiel around fetch': () =>
    retry(handleAll, { maxAttempts: 2, backoff: new ConstantBackoff(1) }).execute(() => failing(get())),
  'axios-retry': () => {
    const client = axios.create({ adapter: 'http', proxy: false });
    axiosRetry(client, { retries: 2, retryDelay: () => 1 });
    return client.get(`${origin}/items/1`);
  },
  'a RetryAgent of undici 7, which hides its count': async () => {
    const dispatcher = new undici7.RetryAgent(new undici7.Agent(), { maxRetries: 2, minTimeout: 1 });
    await (await undici7.request(`${origin}/items/1`, { dispatcher })).body.text();
    await dispatcher.close();
  },
};

describe('three attempts, detected', () => {
  test.each(Object.keys(DETECTED))('%s', async (name) => {
    await run(() => DETECTED[name]?.() ?? Promise.reject());
    expect(summary(watched.calls)).toEqual(THREE);
    expect(owners()).toEqual(['none', 'unknown', 'unknown']);
    expect(told()).toEqual(THREE_TOLD);
  });
});

const gotOptions = { retry: { limit: 2, backoffLimit: 1 } } as const;

/** With the owner that each declares. */
const DECLARED: Readonly<Record<string, readonly [string, () => Promise<unknown>]>> = {
  got: ['got', () => got(`${origin}/items/1?page=2`, gotOptions)],
  'got, that posts JSON': [
    'got',
    () => got.post(`${origin}/items`, { json: { id: 1 }, retry: { ...gotOptions.retry, methods: ['POST'] } }),
  ],
  'a RetryAgent of undici 6': ['undici', () => viaUndici(undici6)],
  'the retry interceptor of undici 8': [
    'undici',
    async () => {
      const dispatcher = new undici8.Agent().compose(
        undici8.interceptors.retry({ maxRetries: 2, minTimeout: 1 }),
      );
      await (await undici8.request(`${origin}/items/1`, { dispatcher })).body.text();
      await dispatcher.close();
    },
  ],
  'the fetch of undici 8 through a RetryAgent': [
    'undici',
    async () => {
      const dispatcher = new undici8.RetryAgent(new undici8.Agent(), { maxRetries: 2, minTimeout: 1 });
      await (await undici8.fetch(`${origin}/items/1`, { dispatcher })).text();
      await dispatcher.close();
    },
  ],
  'an AWS SDK over node:http': [
    'aws_sdk',
    () => asAwsSdk((headers) => request('/', { headers, method: 'POST' }, 'x')),
  ],
  'an AWS SDK over fetch': [
    'aws_sdk',
    () =>
      asAwsSdk(async (headers) => (await fetch(`${origin}/`, { headers, method: 'POST', body: 'x' })).status),
  ],
};

async function viaUndici({ RetryAgent, Agent, request }: typeof undici6): Promise<void> {
  const dispatcher = new RetryAgent(new Agent(), { maxRetries: 2, minTimeout: 1 });
  await (await request(`${origin}/items/1`, { dispatcher })).body.text();
  await dispatcher.close();
}

/** Its header as @smithy/util-retry writes it. */
async function asAwsSdk(send: (headers: Record<string, string>) => Promise<number>): Promise<void> {
  for (let attempt = 1; attempt <= 3; attempt++) {
    if ((await send({ 'amz-sdk-request': `attempt=${attempt}; max=3` })) === 200) return;
  }
}

describe('three attempts, declared', () => {
  test.each(Object.keys(DECLARED))('%s', async (name) => {
    const [owner, make] = DECLARED[name] ?? ['', () => Promise.reject()];
    await run(make);
    expect(summary(watched.calls)).toEqual(THREE);
    expect(owners()).toEqual(['none', owner, owner]);
    expect(told()).toEqual(THREE_TOLD);
  });

  test('AWS: another call with the same path after a failure is an original, for it says so', async () => {
    answer = (_, response) => response.writeHead(503).end();
    const headers = { 'amz-sdk-request': 'attempt=1; max=1' };
    await run(async () => {
      for (let i = 0; i < 3; i++) await request('/', { headers, method: 'POST' }, 'x');
    });
    expect(owners()).toEqual(['none', 'none', 'none']);
  });

  test('R-34: two layers in one process, each with its owner; the ordinal goes on', async () => {
    answer = (_, response) => response.writeHead(503).end();
    const inner = () => got(`${origin}/items/1`, { retry: { limit: 1, backoffLimit: 1 } });
    await run(() => pRetry(inner, { retries: 1, minTimeout: 1 }).catch(() => {}));
    expect(owners()).toEqual(['none', 'got', 'unknown', 'got']);
    expect(watched.calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
  });

  test('R-34: a loop around a RetryAgent, whose first attempt does not say that nobody repeats', async () => {
    answer = (_, response) => response.writeHead(503).end();
    const dispatcher = new undici8.RetryAgent(new undici8.Agent(), { maxRetries: 1, minTimeout: 1 });
    const inner = () => undici8.request(`${origin}/items/1`, { dispatcher });
    await run(async () => {
      await inner().catch(() => {});
      await inner().catch(() => {});
    });
    await dispatcher.close();
    expect(owners()).toEqual(['none', 'undici', 'unknown', 'undici']);
  });

  test('got: a redirect after a repeat is another call and no repeat', async () => {
    answer = (count, response) => {
      if (count === 1) response.writeHead(503).end();
      else if (count === 2) response.writeHead(302, { location: '/after' }).end();
      else response.end('x');
    };
    await run(() => got(`${origin}/items/1`, gotOptions));
    expect(seen.map(({ url }) => url)).toEqual(['/items/1', '/items/1', '/after']);
    expect(owners()).toEqual(['none', 'got', 'none']);
  });
});

test('a handler that throws when it is looked at: the call is recorded, and is no attempt', async () => {
  answer = (_, response) => response.end('x');
  const agent = new undici8.Agent();
  await run(
    () =>
      new Promise<void>((resolve, reject) => {
        const handler = {
          retryOpts: {},
          get retryCount(): number {
            throw new Error('not for you');
          },
          onRequestStart: () => {},
          onResponseStart: () => {},
          onResponseData: () => {},
          onResponseEnd: () => resolve(),
          onResponseError: (_: unknown, error: Error) => reject(error),
        };
        agent.dispatch({ origin, path: '/', method: 'GET' }, handler);
      }),
  );
  await agent.close();
  expect(watched.calls.map(({ succeeded, tried }) => [succeeded, tried])).toEqual([[true, undefined]]);
  expect(watched.t.value('internalErrors')).toBe(1);
  expect(watched.t.value('executing')).toBe(0);
});

describe('no repeats', () => {
  test('a loop over different items, the first of which fails', async () => {
    await run(async () => {
      for (const id of [1, 2, 3]) await request(`/items/${id}`);
      for (const page of [1, 2, 3]) await get(`/items?page=${page}`);
    });
    expect(watched.calls.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1, 1, 1]);
  });

  test('a fan-out of the same call', async () => {
    answer = (_, response) => setTimeout(() => response.writeHead(503).end(), 20);
    await run(() => Promise.all([get(), get(), get(), request('/a'), request('/a')]));
    expect(owners()).toEqual(['none', 'none', 'none', 'none', 'none']);
  });

  test('a poll that succeeds', async () => {
    answer = (_, response) => response.end('x');
    await run(async () => {
      for (let i = 0; i < 3; i++) await request('/status');
    });
    expect(watched.calls.map(({ attempt }) => attempt)).toEqual([1, 1, 1]);
  });

  test('bodies of another length and other idempotency keys', async () => {
    answer = (_, response) => response.writeHead(503).end();
    await run(async () => {
      for (const body of ['a', 'bb']) await fetch(origin, { method: 'POST', body });
      for (const key of ['a', 'b']) {
        await fetch(`${origin}/k`, { method: 'POST', headers: { 'Idempotency-Key': key } });
        await request('/k', { method: 'PUT', headers: { 'Idempotency-Key': key } });
      }
    });
    expect(owners()).toEqual(['none', 'none', 'none', 'none', 'none', 'none']);
  });
});

describe('the kind, from what became of the attempt before', () => {
  test('T-30: a refused connection: a reconnect, with the same ordinal', async () => {
    watched.stop();
    const match = ['127.0.0.1'];
    watched = watchCalls([httpClient, undiciClient], { dependencies: { stock: { match } } });
    answer = (_, response) => response.end('x');
    const refused = async () => {
      const port = new URL(origin).port;
      origin = NOBODY;
      await request('/items/1').catch(() => {});
      await get('/').catch(() => {});
      origin = `http://127.0.0.1:${port}`;
    };
    await run(async () => {
      await refused();
      await refused();
      await request('/items/1');
      await (await get('/')).text();
    });
    for (const client of [0, 1]) {
      expect(summary(watched.calls.filter((_, index) => index % 2 === client))).toEqual([
        ['original', 1, undefined],
        ['reconnect', 1, 'not_sent'],
        ['reconnect', 1, 'not_sent'],
      ]);
    }
    expect(watched.t.value('attempts', { dependency: 'stock', kind: 'original' })).toBe(2);
    expect(watched.t.value('attempts', { dependency: 'stock', kind: 'reconnect' })).toBe(4);
    expect(watched.t.value('attempts')).toBe(6);
    expect(told()).toEqual(['attempt=1, caller=test-service', 'attempt=1, caller=test-service']);
  });

  test.each(['node:http', 'fetch'])('%s: a connection cut before the answer: resend', async (client) => {
    answer = (count, response) => (count === 1 ? response.socket?.destroy() : response.end('x'));
    const make = () => (client === 'fetch' ? get() : request('/items/1'));
    await run(async () => {
      await make().catch(() => {});
      await make();
    });
    expect(summary(watched.calls)).toEqual([
      ['original', 1, undefined],
      ['resend', 2, 'no_answer'],
    ]);
  });

  test.each(['node:http', 'fetch'])('%s: a timeout of the application: resend', async (client) => {
    // As AbortSignal.timeout does it, but not before the request has arrived: a clock would not wait for that.
    const limit = new AbortController();
    answer = (count, response) => {
      if (count === 1) limit.abort(new DOMException('too late', 'TimeoutError'));
      else response.end('x');
    };
    const make = (signal?: AbortSignal) =>
      client === 'fetch' ? fetch(origin, { signal: signal ?? null }) : request('/', signal && { signal });
    await run(async () => {
      await make(limit.signal).catch(() => {});
      await make();
    });
    expect(summary(watched.calls)).toEqual([
      ['original', 1, undefined],
      ['resend', 2, 'timed_out'],
    ]);
  });

  test.each(['node:http', 'fetch'])('%s: throttled: reexecute', async (client) => {
    answer = (count, response) => response.writeHead(count === 1 ? 429 : 200).end();
    const make = () => (client === 'fetch' ? get() : request('/items/1'));
    await run(async () => {
      await make();
      await make();
    });
    expect(summary(watched.calls)).toEqual([
      ['original', 1, undefined],
      ['reexecute', 2, 'throttled'],
    ]);
  });
});

describe('I1: a timeout per attempt', () => {
  test('three attempts of 100 ms; the waits in between are told apart', async () => {
    answer = () => {};
    const calculateDelay = ({ attemptCount }: { attemptCount: number }) => (attemptCount > 2 ? 0 : 150);
    await run(() =>
      got(`${origin}/slow`, { timeout: { request: 100 }, retry: { limit: 2, calculateDelay } }).catch(
        () => {},
      ),
    );
    expect(summary(watched.calls)).toEqual([
      ['original', 1, undefined],
      ['resend', 2, 'timed_out'],
      ['resend', 3, 'timed_out'],
    ]);
    const waits = watched.calls.slice(1).map(({ tried }) => tried?.waitMs ?? 0);
    for (const waitMs of waits) expect(waitMs).toBeGreaterThanOrEqual(145);
    const executing = watched.calls.reduce((sum, call) => sum + (call.endedAt ?? 0) - call.startedAt, 0);
    expect(executing).toBeGreaterThanOrEqual(290);
    const [first, last] = [watched.calls[0], watched.calls[2]];
    const total = (last?.endedAt ?? 0) - (first?.startedAt ?? 0);
    expect(total).toBeCloseTo(executing + waits.reduce((sum, ms) => sum + ms, 0), 3);
  });
});
