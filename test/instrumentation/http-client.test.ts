import { EventEmitter, once } from 'node:events';
import http, { type ClientRequest, type IncomingMessage, type RequestOptions } from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import tls, { type ConnectionOptions } from 'node:tls';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { httpClient } from '../../instrumentation/http-client/http-client.ts';
import { runAsOwnTraffic } from '../../instrumentation/process/own-traffic.ts';
import { runInScope } from '../../src/current.ts';
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

let server: StallServer;
let w: Watched;
let agents: http.Agent[];

beforeAll(() => {
  // Reads the certificates of the system, which takes long and is no matter of these tests.
  tls.createSecureContext();
});

beforeEach(async () => {
  server = await startServer();
  w = watchCalls([httpClient]);
  agents = [];
});

afterEach(async () => {
  for (const agent of agents) agent.destroy();
  await server.close();
  await until(() => w.t.value('executing') === 0, 'the end of all calls');
  expect(w.t.value('internalErrors')).toBe(0);
  w.stop();
});

function agentOf(options: http.AgentOptions = {}): http.Agent {
  const agent = new http.Agent({ keepAlive: true, ...options });
  agents.push(agent);
  return agent;
}

/** Sends a request and reads the whole answer; its error where it fails. */
async function get(path: string, options: RequestOptions = {}, body?: string): Promise<string | Error> {
  const request = http.request({ host: '127.0.0.1', port: server.port, path, agent: false, ...options });
  request.end(body);
  return finished(request);
}

async function finished(request: ClientRequest): Promise<string | Error> {
  try {
    // 'response' always comes with one IncomingMessage.
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    let text = '';
    for await (const chunk of response) text += String(chunk);
    return text;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function only(): CallRecord {
  const [call] = w.calls;
  if (call === undefined || w.calls.length > 1) throw new Error(`${w.calls.length} calls`);
  return call;
}

describe('the phase in which time runs out', () => {
  const budgetMs = 250;

  async function expire(request: () => Promise<unknown>) {
    const { record } = await inRequest(w, budgetMs, request);
    const call = await ended(only());
    expect(call.expiryPhase).toBe(record.ledger.expiry?.phase);
    return call;
  }

  test('F6: a name that nobody resolves expires in dns', async () => {
    const lookup = () => {};
    const call = await expire(() =>
      get('/', { host: 'slow.test', lookup, signal: AbortSignal.timeout(budgetMs) }),
    );
    expect(call.expiryPhase).toBe('dns');
    expect(phases(call)).toEqual(['dns']);
    expect(call.cancelSource).toBe('local_timeout');
    expect(call.dispatchedAt).toBeUndefined();
  });

  test('F7: eight slow names all expire in dns, none in connect', async () => {
    const lookup: net.LookupFunction = (_host, _options, done) =>
      void setTimeout(() => done(null, [{ address: '127.0.0.1', family: 4 }]), 600);
    await inRequest(w, budgetMs, () =>
      Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          get('/', { host: `slow-${i}.test`, lookup, signal: AbortSignal.timeout(budgetMs) }),
        ),
      ),
    );
    expect(w.calls.map((call) => call.expiryPhase)).toEqual(Array(8).fill('dns'));
  });

  test('a peer that does not take the connection: connect', async () => {
    const { port, close } = await startBlackHole();
    const call = await expire(() => get('/', { port, signal: AbortSignal.timeout(budgetMs) }));
    expect(call.expiryPhase).toBe('connect');
    expect(phases(call)).toEqual(['connect']);
    expect(call.dispatchedAt).toBeUndefined();
    await close();
  });

  test('code of an agent of its own that does not come back: connect', async () => {
    class AsyncAgent extends http.Agent {
      override createConnection(
        _options: unknown,
        done?: (error: null, socket: net.Socket) => void,
      ): undefined {
        setTimeout(() => done?.(null, net.connect(server.port, '127.0.0.1')), budgetMs * 2);
      }
    }
    const agent = new AsyncAgent();
    agents.push(agent);
    const { record } = await inRequest(w, budgetMs, async () => {
      void get('/', { agent });
      await sleep(budgetMs + SLACK_MS);
    });
    expect(record.ledger.expiry?.phase).toBe('connect');
    const call = await ended(only());
    expect(call.expiryPhase).toBe('connect');
    expect(call.succeeded).toBe(true);
  });

  test('F9: TCP is there, TLS does not come: tls', async () => {
    const mute = await startMuteServer();
    const request = () => {
      const sent = https.request({
        host: '127.0.0.1',
        port: mute.port,
        agent: false,
        signal: AbortSignal.timeout(budgetMs),
      });
      sent.end();
      return finished(sent);
    };
    const call = await expire(request);
    expect(call.expiryPhase).toBe('tls');
    expect(phases(call)).toEqual(['connect', 'tls']);
    expect(call.dispatchedAt).toBeUndefined();
    await mute.close();
  });

  test('F14a: no answer: request', async () => {
    const call = await expire(() => get('/silent', { signal: AbortSignal.timeout(budgetMs) }));
    expect(call.expiryPhase).toBe('request');
    expect(phases(call)).toEqual(['connect', 'request']);
  });

  test('F14b, T-35: the head in time, then silence: response', async () => {
    const call = await expire(() => get('/head', { signal: AbortSignal.timeout(budgetMs) }));
    expect(call.expiryPhase).toBe('response');
    expect(phases(call)).toEqual(['connect', 'request', 'response']);
    expect(call.cancelSource).toBe('local_timeout');
    expect(call.succeeded).toBe(false);
  });

  test('F1: a call that waits for a socket beyond the deadline: pool_wait, and none of it is the peer', async () => {
    const agent = agentOf({ maxSockets: 1 });
    const first = get('/hold', { agent });
    await until(() => server.seen.length === 1, 'the first request');
    const { record, result } = await inRequest(w, budgetMs, async () => {
      const second = get('/', { agent });
      await sleep(budgetMs + SLACK_MS);
      server.release();
      return second;
    });
    await first;
    expect(record.ledger.expiry?.phase).toBe('pool_wait');
    expect(result).toBe('ok');
    const second = await ended(w.calls[1]);
    expect(second.expiryPhase).toBe('pool_wait');
    expect(phases(second)).toEqual(['pool_wait', 'request', 'response']);
    expect(ms(second, 'pool_wait')).toBeGreaterThanOrEqual(budgetMs);
  });

  test('F1: the timeout option is a limit for silence, not for the call, and ends nothing by itself', async () => {
    const agent = agentOf({ maxSockets: 1 });
    await inRequest(w, 5000, () => Promise.all([1, 2].map(() => get('/200', { agent, timeout: 50 }))));
    expect(w.calls.map((call) => [call.ownTimeoutMs, call.bindingTerm, call.succeeded])).toEqual([
      [undefined, 'remaining_minus_reserve', true],
      [undefined, 'remaining_minus_reserve', true],
    ]);
  });
});

describe('phases of a call that is answered', () => {
  test('F10: a kept-alive socket has no dns, connect or tls, and the phases make up the whole', async () => {
    const agent = agentOf();
    await inRequest(w, undefined, async () => {
      await get('/20', { agent, host: 'localhost' });
      await get('/20', { agent, host: 'localhost' });
    });
    const [fresh, reused] = w.calls;
    if (fresh === undefined || reused === undefined) throw new Error('two calls');
    expect(phases(fresh)).toEqual(['connect', 'request', 'response', 'dns']);
    expect(phases(reused)).toEqual(['request', 'response']);
    for (const call of [fresh, reused]) expect(sumMs(call)).toBeCloseTo(totalMs(call), 6);
  });

  test('F10: the same with an agent of its own that keeps sockets', async () => {
    class OwnAgent extends http.Agent {
      override createConnection(options: net.NetConnectOpts): net.Socket {
        return net.connect(options);
      }
    }
    const agent = new OwnAgent({ keepAlive: true });
    agents.push(agent);
    await inRequest(w, undefined, async () => {
      await get('/', { agent });
      await get('/', { agent });
    });
    expect(w.calls.map(phases)).toEqual([
      ['connect', 'request', 'response'],
      ['request', 'response'],
    ]);
  });

  test('a busy loop before the send is event_loop, not the peer', async () => {
    const agent = agentOf();
    await inRequest(w, undefined, async () => {
      await get('/', { agent });
      const answer = get('/', { agent });
      const until = performance.now() + 60;
      while (performance.now() < until);
      await answer;
    });
    const call = w.calls[1];
    expect(call && phases(call)).toEqual(['request', 'response']);
    expect(call && ms(call, 'event_loop')).toBeGreaterThanOrEqual(55);
  });

  test('what an event may have waited for the loop goes to event_loop', async () => {
    w.stop();
    w = watchCalls([httpClient], {}, { now: () => performance.now(), idleMs: () => 0, waitMs: () => 20 });
    await inRequest(w, undefined, () => get('/60'));
    expect(ms(only(), 'event_loop')).toBeGreaterThanOrEqual(20);
    expect(ms(only(), 'request')).toBeLessThanOrEqual(totalMs(only()) - 20);
  });
});

describe('the header at the send', () => {
  /** What stands on the wire is what was left when the request went out, and is what was recorded. */
  function expectSentAt(call: CallRecord, index: number, notBeforeMs: number): void {
    const seen = server.seen[index];
    const left = call.deadlineAt - (call.dispatchedAt ?? Number.NaN);
    expect(headerValues(seen, 'time-budget')).toHaveLength(1);
    expect(remainingOf(seen)).toBe(Math.floor(left));
    expect(call.handedDownMs).toBe(Math.floor(left));
    expect((call.dispatchedAt ?? Number.NaN) - call.startedAt).toBeGreaterThanOrEqual(notBeforeMs - SLACK_MS);
    // The peer cannot have got more than was left when it saw the request.
    expect(remainingOf(seen)).toBeGreaterThanOrEqual(Math.floor(call.deadlineAt - (seen?.at ?? 0)) - 1);
  }

  test('B-16: after a wait for a socket, what is left then', async () => {
    const agent = agentOf({ maxSockets: 1 });
    await inRequest(w, 5000, () => Promise.all([get('/150', { agent }), get('/', { agent })]));
    const [first, second] = w.calls;
    if (first === undefined || second === undefined) throw new Error('two calls');
    expectSentAt(first, 0, 0);
    expectSentAt(second, 1, 150);
  });

  test('B-16: after a slow name, what is left when the connection stands', async () => {
    const lookup: net.LookupFunction = (_host, _options, done) =>
      void setTimeout(() => done(null, [{ address: '127.0.0.1', family: 4 }]), 150);
    const body = 'x'.repeat(100_000);
    await inRequest(w, 5000, () => get('/', { host: 'slow.test', lookup, method: 'POST' }, body));
    expectSentAt(only(), 0, 150);
    expect(ms(only(), 'dns')).toBeGreaterThanOrEqual(150 - SLACK_MS);
  });

  test('B-16: after a slow TLS handshake, what is left when it is done', async () => {
    const psk = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');
    const psks = { ciphers: 'PSK', maxVersion: 'TLSv1.2' as const };
    const seen: IncomingMessage[] = [];
    const secure = https.createServer({ ...psks, pskCallback: () => psk }, (request, response) => {
      seen.push(request);
      response.end('ok');
    });
    secure.listen(0, '127.0.0.1');
    await once(secure, 'listening');
    const { port } = secure.address() as net.AddressInfo;
    // Hands the first bytes of the handshake on late.
    const slow = net.createServer((socket) => {
      const to = net.connect(port, '127.0.0.1');
      socket.on('error', () => {});
      to.on('error', () => {}).pipe(socket);
      setTimeout(() => socket.pipe(to), 150);
    });
    slow.listen(0, '127.0.0.1');
    await once(slow, 'listening');
    await inRequest(w, 5000, async () => {
      const options: https.RequestOptions & ConnectionOptions = {
        ...psks,
        host: '127.0.0.1',
        port: (slow.address() as net.AddressInfo).port,
        agent: false,
        method: 'POST',
        pskCallback: () => ({ psk, identity: 'test' }),
        checkServerIdentity: () => undefined,
      };
      const request = https.request(options);
      request.end('body');
      expect(await finished(request)).toBe('ok');
    });
    const call = only();
    expect(phases(call)).toEqual(['connect', 'tls', 'request', 'response']);
    expect(ms(call, 'tls')).toBeGreaterThanOrEqual(150 - SLACK_MS);
    const left = call.deadlineAt - (call.dispatchedAt ?? Number.NaN);
    expect(seen[0]?.headers['time-budget']).toBe(
      `remaining=${Math.floor(left)}, attempt=1, caller=test-service`,
    );
    expect((call.dispatchedAt ?? 0) - call.startedAt).toBeGreaterThanOrEqual(150 - SLACK_MS);
    slow.close();
    secure.close();
    secure.closeAllConnections();
  });

  test('B-16: a body that the application begins late sends the head late', async () => {
    const agent = agentOf();
    await inRequest(w, 5000, async () => {
      await get('/', { agent });
      const request = http.request({ host: '127.0.0.1', port: server.port, method: 'POST', agent });
      await sleep(150);
      request.write('a');
      request.end('b');
      await finished(request);
    });
    const call = w.calls[1];
    if (call === undefined) throw new Error('two calls');
    expectSentAt(call, 1, 150);
  });

  const copied = 'remaining=99999, attempt=7';
  const ways: Record<string, RequestOptions> = {
    'an object': { headers: { 'Time-Budget': copied } },
    'an object with Expect': { method: 'POST', headers: { 'TIME-BUDGET': copied, expect: '100-continue' } },
    'a list': { headers: ['Host', 'orders.test', 'Time-Budget', copied] },
    'a list of pairs': {
      // The types know only one form of lists.
      headers: [
        ['Host', 'orders.test'],
        ['time-budget', copied],
      ] as unknown as string[],
    },
  };
  for (const [name, options] of Object.entries(ways)) {
    test(`P-05: exactly one leaves, ours, over a header that was copied with ${name}`, async () => {
      await inRequest(w, 1000, async () => {
        expect(await get('/', options, options.method === 'POST' ? 'body' : undefined)).toBe('ok');
      });
      const values = headerValues(server.seen[0], 'time-budget');
      expect(values).toEqual([`remaining=${only().handedDownMs}, attempt=1, caller=test-service`]);
      expect(only().handedDownMs).toBeLessThan(1000);
    });
  }

  test('P-05: over a header that was set after the socket was there', async () => {
    const agent = agentOf();
    await inRequest(w, 1000, async () => {
      await get('/', { agent });
      const request = http.request({ host: '127.0.0.1', port: server.port, agent });
      await once(request, 'socket');
      request.setHeader('Time-Budget', copied);
      request.end();
      await finished(request);
    });
    expect(headerValues(server.seen[1], 'time-budget')).toEqual([
      `remaining=${w.calls[1]?.handedDownMs}, attempt=1, caller=test-service`,
    ]);
  });

  const propagate = {
    mode: 'propagate',
    dependencies: { orders: { match: ['127.0.0.1'], headers: ['x-request-timeout-ms', 'grpc-timeout'] } },
  } as const;

  test('B8: the limit that the application set itself leaves once, and is the smallest for all', async () => {
    w.stop();
    w = watchCalls([httpClient], propagate);
    await inRequest(w, 800, () => get('/', { headers: { 'X-Request-Timeout-Ms': '300' } }));
    expect(headerValues(server.seen[0], 'x-request-timeout-ms')).toEqual(['300']);
    expect(headerValues(server.seen[0], 'grpc-timeout')).toEqual(['300m']);
    expect(remainingOf(server.seen[0])).toBe(300);
    expect(only()).toMatchObject({ bindingTerm: 'own_timeout', ownTimeoutMs: 300, handedDownMs: 300 });
  });

  test('B8: one that is larger than what is left is lowered, and found to be a reset', async () => {
    w.stop();
    w = watchCalls([httpClient], propagate);
    await inRequest(w, 800, () => get('/', { headers: ['Host', 'a', 'X-Request-Timeout-Ms', '5000'] }));
    expect(headerValues(server.seen[0], 'x-request-timeout-ms')).toEqual([String(only().handedDownMs)]);
    expect(only().handedDownMs).toBeLessThanOrEqual(800);
    expect(only().resetViolation).toBe(true);
    expect(w.t.value('violations', { kind: 'reset' })).toBe(1);
  });

  test('without a budget a foreign limit stays as the application set it', async () => {
    w.stop();
    w = watchCalls([httpClient], propagate);
    await inRequest(w, undefined, () => get('/', { headers: { 'x-request-timeout-ms': '5000' } }));
    expect(headerValues(server.seen[0], 'x-request-timeout-ms')).toEqual(['5000']);
    expect(headerValues(server.seen[0], 'time-budget')).toEqual(['attempt=1, caller=test-service']);
  });

  test('B11: nothing goes to a host that is not listed, and the send is timed all the same', async () => {
    w.stop();
    w = watchCalls([httpClient], { propagation: { hosts: ['*.internal'] } });
    await inRequest(w, 1000, () => get('/'));
    expect(headerValues(server.seen[0], 'time-budget')).toEqual([]);
    expect(only().handedDownMs).toBeUndefined();
    expect(only().dispatchedAt).toBeGreaterThanOrEqual(only().startedAt);
  });
});

describe('how a call ends', () => {
  test('D14: of two linked signals the first one counts', async () => {
    const caller = new AbortController();
    setTimeout(() => caller.abort(), 30);
    await inRequest(w, 5000, async () => {
      await get('/silent', { signal: AbortSignal.any([caller.signal, AbortSignal.timeout(1000)]) });
      await get('/silent', {
        signal: AbortSignal.any([new AbortController().signal, AbortSignal.timeout(30)]),
      });
    });
    expect(w.calls.map((call) => call.cancelSource)).toEqual(['application', 'local_timeout']);
  });

  test("D17: an axios timeout and an axios cancel, by axios's codes", async () => {
    const abort = (path: string, error: Error) => {
      const request = http.request({ host: '127.0.0.1', port: server.port, path, agent: false });
      request.setTimeout(50, () => request.destroy(error));
      request.end();
      return finished(request);
    };
    const timeout = Object.assign(new Error('timeout of 50ms exceeded'), { code: 'ECONNABORTED' });
    const cancel = Object.assign(new Error('canceled'), { name: 'CanceledError', code: 'ERR_CANCELED' });
    await inRequest(w, 5000, async () => {
      await abort('/silent', timeout);
      await abort('/silent', cancel);
    });
    expect(w.calls.map((call) => call.cancelSource)).toEqual(['local_timeout', 'application']);
  });

  test('a socket that was silent for too long is a timeout only if the application gives up at it', async () => {
    const destroyed = (giveUp: (request: ClientRequest) => void) => {
      const request = http.request({ host: '127.0.0.1', port: server.port, path: '/silent', agent: false });
      request.setTimeout(40);
      giveUp(request);
      request.end();
      return finished(request);
    };
    await inRequest(w, 5000, async () => {
      await destroyed((request) => request.on('timeout', () => request.destroy()));
      await destroyed((request) => request.on('timeout', () => request.destroy(new Error('too slow'))));
      await destroyed((request) => {
        request.on('timeout', () => {});
        setTimeout(() => request.destroy(), 100);
      });
    });
    expect(w.calls.map((call) => call.cancelSource)).toEqual([
      'local_timeout',
      'local_timeout',
      'application',
    ]);
  });

  test('a reason of the application without a code is an abort, a refused connection a failure', async () => {
    const request = http.request({ host: '127.0.0.1', port: server.port, path: '/silent', agent: false });
    request.end();
    setTimeout(() => request.destroy(new Error('not needed')), 30);
    await finished(request);
    const free = await startMuteServer();
    await free.close();
    await get('/', { port: free.port });
    expect(w.calls.map((call) => call.cancelSource)).toEqual(['application', undefined]);
    expect(w.calls[1] && phases(w.calls[1])).toEqual(['connect']);
    expect(w.calls.map((call) => call.succeeded)).toEqual([false, false]);
  });

  test('D21: a kept-alive socket that is reset is no cancellation; the phase is request', async () => {
    const agent = agentOf();
    await inRequest(w, 5000, async () => {
      await get('/', { agent });
      expect(await get('/reset', { agent })).toMatchObject({ code: 'ECONNRESET' });
    });
    const call = w.calls[1];
    expect(call && phases(call)).toEqual(['request']);
    expect(call).toMatchObject({ cancelSource: undefined, expiryPhase: undefined, succeeded: false });
  });

  test('a peer that leaves in the middle of the body is a failure', async () => {
    await inRequest(w, 5000, () => get('/half'));
    expect(only()).toMatchObject({ cancelSource: undefined, succeeded: false });
    expect(phases(only())).toEqual(['connect', 'request', 'response']);
  });

  test('a body that the application lets go of is an answer, not a cancelled call', async () => {
    const request = http.get({ host: '127.0.0.1', port: server.port, path: '/head', agent: false });
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    response.destroy();
    const call = await ended(only());
    expect(call).toMatchObject({ succeeded: true, cancelSource: undefined, teaches: false });
  });

  test('the same after the deadline is a cancelled call', async () => {
    const request = runInScope(enter(w, 500), () =>
      http.get({ host: '127.0.0.1', port: server.port, path: '/head', agent: false }),
    );
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    await sleep(510);
    response.destroy();
    const call = await ended(only());
    expect(call).toMatchObject({
      succeeded: false,
      cancelSource: 'inherited_deadline',
      expiryPhase: 'response',
    });
  });

  test('an abort in the queue of the agent ends the call at once, though Node reports it later', async () => {
    const agent = agentOf({ maxSockets: 1 });
    const slow = get('/hold', { agent });
    let reported = false;
    const aborted = get('/', { agent, signal: AbortSignal.timeout(40) }).finally(() => {
      reported = true;
    });
    const call = await ended(w.calls[1]);
    expect(reported).toBe(false);
    expect(call).toMatchObject({ cancelSource: 'local_timeout', expiryPhase: 'pool_wait' });
    expect(phases(call)).toEqual(['pool_wait']);
    server.release();
    await Promise.all([slow, aborted]);
    expect(await get('/', { agent })).toBe('ok');
  });

  test('an upgrade is an answer, and CONNECT is no call', async () => {
    const raw = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', (data) => {
        const isConnect = String(data).startsWith('CONNECT');
        socket.write(
          `HTTP/1.1 ${isConnect ? '200 OK' : '101 Switching'}\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n`,
        );
      });
    });
    raw.listen(0, '127.0.0.1');
    await once(raw, 'listening');
    const { port } = raw.address() as net.AddressInfo;
    const headers = { connection: 'upgrade', upgrade: 'x' };
    const upgrade = http.get({ host: '127.0.0.1', port, agent: false, headers });
    const [, upgraded] = (await once(upgrade, 'upgrade')) as [IncomingMessage, net.Socket];
    expect(await ended(only())).toMatchObject({ succeeded: true });
    const connect = http.request({ host: '127.0.0.1', port, agent: false, method: 'CONNECT', path: 'a:1' });
    connect.end();
    const [, tunnel] = (await once(connect, 'connect')) as [IncomingMessage, net.Socket];
    expect(w.calls).toHaveLength(1);
    upgraded.destroy();
    tunnel.destroy();
    raw.close();
  });

  test('what telemetry sends is no call and gets no header', async () => {
    await inRequest(w, 1000, () => runAsOwnTraffic(() => get('/')));
    expect(w.calls).toHaveLength(0);
    expect(headerValues(server.seen[0], 'time-budget')).toEqual([]);
  });
});

describe('context and life', () => {
  test('J1: two requests over one kept-alive socket, each call with its own budget', async () => {
    const agent = agentOf({ maxSockets: 1 });
    await Promise.all([
      inRequest(w, 2000, () => get('/50', { agent })),
      inRequest(w, 900, () => get('/50', { agent })),
      inRequest(w, undefined, () => get('/50', { agent })),
    ]);
    expect(w.calls.map((call) => call.scope?.request.receivedMs)).toEqual([2000, 900, undefined]);
    expect(server.seen.map((seen) => seen.socket)).toEqual(Array(3).fill(server.seen[0]?.socket));
    expect(remainingOf(server.seen[0])).toBeGreaterThan(900);
    expect(remainingOf(server.seen[1])).toBeLessThanOrEqual(900);
    expect(headerValues(server.seen[2], 'time-budget')).toEqual(['attempt=1, caller=test-service']);
  });

  test('J11: answers that nobody reads end: thrown away by Node, or closed by the peer', async () => {
    const agent = agentOf({ maxSockets: 20 });
    for (let i = 0; i < 500; i++)
      http.get({ host: '127.0.0.1', port: server.port, agent }).on('error', () => {});
    await until(() => w.calls.length === 500 && w.t.value('executing') === 0, 'the end of all calls');
    expect(w.calls.every((call) => call.succeeded && call.teaches)).toBe(true);
    expect(w.t.value('cutOff')).toBe(0);
    const request = http.get({ host: '127.0.0.1', port: server.port, agent }, () => {});
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const call = w.calls[500];
    await sleep(20);
    expect(response.complete).toBe(true);
    expect(call?.endedAt).toBeUndefined();
    server.seen.at(-1)?.socket.destroy();
    expect(await ended(call)).toMatchObject({ succeeded: true, cancelSource: undefined, teaches: false });
  });

  test('E9: a stream that is still read after the caller has left is late work', async () => {
    const record = enter(w, 5000);
    await runInScope(record, async () => {
      const answer = get('/hold');
      await until(() => server.seen.length === 1, 'the request');
      w.t.recorder.cancel(record, 'client_disconnect', w.t.hooks.now());
      w.t.recorder.finish(record, { completed: false, status: 200 }, w.t.hooks.now());
      await sleep(100 + SLACK_MS);
      server.release();
      await answer;
    });
    expect(only().postCancelMs).toBeGreaterThanOrEqual(100);
    expect(w.t.value('postCancelSeconds', { kind: 'http' })).toBeGreaterThanOrEqual(0.1);
    expect(w.t.value('postCancelItems', { kind: 'http', result: 'completed' })).toBe(1);
  });

  test('K1: none of our listeners stays on a signal that many calls share', async () => {
    const { signal } = new AbortController();
    const agent = agentOf({ maxSockets: 10 });
    await inRequest(w, 5000, () =>
      Promise.all(Array.from({ length: 100 }, () => get('/', { agent, signal }))),
    );
    await sleep(10);
    expect(EventEmitter.getEventListeners(signal, 'abort')).toHaveLength(0);
  });

  test('a dependency is named by host and port, kept per address, over both protocols', async () => {
    w.stop();
    w = watchCalls([httpClient], {
      dependencies: { orders: { match: [`127.0.0.1:${server.port}`] }, secure: { match: ['localhost:443'] } },
    });
    await get('/');
    await get('/', { headers: { host: 'elsewhere.test:1' } });
    await get('/', { headers: ['Host', 'elsewhere.test'] });
    const secure = https.request('https://localhost/', { agent: false, lookup: () => {} });
    secure.on('error', () => {});
    secure.destroy();
    // A Host header of its own says nothing about the port that is connected to.
    expect(w.calls.map((call) => call.dependency)).toEqual(['orders', 'address', 'address', 'secure']);
  });
});

describe('observing changes nothing', () => {
  /** Every event of a request and what its server got of it, without our header. */
  async function log(act: (port: number, agent: http.Agent) => ClientRequest): Promise<string[]> {
    const events: string[] = [];
    const raw = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => {
        const text = String(data)
          .replace(/time-budget: [^\r]*\r\n/, '')
          .replace(/:\d{4,5}\r/, '\r');
        events.push(`wire ${text.length} ${text.slice(0, 200)}`);
        if (text.includes('/answer')) socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      });
    });
    raw.listen(0, '127.0.0.1');
    await once(raw, 'listening');
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const request = act((raw.address() as net.AddressInfo).port, agent);
    for (const event of ['socket', 'finish', 'response', 'timeout', 'abort', 'error', 'close', 'drain']) {
      request.on(event, (value: unknown) => {
        events.push(`${event}${value instanceof Error ? ` ${value.message}` : ''}`);
        if (event === 'response') (value as IncomingMessage).resume();
      });
    }
    await new Promise((resolve) => request.on('close', resolve));
    // Bytes may be on their way still.
    await sleep(40);
    agent.destroy();
    raw.close();
    return events;
  }

  const options = (port: number, agent: http.Agent) => ({ host: '127.0.0.1', port, agent, path: '/answer' });
  const acts: Record<string, (port: number, agent: http.Agent) => ClientRequest> = {
    get: (port, agent) => http.get(options(port, agent)),
    'post in one piece': (port, agent) =>
      http.request({ ...options(port, agent), method: 'POST' }).end('body') as ClientRequest,
    'post in pieces': (port, agent) => {
      const request = http.request({ ...options(port, agent), method: 'POST' });
      request.write('one');
      setTimeout(() => request.end('two'), 20);
      return request;
    },
    'abort before the send': (port, agent) => {
      const request = http.get(options(port, agent));
      request.destroy();
      return request;
    },
    'abort while waiting': (port, agent) =>
      http.get({ ...options(port, agent), path: '/silent', signal: AbortSignal.timeout(30) }),
    'old abort': (port, agent) => {
      const request = http.get({ ...options(port, agent), path: '/silent' });
      setTimeout(() => request.abort(), 30);
      return request;
    },
    refused: (_port, agent) => http.get({ ...options(1, agent) }),
  };
  for (const [name, act] of Object.entries(acts)) {
    test(`the same events and the same bytes: ${name}`, async () => {
      const watched = await log(act);
      w.stop();
      const plain = await log(act);
      expect(watched).toEqual(plain);
      expect(plain.length).toBeGreaterThan(0);
    });
  }
});
