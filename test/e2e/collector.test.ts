/** The project's configurations of the Collector, run by a real one. Skipped, and said so, where there is none. */

import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../demo/free-port.ts';
import { scrape } from '../../demo/scrape.ts';
import { ATTR, EVENT } from '../../src/telemetry/names.ts';
import { Collector, hasCollector, validate } from '../support/otel-collector.ts';
import { OtlpCollector } from '../support/otlp-collector.ts';
import { type HandmadeSpan, sendSpans } from '../support/otlp-sender.ts';
import { type Kind, spansOf, TracedServices } from '../support/traced-services.ts';

/** Laid over gateway.yaml: the store of the tests reads JSON. */
const TO_TEST_STORE = 'yaml:exporters::otlp_http/traces: { encoding: json, compression: none }';
/** Between the first span of a trace and the decision; all its spans have to come within. */
const WAIT = '4s';
const KEPT_KINDS: readonly Kind[] = ['late', 'expired', 'cancelled', 'refused', 'repeated', 'failed'];
const DECIDED = 'otelcol_processor_tail_sampling_global_count_traces_sampled';
const ACCEPTED = 'otelcol_receiver_accepted_spans';
const QUEUED = 'otelcol_exporter_queue_size';

const undo: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const each of undo.splice(0).reverse()) await each();
});

async function startStore(): Promise<OtlpCollector> {
  const store = new OtlpCollector();
  await store.start();
  undo.push(async () => store.stop());
  return store;
}

async function startGateway(
  store: OtlpCollector,
  env: Readonly<Record<string, string>> = {},
): Promise<Collector> {
  const gateway = await Collector.start(['gateway.yaml', TO_TEST_STORE], {
    TRACES: store.url,
    DECISION_WAIT: WAIT,
    KEEP_PERCENT: '0',
    ...env,
  });
  undo.push(() => gateway.remove());
  return gateway;
}

async function startAgent(
  env: Readonly<Record<string, string>>,
  sources = ['agent.yaml'],
): Promise<Collector> {
  const agent = await Collector.start(sources, env);
  undo.push(() => agent.remove());
  return agent;
}

/** The spans that arrived, by trace. A queue that was cut off sends some of them again: each is there once. */
function traces(store: OtlpCollector): Map<string, Set<string>> {
  const found = new Map<string, Set<string>>();
  for (const { traceId, spanId } of store.spans) {
    found.set(traceId, (found.get(traceId) ?? new Set()).add(spanId));
  }
  return found;
}

function sizes(store: OtlpCollector): Record<string, number> {
  return Object.fromEntries([...traces(store)].map(([id, spans]) => [id, spans.size]));
}

describe.skipIf(!hasCollector)('the configurations', () => {
  test.each([
    [['agent.yaml']],
    [['gateway.yaml']],
    [['gateway.yaml', 'metrics-page.yaml']],
    [['gateway.yaml', 'metrics-remote-write.yaml']],
    [['agent.yaml', 'two-gateways.yaml']],
  ])('%j is valid, with its defaults, and without a warning', (sources) => {
    expect(validate(sources)).toBe('');
  });

  test('a typing error is found', () => {
    expect(validate(['agent.yaml', 'yaml:exporters::otlp_grpc/gateway::endpont: x'])).toMatch(
      /exit 1: .*invalid keys: endpont/s,
    );
  });
});

describe.skipIf(!hasCollector)('which traces are kept', () => {
  let store: OtlpCollector;
  let gateway: Collector;
  let agent: Collector;
  let services: TracedServices;

  beforeAll(async () => {
    store = new OtlpCollector();
    await store.start();
    gateway = await Collector.start(['gateway.yaml', TO_TEST_STORE], {
      TRACES: store.url,
      DECISION_WAIT: WAIT,
      KEEP_PERCENT: '0',
    });
    agent = await Collector.start(['agent.yaml'], { GATEWAY: gateway.grpc });
    services = await TracedServices.start(agent.url);
  });

  afterAll(async () => {
    await services.stop();
    await Promise.all([agent.remove(), gateway.remove()]);
    store.stop();
  });

  test('V-08: those of services that ran out of time, were left, refused, repeated or failed; whole, and no other', async () => {
    const sent: [Kind, string][] = [];
    for (const kind of ['useful', ...KEPT_KINDS, 'useful', ...KEPT_KINDS, 'useful'] as const) {
      sent.push([kind, await services.send(kind)]);
    }
    await gateway.until('all is decided', async () => (await gateway.figure(DECIDED)) === sent.length);
    const kept = sent.filter(([kind]) => kind !== 'useful');
    const expected = Object.fromEntries(kept.map(([kind, id]) => [id, spansOf(kind)]));
    await store.until(
      () => Object.entries(expected).every(([id, spans]) => traces(store).get(id)?.size === spans),
      () => JSON.stringify({ sent, arrived: sizes(store) }),
    );
    expect(sizes(store)).toEqual(expected);
    expect(await gateway.figure(DECIDED, { sampled: 'true' })).toBe(12);
    expect(await gateway.figure(DECIDED, { sampled: 'false' })).toBe(3);
    // No policy failed on a span that lacks an attribute.
    expect(gateway.complaints()).toEqual([]);
    expect(agent.complaints()).toEqual([]);
  });
});

describe.skipIf(!hasCollector)('the policies, each on its own', () => {
  const KEPT: readonly (readonly [policy: string, span: HandmadeSpan])[] = [
    ['out_of_time', { attributes: { [ATTR.outcome]: 'expired' } }],
    ['out_of_time', { attributes: { [ATTR.outcome]: 'late' } }],
    ['out_of_time', { kind: 'client', attributes: { [ATTR.expiryPhase]: 'request' } }],
    ['cancelled', { attributes: { [ATTR.outcome]: 'cancelled' } }],
    ['cancelled', { kind: 'client', attributes: { [ATTR.cancelSource]: 'application' } }],
    ['refused', { attributes: { [ATTR.outcome]: 'refused' } }],
    ['refused', { kind: 'client', attributes: { [ATTR.refusalReason]: 'below_useful_minimum' } }],
    ['refused', { events: [{ name: EVENT.refused }] }],
    ['refused', { events: [{ name: EVENT.blocked }] }],
    ['retried', { attributes: { [ATTR.attempt]: 2 } }],
    ['retried', { attributes: { [ATTR.repeated]: true } }],
    ['post_cancel', { kind: 'client', attributes: { [ATTR.postCancel]: 0.25 } }],
    ['post_cancel', { kind: 'client', attributes: { [ATTR.postCancel]: 3 } }],
    ['not_known', { attributes: { [ATTR.outcome]: 'unknown' } }],
    ['not_known', { kind: 'client', attributes: { [ATTR.commitState]: 'unknown' } }],
    ['not_known', { kind: 'client', attributes: { [ATTR.mayStillRun]: true } }],
    ['not_known', { events: [{ name: EVENT.unknown }] }],
    ['reset', { kind: 'client', attributes: { [ATTR.resetViolation]: true } }],
    ['error', { isError: true }],
  ];
  const DROPPED: readonly HandmadeSpan[] = [
    {},
    { attributes: { [ATTR.outcome]: 'useful', [ATTR.remaining]: 12.5, [ATTR.caller]: 'expired' } },
    { attributes: { [ATTR.outcome]: 'degraded' } },
    { kind: 'client', attributes: { [ATTR.attempt]: 1, [ATTR.postCancel]: 0, [ATTR.mayStillRun]: false } },
    { attributes: { [ATTR.repeated]: false }, events: [{ name: EVENT.handedDown }] },
  ];

  test('at 0 %: exactly what a policy asks for, counted under its name', async () => {
    const store = await startStore();
    const gateway = await startGateway(store, { DECISION_WAIT: '1s' });
    const spans = [...KEPT.map(([, span]) => span), ...DROPPED];
    const ids = await sendSpans(gateway.url, { 'service.name': 'handmade' }, spans);
    await gateway.until('all is decided', async () => (await gateway.figure(DECIDED)) === spans.length);
    await store.until(
      () => traces(store).size === KEPT.length,
      () => JSON.stringify(sizes(store)),
    );
    expect(new Set(traces(store).keys())).toEqual(new Set(ids.slice(0, KEPT.length)));
    const counted: Record<string, number> = {};
    const expected: Record<string, number> = {};
    for (const [policy] of KEPT) {
      expected[policy] = (expected[policy] ?? 0) + 1;
      counted[policy] = await gateway.figure('otelcol_processor_tail_sampling_count_traces_sampled', {
        policy,
        sampled: 'true',
      });
    }
    expect(counted).toEqual(expected);
  });

  test('at 100 %: all of them', async () => {
    const store = await startStore();
    const gateway = await startGateway(store, { DECISION_WAIT: '1s', KEEP_PERCENT: '100' });
    const ids = await sendSpans(gateway.url, { 'service.name': 'handmade' }, DROPPED);
    await store.until(
      () => traces(store).size === DROPPED.length,
      () => JSON.stringify(sizes(store)),
    );
    expect(new Set(traces(store).keys())).toEqual(new Set(ids));
  });
});

describe.skipIf(!hasCollector)('the wait of the gateway', () => {
  const useful: HandmadeSpan = { kind: 'client', attributes: { [ATTR.outcome]: 'useful' } };
  const expired: HandmadeSpan = { attributes: { [ATTR.outcome]: 'expired' } };
  const TOO_EARLY = 'otelcol_processor_tail_sampling_sampling_trace_dropped_too_early';

  test('N8: a request that expires within it is kept whole; what comes after the decision follows it', async () => {
    const store = await startStore();
    const gateway = await startGateway(store, { DECISION_WAIT: '2s' });
    const [early = '', late = ''] = await sendSpans(gateway.url, {}, [useful, useful]);
    // The first call has ended, the request goes on and expires.
    await sendSpans(gateway.url, {}, [{ ...expired, traceId: early }]);
    await gateway.until('both are decided', async () => (await gateway.figure(DECIDED)) === 2);
    await sendSpans(gateway.url, {}, [{ ...expired, traceId: late }]);
    await sendSpans(gateway.url, {}, [{ ...useful, traceId: early }]);
    const [last = ''] = await sendSpans(gateway.url, {}, [expired]);
    await store.until(
      () => traces(store).has(last) && store.spans.length >= 4,
      () => JSON.stringify(sizes(store)),
    );
    // Too late to be kept: this is why the wait must be longer than the longest budget.
    expect(sizes(store)).toEqual({ [early]: 3, [last]: 1 });
    expect(await gateway.figure('otelcol_processor_tail_sampling_sampling_late_span_age_count')).toBe(1);
  });

  test('N11: with as many traces as it has room for, none is decided before its time; with more, some are, and counted', async () => {
    const store = await startStore();
    const gateway = await startGateway(store, {
      DECISION_WAIT: '2s',
      TRACES_IN_MEMORY: '50',
      TRACES_PER_SECOND: '10',
    });
    await sendSpans(
      gateway.url,
      {},
      Array.from({ length: 50 }, () => useful),
    );
    await gateway.until('all is decided', async () => (await gateway.figure(DECIDED)) === 50);
    expect(await gateway.figure(TOO_EARLY)).toBe(0);
    await sendSpans(
      gateway.url,
      {},
      Array.from({ length: 70 }, () => useful),
    );
    await gateway.until('the excess is counted', async () => (await gateway.figure(TOO_EARLY)) === 20);
  });
});

describe.skipIf(!hasCollector)('what must not leave the host', () => {
  const SECRETS = [
    'ada@example.com',
    '4111 1111 1111 1111',
    'Bearer abc.def',
    'eyJhbGciOi.eyJzdWIi.c2ln',
    'select name from users',
    'Mozilla/5.0',
    '203.0.113.7',
    'sig=5ecret',
    'hunter2',
    'user-4711',
    'Key (email)',
    '/home/ada',
    '--db-password',
    '60934711',
  ];

  test('V-01, V-05, V-06, V-09: neither in spans, events, status nor resource; what is ours stays', async () => {
    const store = await startStore();
    let bodies = '';
    store.onBody = (body) => {
      bodies += body;
    };
    const gateway = await startGateway(store, { KEEP_PERCENT: '100', DECISION_WAIT: '1s' });
    const agent = await startAgent({ GATEWAY: gateway.grpc });
    const resource = {
      'service.name': 'orders',
      'process.owner': 'hunter2',
      'process.command_line': 'node app.js --db-password x',
      'process.executable.path': '/home/ada/node',
      'process.working_directory': '/home/ada',
      'process.environment_variable.DB_AUTH': 'hunter2',
      'host.name': 'host-1',
    };
    const kept = {
      [ATTR.outcome]: 'useful',
      [ATTR.remaining]: 12.5,
      [ATTR.caller]: 'shop',
      'time_budget.ledger.secrets.request_ms': 4,
      'http.route': '/orders/:id',
      'url.path': '/orders/7',
      'http.response.status_code': 200,
      'db.system.name': 'postgresql',
      'gen_ai.usage.input_tokens': 17,
    };
    await sendSpans(agent.url, resource, [
      {
        isError: true,
        statusMessage: 'duplicate: Key (email)=(ada@example.com) exists',
        attributes: {
          ...kept,
          'url.full': 'https://ada:h@hunter2@stock/items/7?sig=5ecret',
          'http.target': '/orders/7?mail=ada@example.com',
          'url.query': 'sig=5ecret',
          'user_agent.original': 'Mozilla/5.0',
          'client.address': '203.0.113.7',
          'network.peer.address': '203.0.113.7',
          'http.request.header.x-signature': 'sig=5ecret',
          'http.response.header.set-cookie': 'hunter2',
          'db.query.text': "select name from users where mail = 'ada@example.com'",
          'db.query.parameter.1': 'hunter2',
          'db.statement': 'select name from users',
          'db.operation.parameter.name': 'hunter2',
          'db.connection_string': 'postgres://ada:hunter2@db/orders',
          'error.message': 'Key (email)=(ada@example.com) already exists',
          'exception.stacktrace': 'Error: Key (email)',
          'source.address': '203.0.113.7',
          'enduser.id': 'user-4711',
          // Many have a number.
          'user.id': 60934711,
          'user.email': 'ada@example.com',
          'gen_ai.input.messages': 'hunter2',
          'app.password': 'hunter2',
          'app.access_token': 'hunter2',
          'app.note': 'call ada@example.com, Bearer abc.def',
          'app.card': '4111 1111 1111 1111',
          'app.jwt': 'eyJhbGciOi.eyJzdWIi.c2ln',
        },
        events: [
          {
            name: 'exception',
            attributes: {
              'exception.type': 'DatabaseError',
              'exception.message': 'Key (email)=(ada@example.com) already exists',
              'exception.stacktrace': 'Error: Key (email)\n at /home/ada/app.js',
            },
          },
          {
            name: 'note',
            attributes: {
              'app.note': 'for ada@example.com',
              'db.query.text': 'select name from users',
              'http.request.header.x-signature': 'sig=5ecret',
              'gen_ai.event.content': 'hunter2',
              'user_agent.original': 'Mozilla/5.0',
              'client.address': '203.0.113.7',
              'url.full': 'https://ada:h@hunter2@stock/items/7?sig=5ecret',
              'enduser.id': 'user-4711',
            },
          },
        ],
      },
    ]);
    await store.until(
      () => store.spans.length === 1,
      () => gateway.log,
    );
    expect(SECRETS.filter((secret) => bodies.includes(secret))).toEqual([]);
    const attributes = store.spans[0]?.attributes ?? {};
    // An integer of OTLP is a text in JSON.
    const numbers = { 'time_budget.ledger.secrets.request_ms': '4', 'http.response.status_code': '200' };
    expect(attributes).toMatchObject({ ...kept, ...numbers, 'gen_ai.usage.input_tokens': '17' });
    expect(attributes['url.full']).toBe('https://stock/items/7');
    expect(attributes['http.target']).toBe('/orders/7');
    expect(attributes['db.connection_string']).toBe('postgres://db/orders');
    for (const key of ['enduser.id', 'user.id']) expect(attributes[key], key).toMatch(/^[0-9a-f]{64}$/);
    expect(bodies).toContain('DatabaseError');
    expect(bodies).toContain('host-1');
    expect(agent.complaints()).toEqual([]);
  });

  test('of a real service: the query of its URL, its caller and its agent', async () => {
    const store = await startStore();
    let bodies = '';
    store.onBody = (body) => {
      bodies += body;
    };
    const gateway = await startGateway(store, { KEEP_PERCENT: '100', DECISION_WAIT: '2s' });
    const agent = await startAgent({ GATEWAY: gateway.grpc });
    const services = await TracedServices.start(agent.url);
    undo.push(() => services.stop());
    await fetch(`${services.url}/useful?sig=5ecret`, { headers: { 'user-agent': 'Mozilla/5.0' } });
    await store.until(
      () => store.spans.length === 4,
      () => JSON.stringify(sizes(store)),
    );
    for (const secret of ['5ecret', 'Mozilla', process.execPath]) {
      expect(bodies, secret).not.toContain(secret);
    }
    for (const span of store.spans.filter(({ kind }) => kind === 'server')) {
      expect(span.attributes[ATTR.outcome]).toBe('useful');
    }
  });
});

describe.skipIf(!hasCollector)('what is away and comes back', () => {
  test('large spans, of which a batch is more than gRPC takes by itself', async () => {
    const store = await startStore();
    const gateway = await startGateway(store, { KEEP_PERCENT: '100', DECISION_WAIT: '1s' });
    const agent = await startAgent({ GATEWAY: gateway.grpc });
    const large = { attributes: { [ATTR.outcome]: 'useful', 'app.note': 'n'.repeat(10_000) } };
    await sendSpans(
      agent.url,
      {},
      Array.from({ length: 600 }, () => large),
    );
    await store.until(
      () => store.spans.length === 600,
      () => `${store.spans.length} of 600; ${agent.log.slice(-2_000)}`,
    );
    expect(agent.complaints()).toEqual([]);
  });

  test('every kept trace arrives: the gateway away while the agent is killed, then the store while the gateway is', async () => {
    const store = await startStore();
    const storePort = Number(new URL(store.url).port);
    const gateway = await startGateway(store, { DECISION_WAIT: '2s' });
    const agent = await startAgent({ GATEWAY: gateway.grpc });
    const services = await TracedServices.start(agent.url);
    undo.push(() => services.stop());
    const expected: Record<string, number> = {};
    let spans = 0;
    const send = async (...kinds: readonly Kind[]) => {
      for (const kind of kinds) {
        const id = await services.send(kind);
        if (kind !== 'useful') expected[id] = spansOf(kind);
        spans += spansOf(kind);
      }
    };
    const arrive = () =>
      store.until(
        () => Object.entries(expected).every(([id, count]) => traces(store).get(id)?.size === count),
        () => JSON.stringify({ expected, arrived: sizes(store) }),
        40_000,
      );

    await send('failed', 'useful', 'repeated');
    await arrive();

    await gateway.stop();
    await send('failed', 'useful', 'cancelled', 'repeated');
    await agent.until('it has taken them', async () => (await agent.figure(ACCEPTED)) === spans);
    await agent.stop('SIGKILL');
    await agent.start();
    await gateway.start();
    await arrive();

    store.stop();
    await send('failed', 'useful', 'repeated');
    await gateway.until('all of it is in the queue', async () => (await gateway.figure(QUEUED)) === 4 + 7);
    await gateway.stop('SIGKILL');
    await gateway.start();
    await store.start(storePort);
    await arrive();
    expect(sizes(store)).toEqual(expected);
  }, 120_000);
});

describe.skipIf(!hasCollector)('a gateway that is told to end', () => {
  test('decides at once, and what the store does not take then waits for the next start', async () => {
    const store = await startStore();
    const storePort = Number(new URL(store.url).port);
    const gateway = await startGateway(store, { DECISION_WAIT: '600s' });
    const [kept = ''] = await sendSpans(gateway.url, {}, [{ attributes: { [ATTR.outcome]: 'expired' } }, {}]);
    store.stop();
    await gateway.stop('SIGTERM');
    await store.start(storePort);
    await gateway.start();
    await store.until(
      () => store.spans.length > 0,
      () => gateway.complaints().join('\n'),
    );
    expect(sizes(store)).toEqual({ [kept]: 1 });
  });
});

describe.skipIf(!hasCollector)('a queue that is full', () => {
  test('refuses what it has no room for, tells the sender to come again, and counts it', async () => {
    const agent = await startAgent({ GATEWAY: `127.0.0.1:${await freePort()}` }, [
      'agent.yaml',
      'yaml:exporters::otlp_grpc/gateway::sending_queue: { queue_size: 1000, batch: { min_size: 100, max_size: 200 } }',
    ]);
    const hundred = Array.from({ length: 100 }, (): HandmadeSpan => ({}));
    for (let i = 0; i < 10; i++) await sendSpans(agent.url, {}, hundred);
    await expect(sendSpans(agent.url, {}, hundred)).rejects.toThrow(/^refused with 503: .*queue is full/);
    expect(await agent.figure(QUEUED, { data_type: 'traces' })).toBe(1000);
    expect(await agent.figure('otelcol_exporter_enqueue_failed_spans')).toBe(100);
  });
});

describe.skipIf(!hasCollector)('two gateways', () => {
  test('each has the whole traces whose ids end in its half of the digits', async () => {
    const [storeA, storeB] = [await startStore(), await startStore()];
    const gatewayA = await startGateway(storeA, { DECISION_WAIT: '2s' });
    const gatewayB = await startGateway(storeB, { DECISION_WAIT: '2s' });
    const agent = await startAgent(
      { GATEWAY_A: gatewayA.grpc, GATEWAY_B: gatewayB.grpc, GATEWAY: gatewayA.grpc },
      ['agent.yaml', 'two-gateways.yaml'],
    );
    const services = await TracedServices.start(agent.url);
    undo.push(() => services.stop());
    const expected: Record<string, number>[] = [{}, {}];
    for (const digit of ['0', '7', '8', 'f', '3', 'c']) {
      const half = digit <= '7' ? expected[0] : expected[1];
      for (const kind of ['failed', 'useful'] as const) {
        const id = await services.send(kind, digit);
        if (kind === 'failed' && half !== undefined) half[id] = spansOf(kind);
      }
    }
    for (const store of [storeA, storeB]) {
      await store.until(
        () => store.spans.length === 3 * spansOf('failed'),
        () => JSON.stringify([sizes(storeA), sizes(storeB)]),
      );
    }
    expect([sizes(storeA), sizes(storeB)]).toEqual(expected);
    expect(await gatewayA.figure(ACCEPTED)).toBe(6 * 4);
    expect(await gatewayB.figure(ACCEPTED)).toBe(6 * 4);
  });
});

describe.skipIf(!hasCollector)('services that have only traces', () => {
  test('their spans are counted before anything is sampled; those of services with the package are not', async () => {
    const store = await startStore();
    const page = await freePort();
    const gateway = await Collector.start(['gateway.yaml', 'metrics-page.yaml', TO_TEST_STORE], {
      TRACES: store.url,
      KEEP_PERCENT: '0',
      PAGE: `127.0.0.1:${page}`,
    });
    undo.push(() => gateway.remove());
    const agent = await startAgent({ GATEWAY: gateway.grpc }, [
      'agent.yaml',
      'yaml:connectors::span_metrics::metrics_flush_interval: 1s',
    ]);
    const services = await TracedServices.start(agent.url);
    undo.push(() => services.stop());
    await services.send('useful');
    const spans: HandmadeSpan[] = [
      { kind: 'server', name: 'GET /old' },
      { kind: 'server', name: 'GET /old' },
      { kind: 'server', name: 'GET /old', isError: true },
      { kind: 'client', name: 'GET' },
      { kind: 'internal', name: 'middleware' },
    ];
    await agent.until('the spans with budgets are there', async () => (await agent.figure(ACCEPTED)) === 4);
    await sendSpans(agent.url, { 'service.name': 'legacy', 'service.instance.id': '1' }, spans);
    let counted: string[] = [];
    await gateway.until('they are counted', async () => {
      const samples = await scrape(`http://127.0.0.1:${page}/metrics`);
      const calls = samples.filter(({ name }) => name === 'traces_span_metrics_calls_total');
      counted = calls
        .map(({ labels: { job, instance, span_name, span_kind, status_code }, value }) =>
          [job, instance, span_name, span_kind, status_code, value].join(' '),
        )
        .sort();
      // Each begins with a 0, so that its first call is an increase.
      return calls.length === 3 && calls.every(({ value }) => value > 0);
    });
    expect(counted).toEqual([
      'legacy 1 GET /old SPAN_KIND_SERVER STATUS_CODE_ERROR 1',
      'legacy 1 GET /old SPAN_KIND_SERVER STATUS_CODE_UNSET 2',
      'legacy 1 GET SPAN_KIND_CLIENT STATUS_CODE_UNSET 1',
    ]);
  });
});
