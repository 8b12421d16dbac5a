/** With the real instrumentation of node:http, which patches this process: a file, and so a process, of its own. */
import http, { type RequestListener, type Server } from 'node:http';
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { httpServer } from '../../instrumentation/http-server/http-server.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { ask, close, listen, RawClient, until } from '../support/loopback.ts';

interface EndedSpan {
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string }[];
}

const SERVER_KIND = 1;
let spans: EndedSpan[] = [];
let sdk: NodeSDK;
let t: TestHooks;
let server: Server;

beforeAll(() => {
  sdk = new NodeSDK({
    autoDetectResources: false,
    instrumentations: [new HttpInstrumentation()],
    metricReaders: [],
    logRecordProcessors: [],
    spanProcessors: [
      {
        onStart() {},
        onEnd(span) {
          if (span.kind === SERVER_KIND) spans.push(span);
        },
        forceFlush: () => Promise.resolve(),
        shutdown: () => Promise.resolve(),
      },
    ],
  });
  sdk.start();
  // What a service's own `require` or `import` does: the instrumentation patches then.
  createRequire(import.meta.url)('node:http');
});

afterAll(() => sdk.shutdown());

afterEach(async () => {
  await close(server);
  t.stop();
  spans = [];
  expect(t.value('internalErrors')).toBe(0);
});

async function serve(handler: RequestListener, prepare: (made: Server) => void = () => {}): Promise<number> {
  t = createTestHooks({ adapters: [httpServer] });
  server = http.createServer(handler);
  prepare(server);
  return listen(server);
}

async function endedSpan(): Promise<EndedSpan> {
  await until(() => spans.length > 0, 'the server span');
  const [span, ...others] = spans;
  expect(others).toEqual([]);
  if (span === undefined) throw new Error('unreachable');
  return span;
}

test('the server span of the very first request carries what was received and how it ended', async () => {
  const port = await serve(async (_request, response) => {
    await sleep(5);
    response.end('ok');
  });
  await ask(port, { headers: { 'x-request-timeout-ms': '5000' } });
  const { attributes } = await endedSpan();
  expect(attributes).toMatchObject({
    'time_budget.received_ms': 5000,
    'time_budget.effective_ms': 5000,
    'time_budget.verdict': 'accepted',
    'time_budget.outcome': 'useful',
    'http.response.status_code': 200,
  });
  expect(attributes['time_budget.processing_ms']).toBeGreaterThanOrEqual(4);
});

test('J9, J10: a client that leaves: the span says so before it ends, and the late reply is not written on it', async () => {
  let arrived = false;
  const port = await serve(async (_request, response) => {
    arrived = true;
    await until(() => spans.length > 0, 'the end of the span');
    await sleep(20);
    response.end('late');
  });
  const client = await RawClient.connect(port);
  client.send('GET', '/', { 'x-request-timeout-ms': '5000' });
  await until(() => arrived, 'the request');
  client.socket.destroy();
  const span = await endedSpan();
  expect(span.attributes).toMatchObject({
    'time_budget.outcome': 'cancelled',
    'time_budget.cancel.source': 'client_disconnect',
  });
  expect(span.events.map(({ name }) => name)).toContain('time_budget.cancelled');
  const before = JSON.stringify(span.attributes);
  await until(() => t.value('postCancelItems') === 1, 'the late reply');
  expect(JSON.stringify(span.attributes)).toBe(before);
});

test('a reply that is flushed long after it was written has its flush as response on the span', async () => {
  const port = await serve((_request, response) => response.end(Buffer.alloc(20_000_000)));
  const client = await RawClient.connect(port);
  client.socket.pause();
  client.send('GET', '/');
  await sleep(60);
  client.socket.resume();
  const { attributes } = await endedSpan();
  expect(attributes['time_budget.outcome']).toBe('useful');
  expect(attributes['time_budget.ledger.response_ms']).toBeGreaterThan(30);
  client.socket.destroy();
});

test('a reply that ends on a connection that was just destroyed: its span is described before it ends', async () => {
  const port = await serve((request, response) => {
    response.writeHead(204).flushHeaders();
    request.socket.destroy();
    response.end();
  });
  const client = await RawClient.connect(port);
  client.send('GET', '/', { 'x-request-timeout-ms': '5000' });
  const { attributes } = await endedSpan();
  expect(attributes['time_budget.received_ms']).toBe(5000);
  expect(attributes['time_budget.outcome']).toBeDefined();
});

test('engine.io and others take all request listeners off and call them themselves', async () => {
  const port = await serve((_request, response) => response.end('ok'));
  await ask(port);
  await endedSpan();
  spans = [];
  const taken = server.listeners('request');
  server.removeAllListeners('request');
  server.on('request', (...args) => {
    for (const listener of taken) Reflect.apply(listener, server, args);
  });
  await ask(port);
  const { attributes } = await endedSpan();
  expect(attributes['time_budget.outcome']).toBe('useful');
});
