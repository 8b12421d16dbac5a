import { once } from 'node:events';
import http, { type RequestListener, type Server, type ServerResponse } from 'node:http';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test } from 'vitest';
import { httpServer } from '../../instrumentation/http-server/http-server.ts';
import { currentScope } from '../../src/current.ts';
import { current, remainingMs } from '../../src/index.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { ask, close, listen, RawClient, until } from '../support/loopback.ts';

let t: TestHooks;
let server: Server;
let port: number;
let arrivals = 0;

async function serve(
  handler: RequestListener,
  options: { config?: ConfigOptions; server?: http.ServerOptions; prepare?: (server: Server) => void } = {},
): Promise<void> {
  t = createTestHooks({ adapters: [httpServer], config: options.config ?? {} });
  arrivals = 0;
  server = http.createServer(options.server ?? {}, (request, response) => {
    arrivals++;
    handler(request, response);
  });
  options.prepare?.(server);
  port = await listen(server);
}

/** The handler has got so many requests, so that whatever comes next comes after. */
async function arrived(count = 1): Promise<void> {
  await until(() => arrivals >= count, `${count} requests`);
}

/** All requests so far have got their one outcome. */
async function ended(count = 1): Promise<void> {
  await until(() => t.value('outcomes') >= count, `${count} ended requests`);
}

afterEach(async () => {
  await close(server);
  t.stop();
  expect(t.value('internalErrors')).toBe(0);
});

describe('budget of a request', () => {
  test('T-01: no limit sent: the default of the service holds, from the arrival on', async () => {
    let left: number | undefined;
    await serve(
      (_request, response) => {
        left = remainingMs();
        response.end(JSON.stringify(current()));
      },
      { config: { entry: { defaultMs: 2000, ceilingMs: 5000 } } },
    );
    const { body } = await ask(port);
    await ended();
    expect(JSON.parse(body)).toMatchObject({ verdict: 'defaulted', effectiveMs: 2000 });
    expect(JSON.parse(body)).not.toHaveProperty('receivedMs');
    expect(left).toBeLessThanOrEqual(2000);
    expect(left).toBeGreaterThan(0);
    expect(t.value('verdicts', { verdict: 'defaulted' })).toBe(1);
    expect(t.histogram('received').count).toBe(0);
  });

  test('T-02: half an hour is clamped to the ceiling, and what was asked for is kept', async () => {
    let left: number | undefined;
    await serve(
      (_request, response) => {
        left = remainingMs();
        response.end(JSON.stringify(current()));
      },
      { config: { entry: { ceilingMs: 5000 } } },
    );
    const { body } = await ask(port, { headers: { 'x-request-timeout-ms': '1800000' } });
    await ended();
    expect(JSON.parse(body)).toMatchObject({
      verdict: 'clamped_high',
      receivedMs: 1_800_000,
      effectiveMs: 5000,
    });
    expect(left).toBeLessThanOrEqual(5000);
    expect(t.histogram('received')).toEqual({ count: 1, sum: 1800 });
    expect(t.value('verdicts', { verdict: 'clamped_high' })).toBe(1);
  });

  test('no limit and no default: counted as absent, useful, and nothing of time left is claimed', async () => {
    await serve((_request, response) => response.end('ok'));
    await ask(port);
    await ended();
    expect(t.value('verdicts', { verdict: 'absent' })).toBe(1);
    expect(t.value('outcomes', { outcome: 'useful', operation: 'unmatched' })).toBe(1);
    expect(t.histogram('remaining').count).toBe(0);
    expect(t.histogram('processing').count).toBe(1);
  });

  test('A12: a header sent twice: the smallest counts', async () => {
    await serve((_request, response) => response.end(String(current()?.effectiveMs)));
    const client = await RawClient.connect(port);
    client.socket.write(
      'GET / HTTP/1.1\r\nhost: x\r\nx-request-timeout-ms: 500\r\nx-request-timeout-ms: 200\r\nconnection: close\r\n\r\n',
    );
    await once(client.socket, 'close');
    expect(client.text).toMatch(/\r\n\r\n200$/);
    expect(t.value('headerInvalid', { reason: 'repeated' })).toBe(1);
  });

  test('a configured route is found by the path without its query, and counted at once', async () => {
    let offered: number | undefined;
    await serve(
      (_request, response) => {
        offered = t.value('offered', { operation: 'get order' });
        response.end();
      },
      { config: { routes: [{ path: '/orders/*', operation: 'get order' }] } },
    );
    await ask(port, { path: '/orders/7?expand=/lines' });
    await ended();
    expect(offered).toBe(1);
    expect(t.value('outcomes', { operation: 'get order', outcome: 'useful' })).toBe(1);
  });

  test('late and expired are told apart by the answer', async () => {
    await serve(async (request, response) => {
      await sleep(60);
      response.statusCode = request.url === '/504' ? 504 : 200;
      response.end();
    });
    const headers = { 'x-request-timeout-ms': '50' };
    await ask(port, { headers });
    await ask(port, { headers, path: '/504' });
    await ended(2);
    expect(t.value('outcomes', { outcome: 'late' })).toBe(1);
    expect(t.value('outcomes', { outcome: 'expired' })).toBe(1);
    expect(t.value('expiries', { dependency: 'none', phase: 'local' })).toBe(2);
    expect(t.histogram('overrun').count).toBe(2);
  });
});

describe('which request the running code belongs to', () => {
  test('J1: requests over one kept-alive connection each have their own', async () => {
    await serve(async (_request, response) => {
      const before = current()?.receivedMs;
      await sleep(1);
      response.end(`${before} ${current()?.receivedMs}`);
    });
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const bodies: string[] = [];
    for (const ms of ['100000', '200000', undefined, '300000']) {
      const headers: Record<string, string> = ms === undefined ? {} : { 'x-request-timeout-ms': ms };
      bodies.push((await ask(port, { agent, headers })).body);
    }
    agent.destroy();
    expect(bodies).toEqual(['100000 100000', '200000 200000', 'undefined undefined', '300000 300000']);
  });

  test('J1: pipelined requests answered out of turn each have their own', async () => {
    await serve(async (request, response) => {
      await sleep(request.url === '/slow' ? 60 : 5);
      response.end(`<${current()?.receivedMs}>`);
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/slow', { 'x-request-timeout-ms': '70001' });
    client.send('GET', '/fast', { 'x-request-timeout-ms': '70002' });
    await client.see('<70002>');
    await ended(2);
    expect(client.text.indexOf('<70001>')).toBeLessThan(client.text.indexOf('<70002>'));
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(2);
    client.socket.destroy();
  });

  test('D1: listeners on a body that arrives in pieces, over one connection', async () => {
    const seen: (number | undefined)[] = [];
    await serve((request, response) => {
      request.on('data', () => seen.push(current()?.receivedMs));
      request.on('end', () => {
        seen.push(current()?.receivedMs);
        response.end('done');
      });
    });
    const client = await RawClient.connect(port);
    for (const ms of [60_001, 60_002]) {
      client.send('POST', '/', { 'content-length': '6', 'x-request-timeout-ms': String(ms) }, 'abc');
      await until(() => seen.includes(ms), 'the first piece');
      client.socket.write('def');
      await ended(ms - 60_000);
    }
    expect(seen).toEqual([60_001, 60_001, 60_001, 60_002, 60_002, 60_002]);
    client.socket.destroy();
  });

  test('once stopped, a connection that is still open carries nothing over', async () => {
    await serve((_request, response) => response.end(String(current()?.receivedMs)));
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const headers = { 'x-request-timeout-ms': '100000' };
    expect((await ask(port, { agent, headers })).body).toBe('100000');
    t.stop();
    expect(server.listenerCount('request')).toBe(1);
    expect((await ask(port, { agent, headers })).body).toBe('undefined');
    expect(t.value('outcomes')).toBe(1);
    agent.destroy();
  });
});

describe('D: who cancelled', () => {
  test('D1: a body read to its end is no cancel, although the request closes long before the reply', async () => {
    let requestClosedAt = 0;
    let repliedAt = 0;
    await serve((request, response) => {
      request.on('close', () => {
        requestClosedAt = performance.now();
      });
      request.resume();
      setTimeout(() => {
        repliedAt = performance.now();
        response.end('ok');
      }, 150);
    });
    const reply = await ask(port, { method: 'POST', body: '{"a":1}' });
    await ended();
    expect(reply.body).toBe('ok');
    expect(requestClosedAt).toBeLessThan(repliedAt);
    expect(t.value('cancellations')).toBe(0);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    expect(t.histogram('processing').sum).toBeGreaterThan(0.14);
  });

  const leaving = {
    'a FIN': (client: RawClient) => client.socket.end(),
    'a close': (client: RawClient) => client.socket.destroy(),
    'a reset': (client: RawClient) => client.socket.resetAndDestroy(),
  };
  test.each(Object.entries(leaving))(
    'D4: %s while the handler works, its reply 90 ms later: cancelled, once, and 90 ms for nobody',
    async (_, leave) => {
      await serve(async (_request, response) => {
        await ended();
        await sleep(90);
        response.end('too late');
      });
      const client = await RawClient.connect(port);
      client.send('GET', '/');
      await arrived();
      leave(client);
      await ended();
      expect(t.value('postCancelItems')).toBe(0);
      await until(() => t.value('postCancelItems') > 0, 'the useless reply');
      expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
      expect(t.value('outcomes')).toBe(1);
      expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(1);
      expect(t.value('cancellations')).toBe(1);
      expect(t.value('postCancelItems', { kind: 'handler', result: 'completed' })).toBe(1);
      const workedS = t.value('postCancelSeconds', { dependency: 'none', kind: 'handler', intended: 'no' });
      expect(workedS).toBeGreaterThan(0.088);
      expect(workedS).toBeLessThan(5);
    },
  );

  test('during a stream, with part of a body, and behind another pipelined request', async () => {
    await serve((request, response) => {
      request.resume();
      request.on('error', () => {});
      if (request.url === '/stream') {
        const timer = setInterval(() => response.write('x'), 5);
        response.on('close', () => clearInterval(timer));
      }
      if (request.url === '/quick') response.end('waits for its turn');
    });
    let atLeast = 1;
    for (const send of [
      (client: RawClient) => client.send('GET', '/stream'),
      (client: RawClient) => client.send('POST', '/', { 'content-length': '10' }, 'abc'),
      (client: RawClient) => {
        client.send('GET', '/never');
        client.send('GET', '/quick');
      },
    ]) {
      const client = await RawClient.connect(port);
      send(client);
      await arrived(atLeast);
      atLeast += 1;
      client.socket.destroy();
    }
    await ended(4);
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(4);
    expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(4);
    // None of them worked on: the streams stopped, and the quick one had replied before.
    expect(t.value('postCancelItems')).toBe(0);
  });

  test('given up on before its turn: it is over, and the connection and who had the turn go on', async () => {
    const waiting: ServerResponse[] = [];
    await serve((_request, response) => void waiting.push(response));
    const client = await RawClient.connect(port);
    client.send('GET', '/first');
    client.send('GET', '/second');
    await arrived(2);
    waiting[1]?.destroy();
    await ended(1);
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
    waiting[0]?.end('first');
    await ended(2);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    await client.see('first');
    client.socket.destroy();
  });

  test('given up on before its turn, right after the one before was answered: over at once as well', async () => {
    await serve((request, response) => {
      if (request.url === '/first') response.end('first');
      else response.destroy();
    });
    const client = await RawClient.connect(port);
    client.socket.write('GET /first HTTP/1.1\r\nhost: x\r\n\r\nGET /second HTTP/1.1\r\nhost: x\r\n\r\n');
    await ended(2);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
    expect(client.socket.destroyed).toBe(false);
    client.socket.destroy();
  });

  test('a handler that stops when it hears of the end has not worked after it', async () => {
    await serve((request, response) => {
      request.on('error', () => {});
      request.on('aborted', () => response.writeHead(499).end());
      request.resume();
    });
    const client = await RawClient.connect(port);
    client.send('POST', '/', { 'content-length': '10' }, 'abc');
    await arrived();
    client.socket.destroy();
    await ended();
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
    expect(t.value('postCancelItems')).toBe(0);
  });

  test('listeners that somebody takes off a connection and a response keep no later request from its end', async () => {
    await serve((request, response) => {
      if (request.url === '/hang') return;
      request.socket.removeAllListeners('close');
      response.removeAllListeners('prefinish');
      response.end('bare');
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await client.see('bare');
    client.send('GET', '/hang');
    await ended(1);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    await arrived(2);
    client.socket.destroy();
    await ended(2);
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
  });

  test('a reply that did not get through: ended by the handler, reset by the client', async () => {
    await serve((_request, response) => response.end(Buffer.alloc(20_000_000)));
    const client = await RawClient.connect(port);
    client.socket.pause();
    client.send('GET', '/');
    await arrived();
    await sleep(20);
    client.socket.resetAndDestroy();
    await ended();
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
    expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(1);
    expect(t.value('postCancelSeconds')).toBe(0);
  });

  test('a large reply that the client does read is complete when all of it is with the kernel', async () => {
    await serve((_request, response) => response.end(Buffer.alloc(20_000_000)), {
      config: { entry: { defaultMs: 60_000 } },
    });
    const client = await RawClient.connect(port);
    client.socket.pause();
    client.send('GET', '/');
    await sleep(50);
    expect(t.value('outcomes')).toBe(0);
    client.socket.resume();
    await ended();
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    expect(t.histogram('usefulDuration').sum).toBeGreaterThan(0.04);
    client.socket.destroy();
  });

  test('C-05: one of our own services that leaves early is an upstream cancel', async () => {
    await serve(() => {}, { config: { entry: { trust: 'all' } } });
    const client = await RawClient.connect(port);
    client.send('GET', '/', { 'time-budget': 'remaining=60000' });
    await arrived();
    client.socket.destroy();
    await ended();
    expect(t.value('cancellations', { source: 'upstream_cancel' })).toBe(1);
  });

  test('C-05: a caller that leaves at the deadline it handed down: expired, not a disconnect', async () => {
    await serve(() => {});
    const client = await RawClient.connect(port);
    client.send('GET', '/', { 'x-request-timeout-ms': '50' });
    await arrived();
    await sleep(60);
    client.socket.destroy();
    await ended();
    expect(t.value('outcomes', { outcome: 'expired' })).toBe(1);
    expect(t.value('cancellations', { source: 'inherited_deadline' })).toBe(1);
  });

  test('D20: 20 requests in flight when the server shuts down', async () => {
    await serve(() => {}, { config: { entry: { defaultMs: 60_000 } } });
    const clients = await Promise.all(Array.from({ length: 20 }, () => RawClient.connect(port)));
    for (const client of clients) client.send('GET', '/');
    await arrived(20);
    await close(server);
    await ended(20);
    expect(t.value('cancellations', { source: 'shutdown' })).toBe(20);
    expect(t.value('cancellations')).toBe(20);
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(20);
    expect(t.value('expiries')).toBe(0);
  });

  test('D20: a client that leaves while the server shuts down is still a client', async () => {
    await serve(() => {});
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await arrived();
    server.close();
    client.socket.destroy();
    await ended();
    expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(1);
  });

  test.each([
    ['response.destroy()', (_: http.IncomingMessage, response: http.ServerResponse) => response.destroy()],
    ['request.destroy()', (request: http.IncomingMessage) => request.destroy()],
    ['socket.destroy()', (request: http.IncomingMessage) => request.socket.destroy()],
    [
      'response.destroy() and an end',
      (_: http.IncomingMessage, response: http.ServerResponse) => response.destroy().end('x'),
    ],
    [
      'response.destroy() under an idle limit',
      (_: http.IncomingMessage, response: http.ServerResponse) => response.setTimeout(5000).destroy(),
    ],
  ])('the handler gives up by %s: the application did it', async (_, giveUp) => {
    await serve((request, response) => {
      request.on('error', () => {});
      setTimeout(() => giveUp(request, response), 10);
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await ended();
    expect(t.value('cancellations', { source: 'application' })).toBe(1);
    expect(t.value('cancellations')).toBe(1);
  });
});

describe('limits of the server itself', () => {
  test('server.timeout closed the connection: a local timeout', async () => {
    await serve(() => {}, {
      prepare: (made) => {
        made.timeout = 50;
      },
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await ended();
    expect(t.value('cancellations', { source: 'local_timeout' })).toBe(1);
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
  });

  test('an idle limit that the handler set closed it: a local timeout', async () => {
    await serve((_request, response) => {
      response.setTimeout(50);
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await ended();
    expect(t.value('cancellations', { source: 'local_timeout' })).toBe(1);
  });

  test('a limit that is answered is an answer; a client that leaves under a limit is a client', async () => {
    await serve(
      (request, response) => {
        if (request.url === '/') response.setTimeout(30, () => response.writeHead(503).end());
      },
      {
        prepare: (made) => {
          made.timeout = 5000;
        },
      },
    );
    expect((await ask(port)).status).toBe(503);
    await ended();
    expect(t.value('outcomes', { outcome: 'failed' })).toBe(1);
    expect(t.value('cancellations')).toBe(0);
    const client = await RawClient.connect(port);
    client.send('GET', '/hang');
    await arrived(2);
    client.socket.destroy();
    await ended(2);
    expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(1);
  });

  const upload = { requestTimeout: 200, headersTimeout: 200, connectionsCheckingInterval: 20 };
  const answering = {
    'Node answers 408': () => {},
    'the application answers 408': (made: Server) =>
      made.on('clientError', (_error, socket) =>
        socket.end('HTTP/1.1 408 Too slow\r\nconnection: close\r\n\r\n'),
      ),
    'the application destroys the socket': (made: Server) =>
      made.on('clientError', (_error, socket) => socket.destroy()),
  };
  test.each(Object.entries(answering))(
    'L2: an upload slower than requestTimeout allows, %s',
    async (_, prepare) => {
      let left: number | undefined;
      await serve(
        (request) => {
          request.on('error', () => {});
          request.on('close', () => {
            left = remainingMs();
          });
          request.resume();
        },
        { server: upload, prepare },
      );
      const client = await RawClient.connect(port);
      client.send('POST', '/', { 'content-length': '1000', 'x-request-timeout-ms': '60000' }, 'abc');
      await ended();
      expect(t.value('cancellations', { source: 'local_timeout' })).toBe(1);
      expect(t.value('cancellations')).toBe(1);
      expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
      expect(t.value('expiries')).toBe(0);
      expect(left ?? 60_000).toBeGreaterThan(50_000);
      client.socket.destroy();
    },
  );

  test('L2: a client that leaves long after its request has arrived has left', async () => {
    await serve(() => {}, { server: upload, prepare: (made) => made.on('clientError', () => {}) });
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await arrived();
    await sleep(250);
    client.socket.destroy();
    await ended();
    expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(1);
  });

  test('L2: a client that gives up its upload before the limit has left', async () => {
    await serve((request) => request.on('error', () => {}).resume(), {
      server: { ...upload, requestTimeout: 60_000, headersTimeout: 60_000 },
      prepare: (made) => made.on('clientError', (_error, socket) => socket.destroy()),
    });
    const client = await RawClient.connect(port);
    client.send('POST', '/', { 'content-length': '1000' }, 'abc');
    await arrived();
    client.socket.destroy();
    await ended();
    expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(1);
  });
});

describe('when a request is over', () => {
  test('E6: what the handler does after its reply is not part of the request', async () => {
    let after: number | undefined;
    await serve((_request, response) => {
      response.end('answered');
      const until = performance.now() + 300;
      while (performance.now() < until);
      after = t.value('outcomes', { outcome: 'useful' });
    });
    await ask(port, { headers: { 'x-request-timeout-ms': '300' } });
    await ended();
    expect(after).toBe(1);
    expect(t.histogram('processing').sum).toBeLessThan(0.3);
    expect(t.value('postCancelItems')).toBe(0);
  });

  test('E5: the handler ignores a deadline of 100 and replies at 300: 200 ms for nobody, no disconnect', async () => {
    await serve(async (_request, response) => {
      await sleep(300);
      response.end();
    });
    await ask(port, { headers: { 'x-request-timeout-ms': '100' } });
    await ended();
    expect(t.value('outcomes', { outcome: 'late' })).toBe(1);
    expect(t.value('cancellations')).toBe(0);
    const workedS = t.value('postCancelSeconds', { dependency: 'none', kind: 'handler', intended: 'no' });
    expect(workedS).toBeGreaterThanOrEqual(0.195);
    expect(workedS).toBeCloseTo(t.histogram('overrun').sum, 3);
  });

  test('L1: an event stream without a budget does not expire, and is over when the client leaves', async () => {
    await serve((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      const timer = setInterval(() => response.write('data: x\n\n'), 10);
      response.on('close', () => clearInterval(timer));
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await client.see('data: x');
    await sleep(100);
    expect(t.value('outcomes')).toBe(0);
    client.socket.destroy();
    await ended();
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
    expect(t.value('expiries')).toBe(0);
    expect(t.histogram('remaining').count).toBe(0);
    expect(t.histogram('callDuration').count).toBe(0);
    expect(t.histogram('usefulDuration').count).toBe(0);
  });

  test('HEAD, an informational answer before the answer, and a reply without a body', async () => {
    await serve((request, response) => {
      if (request.url === '/early') response.writeEarlyHints({ link: '</style.css>; rel=preload' });
      if (request.url === '/empty') response.writeHead(204);
      response.end(request.url === '/empty' ? undefined : 'body');
    });
    expect((await ask(port, { method: 'HEAD' })).body).toBe('');
    expect((await ask(port, { path: '/early' })).body).toBe('body');
    expect((await ask(port, { path: '/empty' })).status).toBe(204);
    await ended(3);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(3);
  });

  test.each([false, true])('100-continue, with a checkContinue listener: %s', async (listens) => {
    const handler: RequestListener = (request, response) => {
      request.on('end', () => response.end(String(current()?.receivedMs))).resume();
    };
    await serve(handler, {
      prepare: (made) => {
        if (!listens) return;
        made.on('checkContinue', (request, response) => {
          response.writeContinue();
          handler(request, response);
        });
      },
    });
    const client = await RawClient.connect(port);
    client.send('POST', '/', {
      expect: '100-continue',
      'content-length': '3',
      'x-request-timeout-ms': '9000',
    });
    await client.see('100 Continue');
    expect(t.value('outcomes')).toBe(0);
    client.socket.write('abc');
    await client.see('9000');
    await ended();
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    client.socket.destroy();
  });

  test('what Node answers itself is counted: no Host, an expectation it does not know, one request too many', async () => {
    await serve((_request, response) => response.end('ok'), {
      prepare: (made) => {
        made.maxRequestsPerSocket = 1;
      },
    });
    for (const [text, ...statuses] of [
      ['GET / HTTP/1.1\r\n\r\n', '400'],
      ['GET / HTTP/1.1\r\nhost: x\r\nexpect: more\r\n\r\n', '417'],
      ['GET / HTTP/1.1\r\nhost: x\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n', '200', '503'],
    ] as const) {
      const client = await RawClient.connect(port);
      client.socket.write(text);
      for (const status of statuses) await client.see(`HTTP/1.1 ${status}`);
      client.socket.destroy();
    }
    await ended(4);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(3);
    expect(t.value('outcomes', { outcome: 'failed' })).toBe(1);
  });

  test('over a connection that a proxy or a test made itself, without a listening socket', async () => {
    await serve((_request, response) => response.end(String(current()?.receivedMs)));
    const inner = http.createServer((_request, response) => response.end(`inner ${current()?.receivedMs}`));
    const tcp = net.createServer((socket) => inner.emit('connection', socket));
    const innerPort = await listen(tcp);
    const { body } = await ask(innerPort, { headers: { 'x-request-timeout-ms': '777000' } });
    expect(body).toBe('inner 777000');
    await ended();
    inner.closeAllConnections();
    tcp.close();
  });

  test('an upgrade and CONNECT are no requests; an upgrade that nobody listens for is one', async () => {
    const upgrade = { connection: 'upgrade', upgrade: 'websocket' };
    await serve((_request, response) => response.end('plain'));
    const plain = await RawClient.connect(port);
    plain.send('GET', '/', upgrade);
    await plain.see('plain');
    await ended(1);
    plain.socket.destroy();
    server.on('upgrade', (_request, socket) => socket.end('HTTP/1.1 101 Switching Protocols\r\n\r\n'));
    server.on('connect', (_request, socket) => socket.end('HTTP/1.1 200 Connected\r\n\r\n'));
    for (const [method, headers, text] of [
      ['GET', upgrade, '101'],
      ['CONNECT', {}, '200 Connected'],
    ] as const) {
      const client = await RawClient.connect(port);
      client.send(method, method === 'GET' ? '/' : 'x:1', headers);
      await client.see(text);
      client.socket.destroy();
    }
    await sleep(20);
    expect(t.value('outcomes')).toBe(1);
    expect(t.value('offered')).toBe(1);
  });
});

describe('K: what we leave behind', () => {
  test('no listener grows over one connection, none is an error listener, none stays after the end', async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error) => warnings.push(warning);
    process.on('warning', onWarning);
    const counts = new Set<string>();
    await serve(
      (request, response) => {
        const { socket } = request;
        counts.add(
          JSON.stringify({
            server: server.listenerCount('request'),
            socket: socket.eventNames().map((name) => [String(name), socket.listenerCount(name)]),
            request: request.eventNames().map(String),
            response: response.eventNames().map((name) => [String(name), response.listenerCount(name)]),
          }),
        );
        response.end();
      },
      {
        prepare: (made) => {
          made.timeout = 60_000;
        },
      },
    );
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    await ask(port, { agent });
    counts.clear();
    for (let i = 0; i < 50; i++) await ask(port, { agent });
    await ended(51);
    agent.destroy();
    process.off('warning', onWarning);
    expect(warnings).toEqual([]);
    const [only = '', ...others] = counts;
    expect(others).toEqual([]);
    expect(JSON.parse(only)).toMatchObject({
      server: 1,
      request: [],
      response: [
        ['prefinish', 1],
        ['finish', 1],
      ],
    });
    // Ours, Node's, and Node's for the response that has the socket.
    expect(JSON.parse(only).socket).toContainEqual(['close', 3]);
    expect(JSON.parse(only).socket).toContainEqual(['timeout', 2]);
    t.stop();
    expect(server.listenerCount('request')).toBe(1);
  });

  test('a state that outlives its request keeps neither request nor response', async () => {
    const collect = exposeGc();
    let record: unknown;
    let request: WeakRef<object> | undefined;
    let response: WeakRef<object> | undefined;
    await serve((incoming, outgoing) => {
      record = currentScope();
      request = new WeakRef(incoming);
      response = new WeakRef(outgoing);
      if (arrivals === 1) setTimeout(() => outgoing.end(), 5);
    });
    for (const leave of [false, true]) {
      const client = await RawClient.connect(port);
      client.send('GET', '/', { connection: 'close' });
      if (leave) {
        await arrived(2);
        client.socket.destroy();
      }
      await ended(leave ? 2 : 1);
      client.socket.destroy();
      await until(() => {
        collect();
        return request?.deref() === undefined && response?.deref() === undefined;
      }, 'the end of request and response');
    }
    expect(record).toMatchObject({ outcome: 'cancelled' });
  });

  test('E10: the client leaves at 60 while the handler sleeps: over at 60, and later replies change nothing', async () => {
    let wake: () => void = () => {};
    let result: unknown;
    let isSame = false;
    await serve(async (_request, response) => {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      result = response.end('x', 'utf8');
      isSame = result === response && !Object.hasOwn(response, 'end');
      response.end();
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await arrived();
    await sleep(60);
    client.socket.destroy();
    await ended();
    expect(t.histogram('processing').count).toBe(1);
    wake();
    await until(() => isSame, 'the late reply');
    expect(t.value('postCancelItems')).toBe(1);
    expect(t.value('outcomes')).toBe(1);
  });

  test('a late reply goes to the method it would have gone to, with the same this, arguments and result', async () => {
    const calls: unknown[][] = [];
    let response: http.ServerResponse | undefined;
    await serve((_request, outgoing) => {
      response = outgoing;
      const own = function (this: unknown, ...args: unknown[]) {
        calls.push([this, ...args]);
        return 'own' as unknown as http.ServerResponse;
      };
      outgoing.end = own;
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await until(() => response !== undefined, 'the request');
    const own = response?.end;
    client.socket.destroy();
    await ended();
    expect(response?.end).not.toBe(own);
    expect(response?.end.length).toBe(own?.length);
    expect(response?.end('a', 'latin1')).toBe('own');
    expect(response?.end).toBe(own);
    expect(response?.end('b')).toBe('own');
    expect(calls).toEqual([
      [response, 'a', 'latin1'],
      [response, 'b'],
    ]);
    expect(t.value('postCancelItems')).toBe(1);
  });
});

function exposeGc(): () => void {
  setFlagsFromString('--expose-gc');
  // `gc` is what the flag adds to a new context.
  return runInNewContext('gc') as () => void;
}
