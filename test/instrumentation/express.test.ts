import http, { type Server } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Express, NextFunction, Request, RequestHandler, Response } from 'express';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Undo } from '../../instrumentation/adapter.ts';
import { express as expressAdapter } from '../../instrumentation/express/express.ts';
import { sampleLayer, wrapExpress, wrapLayers } from '../../instrumentation/express/express-layers.ts';
import { httpServer } from '../../instrumentation/http-server/http-server.ts';
import { current, remainingMs, withBudget } from '../../src/index.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { observeBoth, type RunningApp, type Step } from '../support/equivalence.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { ask, close, listen, RawClient, until } from '../support/loopback.ts';

type ExpressModule = typeof import('express');
const require = createRequire(import.meta.url);
// Version 4 comes without types; what is used here is the same in both.
const express4 = require('express4') as ExpressModule;
const express5 = require('express') as ExpressModule;

interface Variant {
  readonly name: string;
  readonly express: ExpressModule;
  /** Starts what the version needs. */
  readonly hook: (t: TestHooks) => Undo;
  /** The end of an async handler is seen apart from the reply. */
  readonly seesPromises: boolean;
  /** Any rest of a path, in the version's own words. */
  readonly rest: string;
}

const VARIANTS: readonly Variant[] = [
  {
    name: 'express 5.3, by its channel',
    express: express5,
    hook: (t) => expressAdapter.start(t.hooks),
    seesPromises: true,
    rest: '*rest',
  },
  {
    // Its layers are called like those of 5.0 to 5.2 while nobody listens to the channel.
    name: 'express 5, by wraps',
    express: express5,
    hook: (t) => wrapLayers(express5, sampleLayer(memberRoute(express5)) ?? {}, t.hooks),
    seesPromises: true,
    rest: '*rest',
  },
  {
    name: 'express 4, by wraps',
    express: express4,
    hook: (t) => wrapExpress(express4, t.hooks),
    seesPromises: false,
    rest: '*',
  },
];

function memberRoute(express: ExpressModule): unknown {
  return Reflect.get(express, 'Route');
}

let t: TestHooks = createTestHooks();
let server: Server | undefined;
let undo: Undo = () => {};

afterEach(async () => {
  if (server !== undefined) await close(server);
  server = undefined;
  undo();
  undo = () => {};
  t.stop();
  expect(t.value('internalErrors')).toBe(0);
});

async function ended(count = 1): Promise<void> {
  await until(() => t.value('outcomes') >= count, `${count} ended requests`);
}

/** The operations that requests were counted under, with how many. */
function operations(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { attributes, value } of t.recorder.families.offered.cells) {
    if (value > 0) counts[String(attributes.operation)] = value;
  }
  return counts;
}

describe.each(VARIANTS)('$name', ({ express, hook, seesPromises, rest }) => {
  let app: Express;

  beforeEach(() => {
    // Express logs what its error handler got.
    vi.spyOn(console, 'error').mockReturnValue();
    start();
  });
  afterEach(() => vi.restoreAllMocks());

  function start(config: ConfigOptions = {}): void {
    undo();
    t.stop();
    t = createTestHooks({ adapters: [httpServer], config });
    undo = hook(t);
    app = express();
    // In 'development' its error page shows the stack, which has our frames in it.
    app.set('env', 'production');
  }

  async function serve(): Promise<number> {
    server = http.createServer(app);
    return listen(server);
  }

  const reply: RequestHandler = (_request, response) => {
    response.send('ok');
  };

  describe('operation', () => {
    test.each([
      ['GET', '/', 'GET /'],
      ['GET', '/orders/17?expand=lines', 'GET /orders/:id'],
      ['HEAD', '/orders/17', 'HEAD /orders/:id'],
      ['POST', '/orders', 'POST /orders'],
      ['GET', '/api/v7/users/3/', 'GET /api/:version/users/:id'],
      ['GET', '/API/v8/users', 'GET /api/:version/users'],
      ['GET', '/a/1/c/d', 'GET /a/:y/c/d'],
      ['GET', '/admin/audit/today', 'GET /admin/audit/:day'],
      ['GET', '/shop/cart', 'GET /shop/cart'],
      ['GET', '/abc/7', 'GET /^\\/a.c\\/\\d+$/'],
      ['PUT', '/any/where', 'PUT /any/where'],
      ['GET', '/nothing/here', 'unmatched'],
      ['GET', '/static/x.css', 'unmatched'],
      ['OPTIONS', '/orders', 'unmatched'],
    ])('%s %s is %s', async (method, path, operation) => {
      const users = express.Router({ mergeParams: true });
      users.get('/', reply);
      users.get('/:id', reply);
      users.param('id', (_request, _response, next) => next());
      const pass: RequestHandler = (_request, _response, next) => next();
      const inA = express.Router().use('/:y', express.Router().use('/c', express.Router().get('/d', reply)));
      const api = express.Router();
      api.use('/users', users);
      const audit = express();
      audit.get('/:day', reply);
      const admin = express();
      admin.use('/audit', audit);
      app.use('/static', reply);
      app.get('/', reply);
      app.get('/orders/:id', reply);
      app.post('/orders', reply);
      app.use('/api/:version', pass);
      app.use('/api/:version', api);
      app.use('/a/:x', pass);
      app.use('/a', inA);
      app.use('/admin/', admin);
      app.use('/shop', express.Router().get('/cart', reply));
      app.get(/^\/a.c\/\d+$/, reply);
      app.route('/any/where').all(reply);
      const port = await serve();
      await ask(port, { method, path });
      await ended();
      expect(operations()).toEqual({ [operation]: 1 });
    });

    test('one handler under two mounts and for two methods, in turn: each time by its own name', async () => {
      const orders = express.Router();
      orders.get('/orders/:id/', reply);
      orders.all('/carts/:id', reply);
      app.use('/v1', orders);
      app.use('/v2/', orders);
      app.use(orders);
      const port = await serve();
      const asked: [string, string][] = [];
      for (const mount of ['/v1', '/v2', '']) {
        asked.push(['GET', `${mount}/orders/1`], ['HEAD', `${mount}/orders/2`], ['PUT', `${mount}/carts/1`]);
        asked.push(['POST', `${mount}/carts/2`], ['GET', `${mount}/orders/3`]);
      }
      for (const [method, path] of asked) await ask(port, { method, path });
      await ended(asked.length);
      const ofMount = (mount: string) => ({
        [`GET ${mount}/orders/:id`]: 2,
        [`HEAD ${mount}/orders/:id`]: 1,
        [`PUT ${mount}/carts/:id`]: 1,
        [`POST ${mount}/carts/:id`]: 1,
      });
      expect(operations()).toEqual({ ...ofMount('/v1'), ...ofMount('/v2'), ...ofMount('') });
    });

    test('of several patterns of one route: one name, the one that matched where it is told', async () => {
      app.get(['/a/:x', '/b/:x'], reply);
      const port = await serve();
      await ask(port, { path: '/b/1' });
      await ask(port, { path: '/b/2' });
      await ended(2);
      const name = Object.keys(operations())[0];
      expect(operations()).toEqual({ [String(name)]: 2 });
      expect(['GET /b/:x', 'GET /a/:x,/b/:x']).toContain(name);
    });

    test('a check declared as a route in front of others is not the operation', async () => {
      const check: RequestHandler = (_request, _response, next) => next();
      app.all(`/api/${rest}`, check);
      app.get('/api/orders/:id', reply);
      app.get(`/pages/${rest}`, check);
      const shop = express.Router();
      shop.route('/:kind/:id').all(check);
      shop.get('/orders/:id', reply);
      app.use('/shop', shop);
      const port = await serve();
      await ask(port, { path: '/api/orders/3' });
      await ask(port, { path: '/pages/a/b' });
      await ask(port, { path: '/shop/orders/3' });
      await ended(3);
      expect(operations()).toEqual({
        'GET /api/orders/:id': 1,
        [`GET /pages/${rest}`]: 1,
        'GET /shop/orders/:id': 1,
      });
    });

    test('a wildcard route that cannot pass the request on is the operation from its start', async () => {
      app.get(`/files/${rest}`, (_request, response) => {
        response.send(current()?.operation);
      });
      const port = await serve();
      expect((await ask(port, { path: '/files/a/b' })).body).toBe(`GET /files/${rest}`);
    });

    test('paths of ten thousand shapes are as many operations as there are routes', async () => {
      app.get('/orders/:id', reply);
      const port = await serve();
      const agent = new http.Agent({ keepAlive: true, maxSockets: 4 });
      await Promise.all(Array.from({ length: 200 }, (_, i) => ask(port, { agent, path: `/orders/${i}` })));
      await Promise.all(Array.from({ length: 200 }, (_, i) => ask(port, { agent, path: `/none/${i}` })));
      agent.destroy();
      await ended(400);
      expect(operations()).toEqual({ 'GET /orders/:id': 200, unmatched: 200 });
      expect(t.value('labelOverflow')).toBe(0);
    });

    test('a path that somebody took off by hand is no name', async () => {
      const tenant = express.Router().get('/orders/:id', reply);
      app.use((request: Request, response: Response, next: NextFunction) => {
        const [, id] = request.url.split('/');
        request.url = request.url.slice(`/${id}`.length);
        request.baseUrl = `/${id}`;
        tenant(request, response, next);
      });
      const port = await serve();
      await ask(port, { path: '/tenant-17/orders/3' });
      await ended();
      expect(operations()).toEqual({ 'GET /*/orders/:id': 1 });
    });

    test('its entry policy holds from the start of the handler, and it is counted then', async () => {
      start({ operations: { 'GET /orders/:id': { defaultMs: 70_000 } } });
      let offered = 0;
      app.get('/orders/:id', (_request, response) => {
        offered = t.value('offered', { operation: 'GET /orders/:id' });
        response.json(current());
      });
      const port = await serve();
      const { body } = await ask(port, { path: '/orders/1' });
      expect(JSON.parse(body)).toMatchObject({ effectiveMs: 70_000, operation: 'GET /orders/:id' });
      expect(offered).toBe(1);
    });
  });

  test('time in middleware is queue, time in the handler is processing', async () => {
    app.use((_request, _response, next) => {
      setTimeout(next, 80);
    });
    app.get('/', async (_request, response) => {
      await sleep(40);
      response.send('ok');
    });
    const port = await serve();
    await ask(port, { headers: { 'x-request-timeout-ms': '60' } });
    await ended();
    const queueS = t.histogram('queue', { operation: 'GET /' }).sum;
    const processingS = t.histogram('processing', { operation: 'GET /' }).sum;
    expect(queueS).toBeGreaterThan(0.078);
    expect(processingS).toBeGreaterThan(0.038);
    expect(t.value('expiries', { phase: 'queue', dependency: 'none' })).toBe(1);
    expect(t.value('expiries')).toBe(1);
  });

  test('D1: a body that is read before the handler starts: still in its request, and no cancel', async () => {
    let received: number | undefined;
    app.post('/', express.json(), async (request, response) => {
      await sleep(100);
      received = current()?.receivedMs;
      response.send(request.body);
    });
    const port = await serve();
    const client = await RawClient.connect(port);
    const headers = {
      'content-type': 'application/json',
      'content-length': '7',
      'x-request-timeout-ms': '9000',
    };
    client.send('POST', '/', headers, '{"a"');
    await sleep(20);
    client.socket.write(':1}');
    await client.see('{"a":1}');
    await ended();
    expect(received).toBe(9000);
    expect(operations()).toEqual({ 'POST /': 1 });
    expect(t.value('cancellations')).toBe(0);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    client.socket.destroy();
  });

  const styles: readonly (readonly [string, RequestHandler])[] = [
    [
      'callbacks',
      (_request, response) => {
        void ended().then(() => setTimeout(() => response.send('late'), 60));
      },
    ],
    [
      'a promise',
      async (_request, response) => {
        await ended();
        await sleep(60);
        response.send('late');
      },
    ],
  ];
  const checks: readonly (readonly [string, RequestHandler | undefined])[] = [
    ['alone', undefined],
    ['behind a check in callbacks', (_request, _response, next) => void setTimeout(next, 5)],
    [
      'behind a check that is still busy then',
      async (_request, _response, next) => {
        await ended();
        next();
      },
    ],
  ];
  test.each(
    styles.flatMap(([style, handler]) =>
      checks.map(([place, check]) => [style, place, handler, check] as const),
    ),
  )(
    'D3, D4: the client leaves a handler by %s, %s, that works for 60 ms more',
    async (_, place, handler, check) => {
      let arrived = false;
      app.get('/orders/:id', (_request, _response, next) => {
        arrived = check === undefined || place.endsWith('busy then');
        next();
      });
      if (check !== undefined) app.get('/orders/:id', check);
      app.get('/orders/:id', (request, response, next) => {
        arrived = true;
        return handler(request, response, next);
      });
      const port = await serve();
      const client = await RawClient.connect(port);
      client.send('GET', '/orders/1');
      await until(() => arrived, 'the request');
      client.socket.destroy();
      await ended();
      expect(t.value('postCancelItems')).toBe(0);
      await until(() => t.value('postCancelItems') > 0, 'the end of the handler');
      await sleep(20);
      expect(t.value('outcomes', { outcome: 'cancelled', operation: 'GET /orders/:id' })).toBe(1);
      expect(t.value('outcomes')).toBe(1);
      expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(1);
      expect(t.value('postCancelItems')).toBe(1);
      const workedS = t.value('postCancelSeconds', { kind: 'handler', intended: 'no' });
      expect(workedS).toBeGreaterThan(0.058);
      expect(workedS).toBeLessThan(5);
    },
  );

  test('D4: a handler that works on after its useless reply is over when its promise is', async () => {
    let arrived = false;
    app.get('/', async (_request, response) => {
      arrived = true;
      await ended();
      await sleep(5);
      response.send('late');
      await sleep(100);
    });
    const port = await serve();
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await until(() => arrived, 'the request');
    client.socket.destroy();
    await until(() => t.value('postCancelItems') > 0, 'the end of the handler');
    const workedS = t.value('postCancelSeconds', { kind: 'handler' });
    if (seesPromises) expect(workedS).toBeGreaterThan(0.103);
    else expect(workedS).toBeGreaterThan(0);
  });

  test('a handler that starts and replies at once, when it was too late already, has worked for nobody', async () => {
    app.use((_request, _response, next) => {
      setTimeout(next, 60);
    });
    app.get('/', reply);
    const port = await serve();
    await ask(port, { headers: { 'x-request-timeout-ms': '50' } });
    expect(t.value('outcomes', { outcome: 'late' })).toBe(1);
    expect(t.value('postCancelItems', { kind: 'handler' })).toBe(1);
  });

  test('a check that narrows the time of what follows has narrowed it for the handler', async () => {
    let left: number | undefined;
    app.get(
      '/',
      (_request, _response, next) => withBudget(50, next),
      (_request, response) => {
        left = remainingMs();
        response.send('ok');
      },
    );
    const port = await serve();
    await ask(port, { headers: { 'x-request-timeout-ms': '9000' } });
    expect(left).toBeLessThanOrEqual(50);
  });

  test('J10: client gone in a middleware, which goes on to the handler: one outcome, all of it for nobody', async () => {
    let arrived = false;
    app.use((_request, _response, next) => {
      arrived = true;
      void ended().then(() => setTimeout(next, 50));
    });
    app.get('/', async (_request, response) => {
      await sleep(50);
      response.send('late');
    });
    const port = await serve();
    const client = await RawClient.connect(port);
    client.send('GET', '/');
    await until(() => arrived, 'the request');
    client.socket.destroy();
    await until(() => t.value('postCancelItems') > 0, 'the end of the handler');
    expect(t.value('outcomes', { outcome: 'cancelled' })).toBe(1);
    expect(t.value('outcomes')).toBe(1);
    expect(t.value('postCancelSeconds', { kind: 'handler' })).toBeGreaterThan(0.097);
  });

  describe('a timeout middleware', () => {
    function answerAfter(ms: number): RequestHandler {
      return (_request, response, next) => {
        const timer = setTimeout(() => response.status(503).send('timed out'), ms);
        response.on('close', () => clearTimeout(timer));
        next();
      };
    }

    test('E1: answers 503 at 100 while the handler works for 200 ms more, and writes again', async () => {
      let thrown: unknown;
      app.use(answerAfter(100));
      app.get('/', async (_request, response) => {
        await ended();
        await sleep(200);
        try {
          response.send('late');
        } catch (error) {
          thrown = error;
        }
        response.end();
      });
      const port = await serve();
      const { status } = await ask(port);
      expect(status).toBe(503);
      expect(t.value('outcomes', { outcome: 'failed' })).toBe(1);
      expect(t.value('cancellations', { source: 'local_timeout', operation: 'GET /' })).toBe(1);
      expect(t.value('postCancelItems')).toBe(0);
      await until(() => t.value('postCancelItems') > 0, 'the end of the handler');
      expect(thrown).toMatchObject({ code: 'ERR_HTTP_HEADERS_SENT' });
      const workedS = t.value('postCancelSeconds', { dependency: 'none', kind: 'handler', intended: 'no' });
      expect(workedS).toBeGreaterThan(0.198);
      expect(workedS).toBeLessThan(5);
      expect(t.value('outcomes')).toBe(1);
      expect(t.value('cancellations')).toBe(1);
    });

    test('E1: answers 503 while a handler in callbacks works on', async () => {
      app.use(answerAfter(50));
      app.get('/', (_request, response) => {
        void ended().then(() => setTimeout(() => response.end('late'), 60));
      });
      const port = await serve();
      expect((await ask(port)).status).toBe(503);
      expect(t.value('cancellations', { source: 'local_timeout' })).toBe(1);
      await until(() => t.value('postCancelItems') > 0, 'the end of the handler');
      expect(t.value('postCancelSeconds', { kind: 'handler' })).toBeGreaterThan(0.058);
    });

    test('does nothing in time: no cancel', async () => {
      app.use(answerAfter(5000));
      app.get('/', async (_request, response) => {
        await sleep(20);
        response.send('ok');
      });
      const port = await serve();
      await ask(port);
      await ended();
      expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
      expect(t.value('cancellations')).toBe(0);
    });
  });

  const refusals: readonly (readonly [string, RequestHandler])[] = [
    ['at once', (_request, response) => void response.status(503).send('busy')],
    ['in a callback', (_request, response) => void setTimeout(() => response.status(503).send('busy'), 20)],
    [
      'after an await',
      async (_request, response) => {
        await sleep(20);
        response.status(503).send('busy');
        await sleep(20);
      },
    ],
    [
      'at the end of a body that it reads itself',
      (request, response) => void request.on('end', () => response.status(503).send('busy')).resume(),
    ],
    ['from a middleware', (_request, _response, next) => next()],
  ];
  test.each(refusals)("a 503 of the service's own is an answer, not a cancel: %s", async (_, handler) => {
    app.post('/', handler);
    app.use((_request, response) => {
      response.status(503).send('from the end');
    });
    const port = await serve();
    const client = await RawClient.connect(port);
    client.send('POST', '/', { 'content-length': '6' }, 'abc');
    await sleep(20);
    client.socket.write('def');
    await client.see('503');
    await ended();
    expect(t.value('outcomes', { outcome: 'failed' })).toBe(1);
    expect(t.value('cancellations')).toBe(0);
    expect(t.value('postCancelItems')).toBe(0);
    client.socket.destroy();
  });

  test('E5: a deadline of 100 that the handler ignores until 300: expired work, no disconnect', async () => {
    app.get('/', async (_request, response) => {
      await sleep(300);
      response.send('late');
    });
    const port = await serve();
    await ask(port, { headers: { 'x-request-timeout-ms': '100' } });
    await until(() => t.value('postCancelItems') > 0, 'the end of the handler');
    expect(t.value('outcomes', { outcome: 'late' })).toBe(1);
    expect(t.value('cancellations')).toBe(0);
    expect(t.value('expiries', { phase: 'local', dependency: 'none' })).toBe(1);
    expect(t.value('postCancelSeconds', { kind: 'handler' })).toBeGreaterThanOrEqual(0.195);
  });

  test('E6: answered at once, then its own work until after the deadline: completed, and not for nobody', async () => {
    let isOver = false;
    app.get('/', async (_request, response) => {
      response.send('ok');
      await until(() => (remainingMs() ?? 0) < -20, 'the deadline');
      isOver = true;
    });
    const port = await serve();
    await ask(port, { headers: { 'x-request-timeout-ms': '600' } });
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    await until(() => isOver, 'the end of the handler');
    await sleep(10);
    expect(t.histogram('processing').sum).toBeLessThan(0.6);
    expect(t.value('postCancelItems')).toBe(0);
    expect(t.value('outcomes')).toBe(1);
  });

  test('E6: answered too late, and then 100 ms more: all of it is work for nobody', async () => {
    let isOver = false;
    app.get('/', async (_request, response) => {
      await sleep(60);
      response.send('late');
      await sleep(100);
      isOver = true;
    });
    const port = await serve();
    await ask(port, { headers: { 'x-request-timeout-ms': '50' } });
    await until(() => isOver && t.value('postCancelItems') > 0, 'the end of the handler');
    const workedS = t.value('postCancelSeconds', { kind: 'handler' });
    if (seesPromises) expect(workedS).toBeGreaterThan(0.105);
    else expect(workedS).toBeGreaterThan(0.005);
  });

  test('a handler that fails, at once or later, is answered by the error handler: failed, not cancelled', async () => {
    app.get('/throws', () => {
      throw new Error('at once');
    });
    app.get('/rejects', async (_request, _response, next) => {
      await sleep(5);
      if (!seesPromises) {
        next(new Error('later'));
        return;
      }
      throw new Error('later');
    });
    app.use((error: Error, _request: Request, response: Response, _next: NextFunction) => {
      response.status(500).send(error.message);
    });
    const port = await serve();
    expect((await ask(port, { path: '/throws' })).body).toBe('at once');
    expect((await ask(port, { path: '/rejects' })).body).toBe('later');
    await ended(2);
    expect(t.value('outcomes', { outcome: 'failed' })).toBe(2);
    expect(t.value('cancellations')).toBe(0);
    expect(t.value('postCancelItems')).toBe(0);
    expect(operations()).toEqual({ 'GET /throws': 1, 'GET /rejects': 1 });
  });

  test('J1: requests at the same time, over two connections, each in its own handler', async () => {
    app.use(express.json());
    app.use((_request, _response, next) => setImmediate(next));
    app.post('/:ms', async (request, response) => {
      const before = current()?.receivedMs;
      await sleep(Math.random() * 5);
      response.send(`${request.params.ms} ${before} ${current()?.receivedMs}`);
    });
    const port = await serve();
    const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
    const replies = await Promise.all(
      Array.from({ length: 60 }, (_, i) => {
        const ms = String(10_000 + i);
        const headers = { 'x-request-timeout-ms': ms, 'content-type': 'application/json' };
        return ask(port, { agent, method: 'POST', path: `/${ms}`, headers, body: '{}' });
      }),
    );
    agent.destroy();
    for (const { body } of replies) expect(new Set(body.split(' ')).size).toBe(1);
    await ended(60);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(60);
  });

  test('observing changes nothing that a client can see', async () => {
    const steps: Step[] = [
      { path: '/orders/1' },
      { method: 'HEAD', path: '/orders/1' },
      { method: 'POST', path: '/orders', body: '{"a":1}', headers: { 'content-type': 'application/json' } },
      { method: 'POST', path: '/orders', body: '{broken', headers: { 'content-type': 'application/json' } },
      { path: '/stream' },
      { path: '/throws' },
      { path: '/rejects' },
      { path: '/none' },
      { method: 'OPTIONS', path: '/orders' },
      { path: '/gives-up' },
      { path: '/slow', leaveAfterMs: 30 },
      { path: '/orders/2', headers: { 'x-request-timeout-ms': '1', expect: '100-continue' } },
      { path: '/orders/%zz' },
    ];
    const startApp = async (hooked: boolean): Promise<RunningApp> => {
      undo();
      t.stop();
      if (hooked) {
        t = createTestHooks({ adapters: [httpServer] });
        undo = hook(t);
      }
      const service = express();
      service.set('env', 'production');
      service.use(express.json());
      service.get('/orders/:id', async (request, response) => {
        await sleep(2);
        response
          .cookie('seen', '1')
          .json({ id: request.params.id, own: Object.keys(request).includes('push') });
      });
      service.post('/orders', (request, response) => void response.status(201).json(request.body));
      service.get('/stream', (_request, response) => {
        response.set('Trailer', 'x-end').write('one ');
        setTimeout(() => {
          response.addTrailers({ 'x-end': 'yes' });
          response.end('two');
        }, 5);
      });
      service.get('/throws', () => {
        throw new TypeError('thrown');
      });
      service.get(
        '/rejects',
        (_request, _response, next) => void setTimeout(() => next(new Error('passed on')), 2),
      );
      service.get('/gives-up', (_request, response) => void response.destroy());
      service.get('/slow', (_request, response) => void setTimeout(() => response.send('slow'), 60));
      const made = http.createServer(service);
      return { port: await listen(made), stop: () => close(made) };
    };
    const { plain, hooked } = await observeBoth(startApp, steps);
    expect(hooked).toEqual(plain);
    expect(plain.map(({ status, error }) => status ?? error)).toEqual([
      200,
      200,
      201,
      400,
      200,
      500,
      500,
      404,
      200,
      'ECONNRESET',
      'ECONNRESET',
      200,
      400,
    ]);
    expect(plain[1]?.reusedSocket).toBe(true);
    expect(t.value('outcomes')).toBe(steps.length);
  });
});

test('the wraps are not put on a router that tells of its handlers itself, nor twice on one', () => {
  t = createTestHooks();
  const layer = sampleLayer(memberRoute(express5)) ?? {};
  const layers = Object.getPrototypeOf(layer);
  const before = layers.handleRequest;
  wrapExpress(express5, t.hooks)();
  wrapExpress({}, t.hooks)();
  wrapExpress(undefined, t.hooks)();
  expect(layers.handleRequest).toBe(before);
  const undoFirst = wrapLayers(express5, layer, t.hooks);
  const once = layers.handleRequest;
  expect(once).not.toBe(before);
  const undoSecond = wrapLayers(express5, layer, t.hooks);
  expect(layers.handleRequest).toBe(once);
  undoSecond();
  undoFirst();
  expect(layers.handleRequest).toBe(before);
});

test('for the loader: what to wrap when a service loads express', () => {
  t = createTestHooks();
  const [definition, ...others] = expressAdapter.modules?.(t.hooks) ?? [];
  expect(others).toEqual([]);
  expect(definition?.name).toBe('express');
  const layers = Object.getPrototypeOf(sampleLayer(memberRoute(express4)));
  const before = layers.handle_request;
  expect(definition?.patch?.(express4, '4.22.3')).toBe(express4);
  expect(layers.handle_request).not.toBe(before);
  definition?.unpatch?.(express4, '4.22.3');
  expect(layers.handle_request).toBe(before);
});
