import http from 'node:http';
import { createRequire } from 'node:module';
import {
  type Context,
  context,
  DiagLogLevel,
  diag,
  type Span,
  SpanKind,
  type SpanOptions,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import { NodeSDK } from '@opentelemetry/sdk-node';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { httpClient } from '../../instrumentation/http-client/http-client.ts';
import { undiciClient } from '../../instrumentation/undici/undici.ts';
import { ATTR, attrPhase } from '../../src/telemetry/names.ts';
import { until } from '../support/loopback.ts';
import { inRequest, type StallServer, startServer, type Watched, watchCalls } from '../support/outgoing.ts';

/** What is looked at of an ended span of the SDK. */
interface EndedSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: SpanStatusCode };
  readonly instrumentationScope: { readonly name: string };
}

const require = createRequire(import.meta.url);
const ended: EndedSpan[] = [];
const complaints: string[] = [];
let sdk: NodeSDK;
let httpSpans: HttpInstrumentation;
let server: StallServer;
let w: Watched | undefined;
let undiciSpans: UndiciInstrumentation | undefined;

beforeAll(async () => {
  const complain = (...args: unknown[]) => void complaints.push(args.map(String).join(' '));
  const quiet = () => {};
  diag.setLogger(
    { error: complain, warn: complain, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  startSdk();
  httpSpans = new HttpInstrumentation();
  // Patches node:http, which is one object for `require` and for the default import.
  require('node:http');
  server = await startServer();
});

afterAll(async () => {
  httpSpans.disable();
  await sdk.shutdown();
  await server.close();
});

beforeEach(() => {
  ended.length = 0;
  complaints.length = 0;
});

afterEach(() => {
  expect(w?.t.value('internalErrors') ?? 0).toBe(0);
  // Nothing is written to a span that has ended, about which the SDK would complain.
  expect(complaints).toEqual([]);
  w?.stop();
  undiciSpans?.disable();
  w = undefined;
  undiciSpans = undefined;
});

function startSdk(): void {
  sdk = new NodeSDK({
    instrumentations: [],
    metricReaders: [],
    logRecordProcessors: [],
    spanProcessors: [
      {
        onStart() {},
        onEnd: (span) => void ended.push(span),
        forceFlush: () => Promise.resolve(),
        shutdown: () => Promise.resolve(),
      },
    ],
  });
  sdk.start();
}

/** Inside an internal span, as a framework would have it. */
function inSpan<T>(work: () => Promise<T>): Promise<T> {
  return trace.getTracer('framework').startActiveSpan('handler', (span) => work().finally(() => span.end()));
}

function clientSpans(): EndedSpan[] {
  return ended.filter(({ kind }) => kind === SpanKind.CLIENT);
}

function expectDescribed(span: EndedSpan | undefined): void {
  expect(span?.attributes).toMatchObject({ [ATTR.dependency]: 'address' });
  expect(span?.attributes[ATTR.remainingBefore]).toBeGreaterThan(0);
  expect(span?.attributes[ATTR.handedDown]).toBeGreaterThan(0);
}

function get(path: string, signal?: AbortSignal): Promise<string | Error> {
  return new Promise((resolve) => {
    const options = { host: '127.0.0.1', port: server.port, path, agent: false, ...(signal && { signal }) };
    http
      .get(options, (response) => {
        let text = '';
        response.on('data', (chunk) => {
          text += String(chunk);
        });
        response.on('end', () => resolve(text));
        response.on('error', resolve);
      })
      .on('error', resolve);
  });
}

const ask = (path: string, init?: RequestInit) =>
  fetch(`${server.origin}${path}`, init)
    .then((answer) => answer.text())
    .catch((error: Error) => error);

const orders: Record<string, () => void> = {
  'the instrumentation is loaded first': () => {
    undiciSpans = new UndiciInstrumentation();
    w = watchCalls([undiciClient, httpClient]);
  },
  'we are loaded first': () => {
    w = watchCalls([undiciClient, httpClient]);
    undiciSpans = new UndiciInstrumentation();
  },
};

function watched(): Watched {
  if (w === undefined) throw new Error('nothing is watched');
  return w;
}

describe.each(Object.entries(orders))('the span of a fetch: %s', (_order, load) => {
  beforeEach(load);

  test('an answer is described on the client span, and on no other', async () => {
    await inRequest(watched(), 5000, () => inSpan(() => ask('/20')));
    const [span, ...others] = clientSpans();
    expect(others).toEqual([]);
    expectDescribed(span);
    expect(span?.attributes[ATTR.remainingAfter]).toBeLessThan(
      Number(span?.attributes[ATTR.remainingBefore]),
    );
    expect(span?.attributes[attrPhase('request')]).toBeGreaterThan(0);
    expect(span?.attributes[attrPhase('response')]).toBeGreaterThanOrEqual(0);
    const handler = ended.find(({ name }) => name === 'handler');
    expect(handler?.attributes).toEqual({});
  });

  test('parallel calls each get their own span', async () => {
    const { calls } = watched();
    await inRequest(watched(), 5000, () =>
      inSpan(() => Promise.all([ask('/90'), ask('/10'), ask('/50', { method: 'POST', body: 'x' })])),
    );
    const spans = clientSpans().sort((a, b) =>
      String(a.attributes['url.path']).localeCompare(String(b.attributes['url.path'])),
    );
    expect(spans.map(({ attributes }) => attributes['url.path'])).toEqual(['/10', '/50', '/90']);
    const byPath = [calls[1], calls[2], calls[0]];
    for (const [index, span] of spans.entries()) {
      const call = byPath[index];
      expect(span.attributes[ATTR.remainingAfter]).toBeCloseTo(call?.remainingAfterMs ?? Number.NaN, 2);
    }
  });

  test('D18: the loser of a race is described, and its status and error.type are what they were without us', async () => {
    const loser = new AbortController();
    await inRequest(watched(), 5000, () =>
      inSpan(async () => {
        const slow = ask('/silent', { signal: loser.signal });
        await ask('/20');
        loser.abort();
        await slow;
      }),
    );
    await until(() => clientSpans().length === 2, 'both spans');
    const lost = clientSpans().find(({ attributes }) => attributes['url.path'] === '/silent');
    expectDescribed(lost);
    expect(['lost_race', 'application']).toContain(lost?.attributes[ATTR.cancelSource]);
    expect(lost?.status.code).toBe(SpanStatusCode.UNSET);
    expect(lost?.attributes).not.toHaveProperty('error.type');
  });

  test('a timeout is described, and is the error that it was', async () => {
    await inRequest(watched(), 5000, () => inSpan(() => ask('/silent', { signal: AbortSignal.timeout(60) })));
    await until(() => clientSpans().length === 1, 'the span');
    const [span] = clientSpans();
    expectDescribed(span);
    expect(span?.attributes).toMatchObject({ [ATTR.cancelSource]: 'local_timeout' });
    expect(span?.status.code).toBe(SpanStatusCode.ERROR);
  });

  test("a call that is left out of the traces has no span, and takes nobody else's", async () => {
    undiciSpans?.setConfig({ ignoreRequestHook: ({ path }) => path === '/60' });
    await inRequest(watched(), 5000, () => inSpan(() => Promise.all([ask('/60'), ask('/30')])));
    const { calls } = watched();
    const [span, ...others] = clientSpans();
    expect(others).toEqual([]);
    expect(span?.attributes['url.path']).toBe('/30');
    expect(span?.attributes[ATTR.remainingAfter]).toBeCloseTo(calls[1]?.remainingAfterMs ?? Number.NaN, 2);
  });
});

describe('the span of a request of node:http', () => {
  test('an answer and an abort are described on the client span', async () => {
    w = watchCalls([undiciClient, httpClient]);
    await inRequest(w, 5000, () =>
      inSpan(async () => {
        await get('/20');
        await get('/silent', AbortSignal.timeout(60));
      }),
    );
    await until(() => clientSpans().length === 2, 'both spans');
    const [answered, aborted] = clientSpans();
    expectDescribed(answered);
    expectDescribed(aborted);
    expect(answered?.attributes[attrPhase('request')]).toBeGreaterThan(0);
    expect(aborted?.attributes).toMatchObject({ [ATTR.cancelSource]: 'local_timeout' });
    const handler = ended.find(({ name }) => name === 'handler');
    expect(handler?.attributes).toEqual({});
  });

  test('without a client span of its own the call is described nowhere', async () => {
    httpSpans.setConfig({ ignoreOutgoingRequestHook: () => true });
    w = watchCalls([httpClient]);
    await inRequest(w, 5000, () => inSpan(() => get('/')));
    // Nor on one of another library, which is around it.
    const outer = trace.getTracer('some-sdk').startSpan('send', { kind: SpanKind.CLIENT });
    await inRequest(w, 5000, () => context.with(trace.setSpan(context.active(), outer), () => get('/')));
    outer.end();
    httpSpans.setConfig({});
    // The server in this process has spans as well.
    const told = ended.filter(({ attributes }) => ATTR.dependency in attributes);
    expect(told).toEqual([]);
    expect(ended.map(({ name }) => name)).toEqual(expect.arrayContaining(['handler', 'send']));
  });
});

describe('other providers', () => {
  /** A vendor's: its own classes, which say nothing of scopes. */
  class VendorSpan {
    readonly attributes: Record<string, unknown> = {};
    isEnded = false;
    setAttributes(attributes: Record<string, unknown>): this {
      if (this.isEnded) throw new Error('ended');
      Object.assign(this.attributes, attributes);
      return this;
    }
    setAttribute(key: string, value: unknown): this {
      return this.setAttributes({ [key]: value });
    }
    setStatus(): this {
      return this;
    }
    recordException(): void {}
    addEvent(): this {
      return this;
    }
    isRecording(): boolean {
      return !this.isEnded;
    }
    spanContext() {
      return { traceId: '1'.repeat(32), spanId: '2'.repeat(16), traceFlags: 1 };
    }
    end(): void {
      this.isEnded = true;
    }
  }
  const made: VendorSpan[] = [];
  class VendorTracer {
    startSpan(_name: string, options?: SpanOptions): Span {
      const span = new VendorSpan();
      if (options?.kind === SpanKind.CLIENT) made.push(span);
      // It has what is used of a span here.
      return span as unknown as Span;
    }
    startActiveSpan(name: string, work: (span: Span) => unknown): unknown {
      const span = this.startSpan(name);
      const active: Context = trace.setSpan(context.active(), span);
      return context.with(active, () => work(span));
    }
  }

  test('the tracer is as it was when nobody looks any more', () => {
    w = watchCalls([undiciClient]);
    const prototype = Object.getPrototypeOf(trace.getTracer('any'));
    const wrapped = prototype.startSpan;
    w.stop();
    expect(prototype.startSpan).not.toBe(wrapped);
    w = undefined;
  });

  describe.each(Object.entries(orders))(
    'one that is registered after everything else: %s',
    (_order, load) => {
      beforeEach(() => {
        made.length = 0;
        trace.disable();
        load();
      });
      afterEach(() => trace.disable());

      test('its spans are found, once it is there', async () => {
        await inRequest(watched(), 5000, () => ask('/'));
        expect(made).toEqual([]);
        // Its tracer is not the SDK's class, but has the API's methods.
        trace.setGlobalTracerProvider({ getTracer: () => new VendorTracer() } as never);
        // Of the first call the span may have started before the provider was looked at.
        await inRequest(watched(), 5000, () => ask('/'));
        await inRequest(watched(), 5000, () => inSpan(() => ask('/20')));
        expect(made).toHaveLength(2);
        expect(made[1]?.attributes[ATTR.dependency]).toBe('address');
        expect(made[1]?.attributes[ATTR.remainingAfter]).toBeGreaterThan(0);
      });
    },
  );
});
