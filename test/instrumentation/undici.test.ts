import dns from 'node:dns';
import { EventEmitter, once } from 'node:events';
import http2 from 'node:http2';
import { createRequire } from 'node:module';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import type { buildConnector } from 'undici8';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Undo } from '../../instrumentation/adapter.ts';
import { runAsOwnTraffic } from '../../instrumentation/process/own-traffic.ts';
import { undiciClient, wrapUndici } from '../../instrumentation/undici/undici.ts';
import { runInScope } from '../../src/current.ts';
import { detach } from '../../src/index.ts';
import type { CallRecord } from '../../src/records.ts';
import { until } from '../support/loopback.ts';
import {
  ended,
  enter,
  headerValues,
  inRequest,
  ms,
  phases,
  remainingOf,
  SLACK_MS,
  type StallServer,
  startBlackHole,
  startMuteServer,
  startServer,
  sumMs,
  totalMs,
  type Watched,
  watchCalls,
} from '../support/outgoing.ts';

// The three versions have one shape in what is used here, that of the newest.
type Undici = typeof import('undici8');
const require = createRequire(import.meta.url);
const UNDICI6 = require('undici6') as Undici;
const UNDICI7 = require('undici7') as Undici;
const UNDICI8 = require('undici8') as Undici;

interface Init {
  method?: string;
  body?: string;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  dispatcher?: unknown;
}
type Fetch = (url: string, init?: Init) => Promise<Response>;

interface Library {
  readonly name: string;
  readonly fetch: Fetch;
  /** Dispatchers that its fetch takes. */
  readonly undici: Undici;
}

// Each fetch takes the init that is used here.
const LIBRARIES: readonly Library[] = [
  { name: 'builtin fetch', fetch: fetch as Fetch, undici: UNDICI7 },
  { name: 'undici 6', fetch: UNDICI6.fetch as unknown as Fetch, undici: UNDICI6 },
  { name: 'undici 7', fetch: UNDICI7.fetch as unknown as Fetch, undici: UNDICI7 },
  { name: 'undici 8', fetch: UNDICI8.fetch as unknown as Fetch, undici: UNDICI8 },
];
const PACKAGES = LIBRARIES.filter(({ name }) => name !== 'builtin fetch');

let server: StallServer;
let w: Watched;
let undos: Undo[];
let closers: (() => Promise<unknown>)[];

function watch(
  config: Parameters<typeof watchCalls>[1] = {},
  clock?: Parameters<typeof watchCalls>[2],
): void {
  w = watchCalls([undiciClient], config, clock);
  undos = [UNDICI6, UNDICI7, UNDICI8].map((undici) => wrapUndici(undici, w.t.hooks));
}

function unwatch(): void {
  for (const undo of undos) undo();
  w.stop();
}

beforeEach(async () => {
  server = await startServer();
  closers = [];
  watch();
});

afterEach(async () => {
  for (const close of closers.reverse()) await close();
  await server.close();
  await until(() => w.t.value('executing') === 0, 'the end of all calls');
  expect(w.t.value('internalErrors')).toBe(0);
  unwatch();
  vi.restoreAllMocks();
});

async function read(answer: Promise<Response>): Promise<string | Error> {
  try {
    return await (await answer).text();
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function dispatcher<T extends { destroy(): Promise<void> }>(made: T): T {
  closers.push(() => made.destroy());
  return made;
}

function only(): CallRecord {
  const [call] = w.calls;
  if (call === undefined || w.calls.length > 1) throw new Error(`${w.calls.length} calls`);
  return call;
}

/** What stands on the wire is what was left when the request went out, and is what was recorded. */
function expectSentAt(call: CallRecord | undefined, index: number, notBeforeMs: number): void {
  const seen = server.seen[index];
  if (call === undefined) throw new Error('there is no such call');
  const left = Math.floor(call.deadlineAt - (call.dispatchedAt ?? Number.NaN));
  expect(headerValues(seen, 'time-budget')).toEqual([`remaining=${left}, attempt=1, caller=test-service`]);
  expect(call.handedDownMs).toBe(left);
  expect((call.dispatchedAt ?? Number.NaN) - call.startedAt).toBeGreaterThanOrEqual(notBeforeMs - SLACK_MS);
}

beforeAll(async () => {
  // What the first of a kind costs is no matter of these tests: certificates, and the first request of each library.
  tls.createSecureContext();
  const warm = await startServer();
  for (const library of LIBRARIES)
    await read(library.fetch(`${warm.origin}/`, { method: 'POST', body: 'x' }));
  await warm.close();
});

describe.each(LIBRARIES)('$name', ({ name, fetch, undici }) => {
  const budgetMs = 250;

  describe('the phase in which time runs out', () => {
    /** A request aborted at its deadline, whose call may end only when `release` lets the connection end. */
    async function expire(url: string, release: () => unknown = () => {}) {
      const { record } = await inRequest(w, budgetMs, () =>
        read(fetch(url, { signal: AbortSignal.timeout(budgetMs + 1) })),
      );
      const phase = record.ledger.expiry?.phase;
      // Until there is a connection, or none can be had, a fetch that is aborted goes on underneath.
      expect(only().endedAt === undefined).toBe(only().dispatchedAt === undefined);
      await release();
      const call = await ended(only());
      expect(call.expiryPhase).toBe(phase);
      return call;
    }

    test('F6: a name that nobody resolves expires in dns', async () => {
      let answer = () => {};
      vi.spyOn(dns, 'lookup').mockImplementation(((
        _host: string,
        _options: object,
        done: (e: Error) => void,
      ) => {
        answer = () => done(new Error('gave up'));
      }) as typeof dns.lookup);
      const call = await expire(`http://slow.test:${server.port}/`, () => answer());
      expect(call.expiryPhase).toBe('dns');
      expect(phases(call)).toEqual(['dns']);
      expect(call.dispatchedAt).toBeUndefined();
    });

    test('a peer that does not take the connection: connect', async () => {
      const hole = await startBlackHole();
      const call = await expire(`http://127.0.0.1:${hole.port}/`, hole.close);
      expect(call.expiryPhase).toBe('connect');
      expect(phases(call)).toEqual(['connect']);
    });

    test('F9: TCP is there, TLS does not come: tls', async () => {
      const mute = await startMuteServer();
      const call = await expire(`https://127.0.0.1:${mute.port}/`, mute.close);
      expect(call.expiryPhase).toBe('tls');
      expect(phases(call)).toEqual(['connect', 'tls']);
    });

    test('F14a: no answer: request', async () => {
      const call = await expire(`${server.origin}/silent`);
      expect(call.expiryPhase).toBe('request');
      expect(phases(call)).toEqual(['connect', 'request']);
      expect(call.cancelSource).toBe('local_timeout');
    });

    test('F14b, T-35: the head in time, then silence: response', async () => {
      const call = await expire(`${server.origin}/head`);
      expect(call.expiryPhase).toBe('response');
      expect(phases(call)).toEqual(['connect', 'request', 'response']);
      expect(call).toMatchObject({ cancelSource: 'local_timeout', succeeded: false });
    });

    async function expireInQueue(agent: unknown) {
      const first = read(fetch(`${server.origin}/hold`, { dispatcher: agent }));
      await until(() => server.seen.length === 1, 'the first request');
      const { record } = await inRequest(w, budgetMs, async () => {
        const second = read(fetch(`${server.origin}/`, { dispatcher: agent }));
        await sleep(budgetMs + SLACK_MS);
        server.release();
        expect(await second).toBe('ok');
      });
      await first;
      const second = await ended(w.calls[1]);
      expect(second.scope).toBe(record);
      expect(record.ledger.expiry?.phase).toBe('pool_wait');
      expect(second.expiryPhase).toBe('pool_wait');
      expect(phases(second)).toEqual(['pool_wait', 'request', 'response']);
      expect(ms(second, 'pool_wait')).toBeGreaterThanOrEqual(budgetMs);
      expect(sumMs(second)).toBeCloseTo(totalMs(second), 6);
      // Nothing is left, which is 0 on the wire.
      expect(headerValues(server.seen[1], 'time-budget')).toEqual([
        'remaining=0, attempt=1, caller=test-service',
      ]);
    }

    test('F1: a client with one request at a time: pool_wait, and none of it is the peer', async () => {
      await expireInQueue(dispatcher(new undici.Client(server.origin, { pipelining: 1 })));
    });

    test('F1: a pool of one connection: pool_wait, in the request that made the call', async () => {
      await expireInQueue(dispatcher(new undici.Agent({ connections: 1 })));
    });

    test('C8: a header timeout that fires late: request, a local timeout, with the time that really passed', async () => {
      const agent = dispatcher(new undici.Agent({ headersTimeout: 600 }));
      const { record } = await inRequest(w, 300, () =>
        read(fetch(`${server.origin}/silent`, { dispatcher: agent })),
      );
      expect(record.ledger.expiry?.phase).toBe('request');
      expect(only()).toMatchObject({ expiryPhase: 'request', cancelSource: 'local_timeout' });
      expect(only().ownTimeoutMs).toBeUndefined();
      // Its timers are coarse, and early at times.
      expect(totalMs(only())).toBeGreaterThanOrEqual(300);
      expect(only().remainingAfterMs).toBeLessThanOrEqual(0);
    });
  });

  describe('phases of a call that is answered', () => {
    test('F10: a kept-alive connection has no dns, connect or tls, and the phases make up the whole', async () => {
      const client = dispatcher(new undici.Client(`http://localhost:${server.port}`));
      await inRequest(w, undefined, async () => {
        await read(fetch(`http://localhost:${server.port}/20`, { dispatcher: client }));
        await sleep(5);
        await read(fetch(`http://localhost:${server.port}/20`, { dispatcher: client }));
      });
      const [fresh, reused] = w.calls;
      if (fresh === undefined || reused === undefined) throw new Error('two calls');
      expect(phases(fresh)).toEqual(['connect', 'request', 'response', 'dns']);
      expect(phases(reused)).toEqual(['request', 'response']);
      for (const call of [fresh, reused]) expect(sumMs(call)).toBeCloseTo(totalMs(call), 6);
    });

    test('F10: parallel requests with and without a body, each with the connection that it made', async () => {
      const agent = dispatcher(new undici.Agent());
      await inRequest(w, undefined, () =>
        Promise.all(
          [{}, { method: 'POST', body: 'a' }, {}, { method: 'POST', body: 'b' }].map((init) =>
            read(fetch(`${server.origin}/50`, { ...init, dispatcher: agent })),
          ),
        ),
      );
      expect(w.calls.map(phases)).toEqual(Array(4).fill(['connect', 'request', 'response']));
    });

    test('F12: a redirect is two calls, and the connect of the first is not lost', async () => {
      const agent = dispatcher(new undici.Agent({ connections: 1 }));
      await inRequest(w, undefined, () => read(fetch(`${server.origin}/redirect`, { dispatcher: agent })));
      expect(w.calls).toHaveLength(2);
      await Promise.all(w.calls.map(ended));
      expect(w.calls[0] && phases(w.calls[0])).toEqual(['connect', 'request', 'response']);
      expect(w.calls[1] && phases(w.calls[1])).not.toContain('connect');
      expect(w.calls.map((call) => call.succeeded)).toEqual([true, true]);
    });

    test('a busy loop before the send is event_loop', async () => {
      const client = dispatcher(new undici.Client(server.origin));
      await inRequest(w, undefined, async () => {
        await read(fetch(`${server.origin}/`, { dispatcher: client }));
        await sleep(20);
        const answer = read(fetch(`${server.origin}/`, { dispatcher: client }));
        await Promise.resolve();
        const busyUntil = performance.now() + 60;
        while (performance.now() < busyUntil);
        await answer;
      });
      const call = w.calls[1];
      if (call === undefined) throw new Error('two calls');
      expect(phases(call)).toEqual(['request', 'response']);
      // undici looks at an idle connection for a moment before it uses it, and was kept from it.
      expect(ms(call, 'event_loop')).toBeGreaterThanOrEqual(50);
    });
  });

  describe('the header at the send', () => {
    test('B-16: after a wait in a client, what is left then', async () => {
      const client = dispatcher(new undici.Client(server.origin));
      await inRequest(w, 5000, () =>
        Promise.all([
          read(fetch(`${server.origin}/150`, { dispatcher: client })),
          read(fetch(`${server.origin}/`, { dispatcher: client })),
        ]),
      );
      expectSentAt(w.calls[0], 0, 0);
      expectSentAt(w.calls[1], 1, 150);
    });

    test('B-16: after a slow name, what is left when the connection stands', async () => {
      const lookup = dns.lookup;
      vi.spyOn(dns, 'lookup').mockImplementation(((_host: string, options: object, done: () => void) => {
        setTimeout(() => lookup('127.0.0.1', options, done), 150);
      }) as typeof dns.lookup);
      const agent = dispatcher(new undici.Agent());
      await inRequest(w, 5000, () =>
        read(fetch(`http://slow.test:${server.port}/`, { dispatcher: agent, method: 'POST', body: 'x' })),
      );
      expectSentAt(only(), 0, 150);
      expect(ms(only(), 'dns')).toBeGreaterThanOrEqual(150 - SLACK_MS);
    });

    test('P-05: exactly one leaves, ours, over a header that was copied in any case', async () => {
      const headers = { 'Time-Budget': 'remaining=99999, attempt=7', accept: 'text/plain' };
      await inRequest(w, 1000, () => read(fetch(`${server.origin}/`, { headers })));
      expectSentAt(only(), 0, 0);
      expect(headerValues(server.seen[0], 'accept')).toEqual(['text/plain']);
    });

    const propagate = {
      mode: 'propagate',
      dependencies: { orders: { match: ['127.0.0.1'], headers: ['x-request-timeout-ms', 'grpc-timeout'] } },
    } as const;

    test('B8: the limit that the application set itself leaves once, and is the smallest for all', async () => {
      unwatch();
      watch(propagate);
      const headers = { 'x-request-timeout-ms': '300' };
      await inRequest(w, 800, () => read(fetch(`${server.origin}/`, { headers })));
      expect(headerValues(server.seen[0], 'x-request-timeout-ms')).toEqual(['300']);
      expect(headerValues(server.seen[0], 'grpc-timeout')).toEqual(['300m']);
      expect(remainingOf(server.seen[0])).toBe(300);
      expect(only()).toMatchObject({ bindingTerm: 'own_timeout', ownTimeoutMs: 300, handedDownMs: 300 });
    });

    test('B8: one that is larger than what is left is lowered, and found to be a reset', async () => {
      unwatch();
      watch(propagate);
      const headers = { 'x-request-timeout-ms': '5000' };
      await inRequest(w, 800, () => read(fetch(`${server.origin}/`, { headers })));
      expect(headerValues(server.seen[0], 'x-request-timeout-ms')).toEqual([String(only().handedDownMs)]);
      expect(only().resetViolation).toBe(true);
    });

    test('without a budget a foreign limit stays as the application set it', async () => {
      unwatch();
      watch(propagate);
      const headers = { 'x-request-timeout-ms': '5000' };
      await inRequest(w, undefined, () => read(fetch(`${server.origin}/`, { headers })));
      expect(headerValues(server.seen[0], 'x-request-timeout-ms')).toEqual(['5000']);
      expect(headerValues(server.seen[0], 'time-budget')).toEqual(['attempt=1, caller=test-service']);
    });

    test('B10: none from detached work, and those of other calls to the same peer as ever', async () => {
      await inRequest(w, 1000, async () => {
        await detach(() => read(fetch(`${server.origin}/`)));
        await read(fetch(`${server.origin}/`));
        await detach(() => read(fetch(`${server.origin}/`)));
      });
      expect(server.seen.map((seen) => headerValues(seen, 'time-budget').length)).toEqual([0, 1, 0]);
    });

    test('B11: nothing goes to a host that is not listed, and the send is timed all the same', async () => {
      unwatch();
      watch({ propagation: { hosts: ['*.internal'] } });
      await inRequest(w, 1000, () => read(fetch(`${server.origin}/`)));
      expect(headerValues(server.seen[0], 'time-budget')).toEqual([]);
      expect(only().handedDownMs).toBeUndefined();
      expect(only().dispatchedAt).toBeGreaterThanOrEqual(only().startedAt);
    });
  });

  describe('how a call ends', () => {
    test('D14: of two linked signals the first one counts', async () => {
      const caller = new AbortController();
      setTimeout(() => caller.abort(), 60);
      await inRequest(w, 5000, async () => {
        const first = AbortSignal.any([caller.signal, AbortSignal.timeout(3000)]);
        await read(fetch(`${server.origin}/silent`, { signal: first }));
        const second = AbortSignal.any([new AbortController().signal, AbortSignal.timeout(60)]);
        await read(fetch(`${server.origin}/silent`, { signal: second }));
      });
      expect(w.calls.map((call) => call.cancelSource)).toEqual(['application', 'local_timeout']);
    });

    test('D18: of two raced calls the loser was cancelled by the race, and the winner is none the worse', async () => {
      unwatch();
      // However busy the machine is, the abort comes at once after the answer.
      watch({}, { now: () => performance.now() / 100, waitMs: () => 0, idleMs: () => 0 });
      const loser = new AbortController();
      await inRequest(w, 5000, async () => {
        const slow = read(fetch(`${server.origin}/silent`, { signal: loser.signal }));
        await read(fetch(`${server.origin}/60`));
        loser.abort();
        await slow;
      });
      expect(w.calls.map((call) => [call.succeeded, call.cancelSource])).toEqual([
        [false, 'lost_race'],
        [true, undefined],
      ]);
    });

    test('an abort with a reason of its own is an abort, a refused connection a failure', async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(new Error('not needed')), 50);
      const free = await startMuteServer();
      await free.close();
      await inRequest(w, 5000, async () => {
        await read(fetch(`${server.origin}/silent`, { signal: controller.signal }));
        await read(fetch(`http://127.0.0.1:${free.port}/`));
      });
      expect(w.calls.map((call) => [call.succeeded, call.cancelSource])).toEqual([
        [false, 'application'],
        [false, undefined],
      ]);
      expect(w.calls[1] && phases(w.calls[1])).toEqual(['connect']);
    });

    test('D21: a kept-alive connection that is reset is no cancellation; the phase is request', async () => {
      const client = dispatcher(new undici.Client(server.origin));
      await inRequest(w, 5000, async () => {
        await read(fetch(`${server.origin}/`, { dispatcher: client }));
        await sleep(5);
        expect(await read(fetch(`${server.origin}/reset`, { dispatcher: client }))).toBeInstanceOf(Error);
      });
      const call = w.calls[1];
      expect(call && phases(call)).toEqual(['request']);
      expect(call).toMatchObject({ cancelSource: undefined, expiryPhase: undefined, succeeded: false });
    });

    test('a peer that leaves in the middle of the body is a failure', async () => {
      // Its answer is in pieces, so that leaving is noticed.
      await inRequest(w, 5000, () => read(fetch(`${server.origin}/half`)));
      expect(only()).toMatchObject({ cancelSource: undefined, succeeded: false });
      expect(phases(only())).toEqual(['connect', 'request', 'response']);
    });

    test('a body that is cancelled after a good head is an answer, not a cancelled call', async () => {
      await inRequest(w, 5000, async () => {
        await (await fetch(`${server.origin}/head`)).body?.cancel();
        await (await fetch(`${server.origin}/head`)).body?.cancel('enough');
      });
      for (const call of w.calls) {
        expect(call).toMatchObject({ succeeded: true, cancelSource: undefined, teaches: false });
      }
      expect(w.calls).toHaveLength(2);
      expect(w.t.value('cutOff')).toBe(0);
    });

    test('a body that is cut off by its signal, or cancelled when time is up, is a cancelled call', async () => {
      const controller = new AbortController();
      await inRequest(w, 5000, async () => {
        const answer = await fetch(`${server.origin}/head`, { signal: controller.signal });
        setTimeout(() => controller.abort(), 20);
        await read(Promise.resolve(answer));
      });
      await inRequest(w, 60, async () => {
        const answer = await fetch(`${server.origin}/head`);
        await sleep(70);
        await answer.body?.cancel();
      });
      expect(w.calls.map((call) => [call.succeeded, call.cancelSource])).toEqual([
        [false, 'application'],
        [false, 'inherited_deadline'],
      ]);
    });

    test('an abort in the queue of a pool ends the call, when it would have left', async () => {
      const agent = dispatcher(new undici.Agent({ connections: 1 }));
      await inRequest(w, 5000, async () => {
        const slow = read(fetch(`${server.origin}/hold`, { dispatcher: agent }));
        await until(() => server.seen.length === 1, 'the first request');
        await read(fetch(`${server.origin}/`, { dispatcher: agent, signal: AbortSignal.timeout(40) }));
        expect(w.calls[1]?.endedAt).toBeUndefined();
        server.release();
        await slow;
      });
      const call = await ended(w.calls[1]);
      expect(call.succeeded).toBe(false);
      expect(phases(call)).toEqual(['pool_wait']);
      expect(server.seen).toHaveLength(1);
    });

    test('a pool that is destroyed ends the calls in its queue', async () => {
      const agent = dispatcher(new undici.Agent({ connections: 1 }));
      await inRequest(w, 5000, async () => {
        const answers = [1, 2, 3].map(() => read(fetch(`${server.origin}/silent`, { dispatcher: agent })));
        await until(() => server.seen.length === 1, 'the first request');
        await agent.destroy();
        await Promise.all(answers);
      });
      await Promise.all(w.calls.map(ended));
      expect(w.calls.map((call) => call.succeeded)).toEqual([false, false, false]);
    });

    test('what telemetry sends is no call and gets no header', async () => {
      await inRequest(w, 1000, () => runAsOwnTraffic(() => read(fetch(`${server.origin}/`))));
      expect(w.calls).toHaveLength(0);
      expect(headerValues(server.seen[0], 'time-budget')).toEqual([]);
    });
  });

  describe('context and life', () => {
    test('J1: requests over one kept-alive connection, each call with its own budget', async () => {
      const client = dispatcher(new undici.Client(server.origin));
      const ask = () => read(fetch(`${server.origin}/50`, { dispatcher: client }));
      await Promise.all([inRequest(w, 2000, ask), inRequest(w, 900, ask), inRequest(w, undefined, ask)]);
      expect(w.calls.map((call) => call.scope?.request.receivedMs)).toEqual([2000, 900, undefined]);
      expect(server.seen.map((seen) => seen.socket)).toEqual(Array(3).fill(server.seen[0]?.socket));
      expect(remainingOf(server.seen[0])).toBeGreaterThan(900);
      expect(remainingOf(server.seen[1])).toBeLessThanOrEqual(900);
      expect(headerValues(server.seen[2], 'time-budget')).toEqual(['attempt=1, caller=test-service']);
    });

    test('J11: answers that nobody reads end', async () => {
      const agent = dispatcher(new undici.Agent({ connections: 20 }));
      await Promise.all(
        Array.from({ length: 300 }, () => fetch(`${server.origin}/`, { dispatcher: agent }).then(() => {})),
      );
      await until(() => w.t.value('executing') === 0, 'the end of all calls');
      expect(w.calls).toHaveLength(300);
      expect(w.calls.every((call) => call.succeeded)).toBe(true);
    });

    test('K1: one signal for many calls: no warning by us, and none of our listeners stays', async () => {
      const { signal } = new AbortController();
      const warnings: string[] = [];
      const onWarning = (warning: Error) => warnings.push(warning.name);
      process.on('warning', onWarning);
      const agent = dispatcher(new undici.Agent({ connections: 10 }));
      const ask = () =>
        Promise.all(
          Array.from({ length: 200 }, () => read(fetch(`${server.origin}/`, { dispatcher: agent, signal }))),
        );
      await inRequest(w, 5000, ask);
      await sleep(10);
      const watched = {
        listeners: EventEmitter.getEventListeners(signal, 'abort').length,
        warnings: [...warnings],
      };
      unwatch();
      warnings.length = 0;
      await ask();
      await sleep(10);
      process.off('warning', onWarning);
      expect(watched.warnings).toEqual(warnings);
      // fetch lets its own go when its requests are collected.
      expect(watched.listeners).toBeLessThanOrEqual(200);
    });

    test('E9: a stream that is still read after the caller has left is late work', async () => {
      const record = enter(w, 5000);
      await runInScope(record, async () => {
        const answer = read(fetch(`${server.origin}/hold`));
        await until(() => server.seen.length === 1, 'the request');
        w.t.recorder.cancel(record, 'client_disconnect', w.t.hooks.now());
        w.t.recorder.finish(record, { completed: false, status: 200 }, w.t.hooks.now());
        await sleep(100 + SLACK_MS);
        server.release();
        await answer;
      });
      expect(only().postCancelMs).toBeGreaterThanOrEqual(100);
      expect(w.t.value('postCancelItems', { kind: 'http', result: 'completed' })).toBe(1);
    });
  });

  describe('observing changes nothing', () => {
    type Act = (origin: string, agent: unknown, arrived: Promise<unknown>) => Promise<string | Error>;
    const acts: Record<string, Act> = {
      get: (origin, agent) => read(fetch(`${origin}/answer`, { dispatcher: agent })),
      post: (origin, agent) =>
        read(fetch(`${origin}/answer`, { dispatcher: agent, method: 'POST', body: 'some body' })),
      abort: (origin, agent, arrived) => {
        const controller = new AbortController();
        void arrived.then(() => controller.abort());
        return read(fetch(`${origin}/silent`, { dispatcher: agent, signal: controller.signal }));
      },
      refused: (_origin, agent) => read(fetch('http://127.0.0.1:1/', { dispatcher: agent })),
    };
    for (const [what, act] of Object.entries(acts)) {
      test(`the same bytes and the same outcome: ${what}`, async () => {
        const play = async () => {
          const wire: string[] = [];
          const arrival = Promise.withResolvers<void>();
          const raw = net.createServer((socket) => {
            socket.on('error', () => {});
            socket.on('data', (data) => {
              const text = String(data)
                .replace(/time-budget: [^\r]*\r\n/, '')
                .replace(/host: [^\r]*/, '');
              wire.push(text);
              arrival.resolve();
              if (text.includes('/answer')) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
            });
          });
          raw.listen(0, '127.0.0.1');
          await once(raw, 'listening');
          const agent = new undici.Agent();
          const origin = `http://127.0.0.1:${(raw.address() as net.AddressInfo).port}`;
          const outcome = await act(origin, agent, arrival.promise);
          await agent.destroy();
          raw.close();
          return {
            wire: wire.join(''),
            outcome: String(outcome),
            cause: outcome instanceof Error && outcome.cause,
          };
        };
        const watched = await play();
        unwatch();
        const plain = await play();
        watch();
        expect(watched).toEqual(plain);
      });
    }
    test(`${name} is unwrapped again`, () => {
      const key = (owner: object) =>
        Object.getOwnPropertySymbols(owner).find((s) => s.description === 'dispatch');
      const { prototype } = undici.Client;
      const symbol = key(prototype);
      if (symbol === undefined) throw new Error('no dispatch');
      const wrapped = Reflect.get(prototype, symbol);
      unwatch();
      const plain = Reflect.get(prototype, symbol);
      watch();
      expect(plain).not.toBe(wrapped);
      expect(String(plain)).toContain('new Request(');
    });
  });
});

describe.each(PACKAGES)('$name: what only the package has', ({ name, undici }) => {
  /** Takes a request that is aborted out of its queue, and gives up a connect that nobody needs. */
  const endsAtOnce = name === 'undici 8';

  test('an abort in the queue of a pool: at once where undici takes notice', async () => {
    const pool = dispatcher(new undici.Pool(server.origin, { connections: 1 }));
    const slow = pool.request({ path: '/hold', method: 'GET' }).then(({ body }) => body.text());
    await until(() => server.seen.length === 1, 'the first request');
    await inRequest(w, 5000, () => {
      const signal = AbortSignal.timeout(40);
      const second = pool.request({ path: '/', method: 'GET', signal }).catch(() => {});
      return endsAtOnce ? second : sleep(60);
    });
    expect(w.calls[1]?.endedAt !== undefined).toBe(endsAtOnce);
    server.release();
    await slow;
    const call = await ended(w.calls[1]);
    expect(call).toMatchObject({ succeeded: false, cancelSource: 'local_timeout' });
    expect(phases(call)).toEqual(['pool_wait']);
  });

  test('the body of undici.request: destroyed it is an answer, cut off by its signal it is not', async () => {
    const agent = dispatcher(new undici.Agent());
    const url = `${server.origin}/head`;
    await inRequest(w, 5000, async () => {
      const discarded = await undici.request(url, { dispatcher: agent });
      discarded.body.on('error', () => {});
      discarded.body.destroy();
      const aborted = await undici.request(url, { dispatcher: agent, signal: AbortSignal.timeout(50) });
      await aborted.body.text().catch(() => {});
    });
    await Promise.all(w.calls.map(ended));
    expect(w.calls.map((call) => [call.succeeded, call.cancelSource])).toEqual([
      [true, undefined],
      [false, 'local_timeout'],
    ]);
  });

  test('a retry is a call of its own', async () => {
    const agent = dispatcher(new undici.RetryAgent(new undici.Agent(), { minTimeout: 10, maxRetries: 1 }));
    await inRequest(w, 5000, async () => {
      await undici.request(`${server.origin}/reset`, { dispatcher: agent }).catch(() => {});
    });
    expect(w.calls).toHaveLength(2);
    expect(w.calls.map((call) => call.succeeded)).toEqual([false, false]);
  });

  test('options that are used for many requests at once do not mix up who waits', async () => {
    const pool = dispatcher(new undici.Pool(server.origin, { connections: 1 }));
    const options = { path: '/60', method: 'GET' } as const;
    const ask = () => pool.request(options).then(({ body }) => body.text());
    await Promise.all([inRequest(w, 3000, ask), inRequest(w, 2000, ask), inRequest(w, 1000, ask)]);
    expect(w.calls.map((call) => call.scope?.request.receivedMs)).toEqual([3000, 2000, 1000]);
    const order = [...w.calls].sort((a, b) => (a.dispatchedAt ?? 0) - (b.dispatchedAt ?? 0));
    expect(order).toEqual(w.calls);
    expect(order.map((call) => call.handedDownMs)).toEqual(server.seen.map(remainingOf));
  });

  test('a handler is as it was when its request has left the queue', async () => {
    const pool = dispatcher(new undici.Pool(server.origin, { connections: 1 }));
    const slow = pool.request({ path: '/hold', method: 'GET' }).then(({ body }) => body.text());
    await until(() => server.seen.length === 1, 'the first request');
    const over = Promise.withResolvers<void>();
    // Of both shapes that handlers have had.
    const handler = {
      onConnect: () => {},
      onHeaders: () => true,
      onData: () => true,
      onComplete: () => over.resolve(),
      onError: (error: Error) => over.reject(error),
      ...(name === 'undici 8' && {
        onRequestStart: () => {},
        onResponseStart: () => {},
        onResponseData: () => {},
        onResponseEnd: () => over.resolve(),
        onResponseError: (_controller: unknown, error: Error) => over.reject(error),
      }),
    };
    const before = { ...handler };
    pool.dispatch({ path: '/', method: 'GET' }, handler);
    expect(w.calls[1]?.phase).toBe('pool_wait');
    server.release();
    await over.promise;
    await slow;
    expect(handler).toEqual(before);
    expect(await ended(w.calls[1])).toMatchObject({ succeeded: true });
  });

  test('a limit set on a request that a pool queues is found when it leaves', async () => {
    const pool = dispatcher(new undici.Pool(server.origin, { connections: 1 }));
    const ask = (path: string, headers: Record<string, string>) =>
      pool.request({ path, method: 'GET', headers }).then(({ body }) => body.text());
    await inRequest(w, 1000, () =>
      Promise.all([ask('/60', {}), ask('/', { 'x-request-timeout-ms': '9000' })]),
    );
    expect(w.calls[1]).toMatchObject({ ownTimeoutMs: 9000, resetViolation: true });
  });

  test('an abort while it connects: the phases are right, the end is as late as undici notices it', async () => {
    const mute = await startMuteServer();
    const agent = dispatcher(new undici.Agent({ connect: { timeout: 2000 } }));
    await inRequest(w, 5000, async () => {
      const url = `https://127.0.0.1:${mute.port}/`;
      await undici.request(url, { dispatcher: agent, signal: AbortSignal.timeout(60) }).then(
        () => {},
        () => {},
      );
    });
    if (endsAtOnce) {
      expect(only()).toMatchObject({ cancelSource: 'local_timeout', expiryPhase: 'tls' });
    }
    await mute.close();
    expect(phases(await ended(only()))).toEqual(['connect', 'tls']);
  });

  test('a connector of the application that makes no socket of its own: connect', async () => {
    let done: (error: Error) => void = () => {};
    // Its callback takes an error or a socket.
    const connect = ((_options: object, callback: (error: Error) => void) => {
      done = callback;
    }) as unknown as buildConnector.connector;
    const agent = dispatcher(new undici.Agent({ connect }));
    await inRequest(w, 50, async () => {
      const answer = undici.request(`${server.origin}/`, { dispatcher: agent }).catch(() => {});
      await sleep(60);
      expect(only().phase).toBe('connect');
      done(new Error('no way'));
      await answer;
    });
    expect(only()).toMatchObject({ succeeded: false, cancelSource: undefined, expiryPhase: 'connect' });
  });
});

describe('HTTP/2', () => {
  for (const { name, undici } of [LIBRARIES[2], LIBRARIES[3]].flatMap((library) => library ?? [])) {
    test(`${name}: the header is what is left at the send, over one connection`, async () => {
      const seen: (string | undefined)[] = [];
      const h2 = http2.createServer();
      h2.on('stream', (stream, headers) => {
        seen.push(String(headers['time-budget']));
        setTimeout(() => {
          stream.respond({ ':status': 200 });
          stream.end('ok');
        }, 30);
      });
      h2.listen(0, '127.0.0.1');
      await once(h2, 'listening');
      const origin = `http://127.0.0.1:${(h2.address() as net.AddressInfo).port}`;
      // undici 7 has the options at the top, 8 in a group.
      const options = {
        allowH2: true,
        pipelining: 10,
        useH2c: true,
        ...(name === 'undici 8' ? { h2Options: { useH2c: true } } : {}),
      };
      const client = new undici.Client(origin, options as ConstructorParameters<Undici['Client']>[1]);
      const ask = () => client.request({ path: '/', method: 'GET' }).then(({ body }) => body.text());
      await inRequest(w, 1000, async () => {
        await ask();
        await Promise.all([ask(), ask()]);
      });
      await client.destroy();
      h2.close();
      expect(w.calls).toHaveLength(3);
      await Promise.all(w.calls.map(ended));
      expect(seen).toEqual(
        w.calls.map((call) => `remaining=${call.handedDownMs}, attempt=1, caller=test-service`),
      );
      expect(w.calls.map((call) => call.succeeded)).toEqual([true, true, true]);
      expect(w.calls.slice(1).map(phases)).toEqual(Array(2).fill(['request', 'response']));
    });
  }
});
