/** With the real instrumentations of node:http and Express, which patch this process: a file of its own. */
import http, { type Server } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { ExpressInstrumentation } from '@opentelemetry/instrumentation-express';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type { RequestHandler } from 'express';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Undo } from '../../instrumentation/adapter.ts';
import { express as expressAdapter } from '../../instrumentation/express/express.ts';
import { sampleLayer, wrapLayers } from '../../instrumentation/express/express-layers.ts';
import { httpServer } from '../../instrumentation/http-server/http-server.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { ask, close, listen, RawClient, until } from '../support/loopback.ts';

type ExpressModule = typeof import('express');
interface EndedSpan {
  readonly kind: number;
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

const SERVER_KIND = 1;
let spans: EndedSpan[] = [];
let started = 0;
let sdk: NodeSDK;
let express: ExpressModule;
let t: TestHooks;
let server: Server;
let undo: Undo;

beforeAll(() => {
  sdk = new NodeSDK({
    autoDetectResources: false,
    instrumentations: [new HttpInstrumentation(), new ExpressInstrumentation()],
    metricReaders: [],
    logRecordProcessors: [],
    spanProcessors: [
      {
        onStart: () => void started++,
        onEnd: (span) => void spans.push(span),
        forceFlush: () => Promise.resolve(),
        shutdown: () => Promise.resolve(),
      },
    ],
  });
  sdk.start();
  // What a service's own `require` or `import` does: the instrumentations patch then.
  const require = createRequire(import.meta.url);
  require('node:http');
  express = require('express') as ExpressModule; // As its types say.
});

afterAll(() => sdk.shutdown());

afterEach(async () => {
  await close(server);
  undo();
  t.stop();
  spans = [];
  started = 0;
  expect(t.value('internalErrors')).toBe(0);
});

async function spansOf(port: number): Promise<EndedSpan[]> {
  spans = [];
  started = 0;
  await ask(port, { path: '/shops/3/orders/7', headers: { 'x-request-timeout-ms': '5000' } });
  await until(() => started > 0 && spans.length === started, 'the end of all spans');
  return spans;
}

/** What is the same in two runs: not our figures, not the ports. */
function withoutOurs({ kind, name, attributes }: EndedSpan) {
  const theirs = Object.entries(attributes).filter(([key]) => !/^time_budget|port$|^url.full$/.test(key));
  return { kind, name, attributes: Object.fromEntries(theirs) };
}

describe.each([
  ['its channel', () => expressAdapter.start(t.hooks)],
  ['wraps', () => wrapLayers(express, sampleLayer(Reflect.get(express, 'Route')) ?? {}, t.hooks)],
])('Express seen by %s', (_, hook) => {
  async function serve(handler: RequestHandler): Promise<number> {
    const app = express();
    app.use((_request, _response, next) => next());
    app.use('/shops/:shop', express.Router().get('/orders/:id', handler));
    server = http.createServer(app);
    return listen(server);
  }

  function watch(): void {
    t = createTestHooks({ adapters: [httpServer] });
    undo = hook();
  }

  test('the server span has our figures beside its own, and nothing else is changed', async () => {
    const handler: RequestHandler = async (_request, response) => {
      await sleep(5);
      response.send('ok');
    };
    const without = await spansOf(await serve(handler));
    await close(server);
    watch();
    const withUs = await spansOf(await serve(handler));
    const serverSpan = withUs.find(({ kind }) => kind === SERVER_KIND);
    expect(serverSpan?.attributes).toMatchObject({
      'http.route': '/shops/:shop/orders/:id',
      'time_budget.operation': 'GET /shops/:shop/orders/:id',
      'time_budget.received_ms': 5000,
      'time_budget.outcome': 'useful',
    });
    expect(withUs.map(withoutOurs)).toEqual(without.map(withoutOurs));
  });

  test('J10: a client that leaves: every span ends, ours says why', async () => {
    watch();
    let arrived = false;
    const port = await serve(async (_request, response) => {
      arrived = true;
      await until(() => t.value('outcomes') > 0, 'the end of the request');
      await sleep(20);
      response.send('late');
    });
    const client = await RawClient.connect(port);
    client.send('GET', '/shops/3/orders/7');
    await until(() => arrived, 'the request');
    client.socket.destroy();
    await until(() => started > 0 && spans.length === started, 'the end of all spans');
    const serverSpan = spans.find(({ kind }) => kind === SERVER_KIND);
    expect(serverSpan?.attributes).toMatchObject({
      'time_budget.operation': 'GET /shops/:shop/orders/:id',
      'time_budget.outcome': 'cancelled',
      'time_budget.cancel.source': 'client_disconnect',
    });
    await until(() => t.value('postCancelItems') === 1, 'the end of the handler');
  });
});
