import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort as freePortNumber } from '../../demo/free-port.ts';
import { isPackageManager } from '../../instrumentation/process/start.ts';
import { Child, installForeign, REGISTER, testFile } from '../support/child.ts';
import { OtlpCollector, type Span } from '../support/otlp-collector.ts';

const OURS = ['--import', REGISTER];
const ESM = testFile('apps/service.mjs');
const CJS = testFile('apps/service.cjs');
const AUTO = pathToFileURL(
  testFile('foreign/otel-3/node_modules/@opentelemetry/auto-instrumentations-node/dist/register.mjs'),
).href;
const flag = (path: string) => ['--import', pathToFileURL(testFile(path)).href];

const collector = new OtlpCollector();
/** What the service calls. Keeps the headers that it is sent. */
let stock: Server;
const sent: IncomingHttpHeaders[] = [];
const running: Child[] = [];

beforeAll(async () => {
  for (const name of ['otel-3', 'otel-2', 'datadog']) installForeign(name);
  stock = createServer((request, response) => {
    sent.push(request.headers);
    response.end('7');
  });
  await Promise.all([collector.start(), new Promise<void>((done) => stock.listen(0, '127.0.0.1', done))]);
}, 180_000);

afterAll(async () => {
  await Promise.all(running.map((child) => child.stop('SIGKILL')));
  collector.stop();
  stock.close();
  stock.closeAllConnections();
});

let count = 0;
interface Service {
  readonly name: string;
  readonly child: Child;
  get(path: string, headers?: Record<string, string>): Promise<{ status: number; body: string }>;
}

async function start(args: readonly string[], env: Record<string, string> = {}): Promise<Service> {
  const name = `service-${++count}`;
  const child = new Child(args, {
    OTEL_SERVICE_NAME: name,
    STOCK_URL: `http://127.0.0.1:${(stock.address() as AddressInfo).port}`,
    ...env,
  });
  running.push(child);
  const port = await child.port();
  return {
    name,
    child,
    async get(path, headers = {}) {
      const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers });
      return { status: response.status, body: await response.text() };
    },
  };
}

/** The standard variables for an SDK, whoever's, that exports everything often. */
function otlp(): Record<string, string> {
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_LOGS_EXPORTER: 'none',
    OTEL_METRIC_EXPORT_INTERVAL: '200',
    OTEL_METRIC_EXPORT_TIMEOUT: '200',
    OTEL_BSP_SCHEDULE_DELAY: '50',
    OTEL_NODE_RESOURCE_DETECTORS: 'env,serviceinstance',
  };
}

/** So rarely that the export at the end is the only one. */
function lastOnly(): Record<string, string> {
  return { ...otlp(), OTEL_TRACES_EXPORTER: 'none', OTEL_METRIC_EXPORT_INTERVAL: '60000' };
}

/** Three orders within 8 s each, ample for a busy machine, answered as they are without us. */
async function order(service: Service): Promise<void> {
  for (const id of ['1', '2', '3']) {
    const answer = await service.get(`/orders/${id}`, { 'x-request-timeout-ms': '8000' });
    expect(answer).toEqual({ status: 200, body: `{"id":"${id}","stock":"7"}` });
  }
}

function who(outcome?: string): Record<string, string> {
  return {
    caller: 'unknown',
    operation: 'GET /orders/:id',
    priority: 'unset',
    ...(outcome ? { outcome } : {}),
  };
}

async function exported(service: Service): Promise<void> {
  const { name } = service;
  await collector.until(
    () => collector.value(name, 'time_budget.outcomes') >= 3,
    () =>
      `outcomes of ${name}: ${collector.metricNames(name)} ${service.child.stdout}${service.child.stderr}`,
  );
}

/** What three orders must have left in the metrics, whoever exported them. */
async function expectMetrics(service: Service): Promise<void> {
  await exported(service);
  const { name } = service;
  expect(collector.series(name, 'time_budget.offered')).toMatchObject([{ labels: who(), value: 3 }]);
  expect(collector.value(name, 'time_budget.outcomes', who('useful'))).toBe(3);
  expect(collector.value(name, 'time_budget.outcomes')).toBe(3);
  expect(collector.series(name, 'time_budget.received.seconds')).toMatchObject([
    { value: 3, sum: expect.closeTo(24, 9) },
  ]);
  expect(collector.value(name, 'time_budget.remaining.seconds', { point: 'before_call' })).toBe(3);
  // One call each, and none to the collector, which is called localhost.
  expect(collector.series(name, 'time_budget.call_duration.seconds')).toMatchObject([
    { labels: { dependency: 'address' }, value: 3 },
  ]);
  expect(collector.value(name, 'time_budget.internal_errors')).toBe(0);
}

/** Three traces, each with one server span and one client span that tell of the budget. */
async function expectTraces({ name, child }: Service): Promise<void> {
  const spans = (kind: Span['kind']) =>
    collector.spans.filter((span) => span.service === name && span.kind === kind);
  await collector.until(
    () => spans('server').length >= 3 && spans('client').length >= 3,
    () =>
      `spans of ${name}: ${JSON.stringify(collector.spans.filter((span) => span.service === name))} ${child.stderr}`,
  );
  expect(spans('server')).toHaveLength(3);
  expect(spans('client')).toHaveLength(3);
  for (const { attributes } of spans('server')) {
    expect(attributes).toMatchObject({
      'time_budget.received_ms': 8000,
      'time_budget.outcome': 'useful',
      'time_budget.operation': 'GET /orders/:id',
    });
  }
  for (const client of spans('client')) {
    expect(client.attributes).toHaveProperty(['time_budget.remaining_before_ms']);
    expect(spans('server').map(({ traceId }) => traceId)).toContain(client.traceId);
  }
}

/** One header of ours on each call, and what the SDK in use adds itself. */
function expectHeaders(calls: readonly IncomingHttpHeaders[], service: Service, isTraced: boolean): void {
  expect(calls).toHaveLength(3);
  for (const headers of calls) {
    expect(headers['time-budget']).toMatch(
      new RegExp(`^remaining=[1-7]\\d{3}, attempt=1, caller=${service.name}$`),
    );
    expect(headers.traceparent === undefined).toBe(!isTraced);
  }
}

async function scrape(port: string): Promise<string> {
  // The page is opened when the service listens, and just after it says so. 'localhost' is the default host.
  for (const until = performance.now() + 10_000; ; ) {
    try {
      return await (await fetch(`http://localhost:${port}/metrics`)).text();
    } catch (error) {
      if (performance.now() > until) throw error;
      await new Promise((again) => setTimeout(again, 20));
    }
  }
}

async function freePort(): Promise<string> {
  return String(await freePortNumber());
}

describe('without an SDK of its own', () => {
  test.each([
    ['an ES module', ESM],
    ['CommonJS', CJS],
  ])('%s is recorded and its page can be scraped', async (_kind, script) => {
    const port = await freePort();
    const service = await start([...OURS, script], { OTEL_EXPORTER_PROMETHEUS_PORT: port });
    const before = sent.length;
    expect(await scrape(port)).toContain(
      'time_budget_expiries_total{dependency="none",phase="pool_wait"} 0\n',
    );
    await order(service);
    const text = await scrape(port);
    const labels = 'caller="unknown",operation="GET /orders/:id"';
    expect(text).toContain(`time_budget_outcomes_total{${labels},priority="unset",outcome="useful"} 3\n`);
    expect(text).toContain(`time_budget_received_seconds_bucket{${labels},le="10"} 3\n`);
    expect(text).toContain('time_budget_call_duration_seconds_count{dependency="address"} 3\n');
    // Scrapes are no requests of the service.
    expect(text.match(/^time_budget_offered_total.*$/gm)).toEqual([
      `time_budget_offered_total{${labels},priority="unset"} 3`,
    ]);
    expect(text).toMatch(new RegExp(`^target_info\\{.*service_name="${service.name}"`, 'm'));
    expect(text).not.toMatch(/process_command|process_owner|process_executable/);
    expectHeaders(sent.slice(before), service, false);
    expect(service.child.stderr).toBe('');
  });

  test('traces and metrics over OTLP by the standard variables; a sampler leaves the metrics as they are', async () => {
    const [traced, silent] = await Promise.all([
      start([...OURS, ESM], otlp()),
      start([...OURS, ESM], { ...otlp(), OTEL_TRACES_SAMPLER: 'always_off' }),
    ]);
    const before = sent.length;
    await order(traced);
    expectHeaders(sent.slice(before), traced, true);
    await order(silent);
    await Promise.all([expectMetrics(traced), expectTraces(traced), expectMetrics(silent)]);
    // Instrumentation-express finds the route, so it must have wrapped Express in time.
    const server = collector.spans.find(({ service, kind }) => service === traced.name && kind === 'server');
    expect(server).toMatchObject({ name: 'GET /orders/:id', scope: '@opentelemetry/instrumentation-http' });
    const seriesOf = ({ name }: Service) =>
      collector
        .metricNames(name)
        // Which phases a call has is a matter of timing.
        .filter((metric) => metric.startsWith('time_budget.') && metric !== 'time_budget.call_phase.seconds')
        .flatMap((metric) =>
          collector.series(name, metric)?.map(({ labels }) => `${metric} ${JSON.stringify(labels)}`),
        )
        .sort();
    expect(seriesOf(silent)).toEqual(seriesOf(traced));
    expect(collector.spans.filter(({ service }) => service === silent.name)).toEqual([]);
    expect(traced.child.stderr + silent.child.stderr).toBe('');
  });

  test('several exporters, and one that is unknown', async () => {
    const port = await freePort();
    const service = await start([...OURS, ESM], {
      ...otlp(),
      OTEL_TRACES_EXPORTER: 'none',
      OTEL_METRICS_EXPORTER: 'prometheus, console,statsd',
      OTEL_EXPORTER_PROMETHEUS_PORT: port,
    });
    const before = sent.length;
    await order(service);
    expect(await scrape(port)).toContain('outcome="useful"} 3\n');
    await service.child.says(/name: 'time_budget\.offered'/);
    expectHeaders(sent.slice(before), service, false);
    expect(service.child.stderr).toBe(
      'otel-time-budget: OTEL_METRICS_EXPORTER: "statsd" is none of prometheus, otlp, console, none\n',
    );
    expect(collector.exports.get(service.name)).toBeUndefined();
  });

  test('mode enforce says what it does not do yet, and the service runs', async () => {
    const env = { OTEL_METRICS_EXPORTER: 'none', TIME_BUDGET_MODE: 'enforce' };
    const service = await start([...OURS, ESM], env);
    await order(service);
    expect(service.child.stderr).toBe(
      'otel-time-budget: mode enforce: so far the retry guard and admission gates refuse; other requests and calls are recorded, and not refused or stopped\n',
    );
  });

  test('none: headers and spans go on, nothing is exported and no port is opened', async () => {
    const env = { OTEL_METRICS_EXPORTER: 'none', OTEL_EXPORTER_PROMETHEUS_PORT: await freePort() };
    const service = await start([...OURS, ESM], env);
    const before = sent.length;
    await order(service);
    expectHeaders(sent.slice(before), service, false);
    await expect(fetch(`http://localhost:${env.OTEL_EXPORTER_PROMETHEUS_PORT}/metrics`)).rejects.toThrow(
      'fetch failed',
    );
    expect(service.child.stderr).toBe('');
  });
});

describe('beside an SDK of the service', () => {
  test.each([
    ['auto-instrumentations before ours', ['--import', AUTO, ...OURS, ESM]],
    ['auto-instrumentations after ours', [...OURS, '--import', AUTO, ESM]],
    [
      'auto-instrumentations by --require',
      ['--require', fileURLToPath(AUTO).replace('.mjs', '.cjs'), ...OURS, CJS],
    ],
    ['NodeSDK 3.x of a file after ours', [...OURS, ...flag('foreign/otel-3/sdk.mjs'), ESM]],
    ['NodeSDK 3.x started by the main script', [...OURS, testFile('foreign/otel-3/main.mjs')]],
    ['NodeSDK 2.x of a file before ours', ['--require', testFile('foreign/otel-2/sdk.cjs'), ...OURS, CJS]],
    ['NodeSDK 2.x of a file after ours', [...OURS, ...flag('foreign/otel-2/sdk.cjs'), ESM]],
    ['NodeSDK 2.x started by the main script', [...OURS, testFile('foreign/otel-2/main.cjs')]],
    ['J5: ours by the flag and in the list', [...OURS, testFile('foreign/otel-3/with-ours.mjs')]],
    ['J5: ours by two flags', [...OURS, '--import', `${REGISTER}?again`, '--import', AUTO, ESM]],
    ['ours in the list of NodeSDK 3.x only', [testFile('foreign/otel-3/with-ours.mjs')]],
    ['ours in the list of NodeSDK 2.x only', [testFile('foreign/otel-2/with-ours.mjs')]],
  ])('%s: one span, one record, one header, and its exporter', async (_name, args) => {
    const service = await start(args, otlp());
    const before = sent.length;
    await order(service);
    expectHeaders(sent.slice(before), service, true);
    await Promise.all([expectMetrics(service), expectTraces(service)]);
    expect(service.child.stderr).toBe('');
  });

  test("Datadog's tracer provider: attributes on its spans, and metrics of our own", async () => {
    const port = await freePort();
    const service = await start([...OURS, '--require', testFile('foreign/datadog/sdk.cjs'), ESM], {
      // Asks for traces of ours too, if nobody else made any.
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_PROMETHEUS_PORT: port,
      DD_TRACE_EXPERIMENTAL_EXPORTER: 'log',
    });
    const before = sent.length;
    await order(service);
    expectHeaders(sent.slice(before), service, true);
    const text = await scrape(port);
    expect(text).toContain('outcome="useful"} 3\n');
    await service.child.says(
      /"name":"express\.request".*"time_budget\.outcome":"useful".*"time_budget\.received_ms":8000/,
    );
    expect(collector.spans.filter(({ service: name }) => name === service.name)).toEqual([]);
    expect(service.child.stderr).toBe('');
  });

  test('TIME_BUDGET_SDK=off: no SDK and no port of ours, though nobody else has one', async () => {
    const env = { TIME_BUDGET_SDK: 'off', OTEL_EXPORTER_PROMETHEUS_PORT: await freePort() };
    const service = await start([...OURS, ESM], env);
    await order(service);
    await expect(fetch(`http://localhost:${env.OTEL_EXPORTER_PROMETHEUS_PORT}/metrics`)).rejects.toThrow(
      'fetch failed',
    );
    expect(service.child.stderr).toBe('');
  });

  test('TIME_BUDGET_SDK=on: at once, without waiting for the service', async () => {
    const port = await freePort();
    const env = { TIME_BUDGET_SDK: 'on', OTEL_EXPORTER_PROMETHEUS_PORT: port };
    const child = new Child([...OURS, '--eval', 'setTimeout(() => {}, 10_000)'], env);
    running.push(child);
    expect(await scrape(port)).toContain('time_budget_internal_errors_total 0\n');
    expect(await child.stop()).toEqual({ code: null, signal: 'SIGTERM' });
  });
});

describe('what goes wrong leaves the service as it is', () => {
  test.each([
    [
      'a setting that is not allowed',
      { TIME_BUDGET_MODE: 'observing' },
      [
        'TIME_BUDGET_MODE: "observing" is not allowed; use observe or propagate or enforce',
        'not started; the service runs without it',
      ],
    ],
    [
      'a file that is missing',
      { TIME_BUDGET_CONFIG: '/nowhere/budget.yaml' },
      [
        '/nowhere/budget.yaml: cannot be read: there is no such file',
        'not started; the service runs without it',
      ],
    ],
    [
      'a choice that there is not',
      { TIME_BUDGET_SDK: 'yes' },
      [
        'TIME_BUDGET_SDK: "yes" is not allowed; use auto or on or off',
        'not started; the service runs without it',
      ],
    ],
    ['switched off', { TIME_BUDGET_DISABLED: 'true', TIME_BUDGET_MODE: 'observing' }, []],
  ])('%s', async (_name, env, lines) => {
    const service = await start([...OURS, ESM], env);
    const before = sent.length;
    await order(service);
    for (const headers of sent.slice(before)) expect(headers).not.toHaveProperty(['time-budget']);
    expect(service.child.stderr).toBe(lines.map((line) => `otel-time-budget: ${line}\n`).join(''));
  });

  test('a port that is in use is one line; the second service serves, and exports nothing', async () => {
    const port = await freePort();
    const first = await start([...OURS, ESM], { OTEL_EXPORTER_PROMETHEUS_PORT: port });
    await scrape(port);
    const second = await start([...OURS, ESM], { OTEL_EXPORTER_PROMETHEUS_PORT: port });
    await order(second);
    expect(second.child.stderr).toBe(
      `otel-time-budget: metrics cannot be scraped, port ${port} of localhost is in use: set ` +
        'OTEL_EXPORTER_PROMETHEUS_PORT (and _HOST) to a free one, or OTEL_METRICS_EXPORTER to otlp or none\n',
    );
    expect(await scrape(port)).toContain(`service_name="${first.name}"`);
  });

  test('a Node that is too old is told in one line, before anything else is loaded', async () => {
    const version = `data:text/javascript,${encodeURIComponent(
      "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } });",
    )}`;
    const service = await start(['--import', version, ...OURS, ESM]);
    await order(service);
    expect(service.child.stderr).toBe(
      'otel-time-budget: needs Node ^22.22.3 || ^24.11.1 || >=26, this is 20.20.2: update Node; until then the ' +
        'service runs without it\n',
    );
  });

  test('a worker thread starts nothing of its own', async () => {
    const port = await freePort();
    const code = `
      import { Worker } from 'node:worker_threads';
      const work = 'import { createServer } from "node:http"; createServer().listen(0, () => setTimeout(process.exit, 300))';
      new Worker(work, { eval: true })
        .on('exit', () => console.log('listening on 1'));
      setTimeout(() => {}, 10_000);
    `;
    const child = new Child([...OURS, '--input-type=module', '--eval', code], {
      OTEL_EXPORTER_PROMETHEUS_PORT: port,
    });
    running.push(child);
    await child.port();
    await expect(fetch(`http://localhost:${port}/metrics`)).rejects.toThrow('fetch failed');
    expect(child.stderr).toBe('');
  });
});

test.each([
  ['with a page', {}],
  ['with traces', { OTEL_TRACES_EXPORTER: 'otlp' }],
])(
  'J7: a command without an extension, with barrels in a cycle, runs as without us, %s',
  async (_name, env) => {
    const script = testFile('apps/command/run');
    const [without, ours] = await Promise.all([
      new Child([script], {}).output(),
      new Child([...OURS, script], { ...env, OTEL_METRICS_EXPORTER: 'none' }).output(),
    ]);
    expect(without).toEqual({ code: 0, signal: null, stdout: 'a b c http later 2 1 true\n', stderr: '' });
    expect(ours).toEqual(without);
  },
);

describe('processes that are not the service', () => {
  test('workers of a cluster: one line, no page, and the primary takes no port', async () => {
    const port = await freePort();
    const service = await start([...OURS, testFile('apps/cluster.mjs')], {
      OTEL_EXPORTER_PROMETHEUS_PORT: port,
    });
    expect(await service.get('/')).toEqual({ status: 200, body: 'done' });
    await service.child.says(/2 workers listen/);
    await expect(fetch(`http://localhost:${port}/metrics`)).rejects.toThrow('fetch failed');
    expect(service.child.stderr).toBe(
      'otel-time-budget: the workers of a cluster share one port, so each scrape would show another one: their ' +
        'metrics are not exported, set OTEL_METRICS_EXPORTER=otlp\n',
    );
    expect(await service.child.stop()).toEqual({ code: null, signal: 'SIGTERM' });
  });

  test.each([
    ['/usr/lib/node_modules/npm/bin/npm-cli.js', true],
    ['/usr/bin/npx', true],
    ['/opt/yarn/bin/yarn.js', true],
    ['C:\\npm\\pnpm.cjs', true],
    ['/app/npm-cli-service.js', false],
    ['/app/corepacker.js', false],
    ['/app/server.js', false],
    [undefined, false],
  ])('a package manager with the flag in NODE_OPTIONS starts nothing: %s %s', (script, expected) => {
    expect(isPackageManager(script)).toBe(expected);
  });
});

describe('the end of the process', () => {
  const ENDING = testFile('apps/ending.mjs');

  /** Starts it, sends `requests` and then, while they run, the signal; tells how it ended. */
  async function end(
    flags: readonly string[],
    how: string,
    signal: NodeJS.Signals | undefined,
    env: Record<string, string> = {},
    requests = 1,
  ) {
    const service = await start([...flags, ENDING, how], env);
    const get = () =>
      service.get('/').then(
        ({ body }) => body,
        () => 'no answer',
      );
    // Endings without a signal begin with the first answer.
    const answers = signal === undefined ? [] : [await get()];
    const rest = Array.from({ length: requests }, get);
    if (signal !== undefined) {
      await new Promise((later) => setTimeout(later, 150));
      service.child.signal(signal);
    }
    answers.push(...(await Promise.all(rest)));
    const startedAt = performance.now();
    const ended = await service.child.ended;
    const ms = performance.now() - startedAt;
    const { stdout, stderr } = service.child;
    // One listener more or less changes the lines of Node's own files in a stack trace.
    const seen = {
      ...ended,
      stdout: stdout.replace(/\d+/, 'PORT'),
      stderr: stderr.replaceAll(/\(node:.*\)/g, ''),
    };
    return { name: service.name, ms, seen: { ...seen, answers } };
  }

  test.each([
    ['close', undefined, { code: 0, signal: null }, 1],
    ['exit', undefined, { code: 3, signal: null }, 1],
    ['exitCode', undefined, { code: 4, signal: null }, 1],
    ['throw', undefined, { code: 1, signal: null }, 1],
    // What is under way when the process dies has no outcome.
    ['nothing', 'SIGTERM', { code: null, signal: 'SIGTERM' }, 1],
    ['nothing', 'SIGINT', { code: null, signal: 'SIGINT' }, 1],
    ['nothing', 'SIGHUP', { code: null, signal: 'SIGHUP' }, 0],
    ['graceful', 'SIGTERM', { code: 5, signal: null }, 2],
    ['once', 'SIGINT', { code: 0, signal: null }, 2],
    ['ignore', 'SIGTERM', { code: 6, signal: null }, 2],
    ['late', 'SIGTERM', { code: 7, signal: null }, 1],
  ] as const)('%s, %s: as without us, with a page and with OTLP', async (how, signal, expected, outcomes) => {
    const [without, page, pushed] = await Promise.all([
      end([], how, signal),
      end(OURS, how, signal, { OTEL_EXPORTER_PROMETHEUS_PORT: await freePort() }),
      end(OURS, how, signal, lastOnly()),
    ]);
    expect(without.seen).toMatchObject(expected);
    expect(page.seen).toEqual(without.seen);
    expect(pushed.seen).toEqual(without.seen);
    // Every outcome there was has been exported, once.
    expect(collector.value(pushed.name, 'time_budget.outcomes')).toBe(outcomes);
    expect(collector.exports.get(pushed.name)).toBe(outcomes === 0 ? undefined : 1);
  });

  test('M9: the outcomes of the requests that a shutdown waits for are exported, once', async () => {
    const { seen, name } = await end(OURS, 'graceful', 'SIGTERM', lastOnly(), 5);
    expect(seen).toMatchObject({
      code: 5,
      signal: null,
      stderr: '',
      answers: Array.from({ length: 6 }, () => 'done'),
    });
    expect(collector.value(name, 'time_budget.outcomes', { outcome: 'useful' })).toBe(6);
    expect(collector.exports.get(name)).toBe(1);
  });

  test('beside another SDK the end is not ours: no export of our own, and no listener', async () => {
    const service = await start([...OURS, ...flag('foreign/otel-3/sdk.mjs'), ESM], lastOnly());
    await order(service);
    // The provider is found within a tenth of a second.
    await new Promise((later) => setTimeout(later, 300));
    expect(await service.child.stop()).toEqual({ code: null, signal: 'SIGTERM' });
    expect(collector.exports.get(service.name)).toBeUndefined();
  });

  test('a collector that is not there, and one that never answers, hold the end for a second or so', async () => {
    const silent = createServer(() => {});
    await new Promise<void>((done) => silent.listen(0, '127.0.0.1', done));
    const urls = [
      `http://127.0.0.1:${await freePort()}`,
      `http://127.0.0.1:${(silent.address() as AddressInfo).port}`,
    ];
    const ends = await Promise.all(
      urls.map((url) =>
        end(OURS, 'exit', undefined, {
          OTEL_METRICS_EXPORTER: 'otlp',
          OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: url,
        }),
      ),
    );
    silent.close();
    silent.closeAllConnections();
    for (const { seen, ms } of ends) {
      expect(seen).toMatchObject({ code: 3, signal: null, stderr: '' });
      // The answer takes 300 ms of it, and two processes start a thread each.
      expect(ms).toBeLessThan(4_000);
    }
  });

  test('K4, M11: a scraper that keeps its connection does not hold the process', async () => {
    const port = await freePort();
    const service = await start([...OURS, ENDING, 'close'], { OTEL_EXPORTER_PROMETHEUS_PORT: port });
    // `fetch` keeps the connection open for a while.
    await scrape(port);
    await service.get('/', { 'x-request-timeout-ms': '60000' });
    const startedAt = performance.now();
    expect(await service.child.ended).toEqual({ code: 0, signal: null });
    expect(performance.now() - startedAt).toBeLessThan(2_000);
  });

  test('M11: a short script ends by itself, and at once', async () => {
    const child = new Child([...OURS, '--eval', 'console.log("done")'], otlp());
    expect(await child.ended).toEqual({ code: 0, signal: null });
    expect(child.stdout).toBe('done\n');
    expect(child.stderr).toBe('');
  });
});
