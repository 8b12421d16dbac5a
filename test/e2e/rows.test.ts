/** Rows of the requirements and of the cases that take real processes to show. */
import http, { type IncomingHttpHeaders, type Server } from 'node:http';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { testFile } from '../support/child.ts';
import { close, listen, until } from '../support/loopback.ts';
import { OtlpCollector } from '../support/otlp-collector.ts';
import { type Metrics, Service, type ServiceOptions } from '../support/service.ts';
import { Wire } from '../support/stage.ts';

const SHIFTED_CLOCK = pathToFileURL(testFile('apps/shifted-clock.mjs')).href;
const HOUR_MS = 3_600_000;

interface Arrival {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly at: number;
}

/** What the last hop calls. `/slow` answers after 300 ms, `/stall` sends a head and no body, `/hang` nothing. */
let peer: Server;
let peerUrl = '';
const arrivals: Arrival[] = [];
const services: Service[] = [];

beforeAll(async () => {
  peer = http.createServer((request, response) => {
    const url = request.url ?? '';
    arrivals.push({ url, headers: request.headers, at: performance.now() });
    if (url === '/hang') return;
    if (url === '/stall') response.writeHead(200, { 'content-length': 10 }).write('half');
    else if (url === '/slow' || url === '/queue') setTimeout(() => response.end('slow'), 300);
    else response.end('ok');
  });
  peerUrl = `http://127.0.0.1:${await listen(peer)}`;
});

afterEach(async () => {
  arrivals.length = 0;
  await Promise.all(services.splice(0).map((service) => service.stop()));
});

afterAll(async () => {
  await close(peer);
});

async function start(script: string, options: ServiceOptions = {}): Promise<Service> {
  const service = await Service.start(`apps/${script}`, {
    ...options,
    env: { NEXT_URL: peerUrl, ...options.env },
  });
  services.push(service);
  return service;
}

interface Hop {
  readonly budget: string | undefined;
  readonly timeout: string | undefined;
  readonly spentMs: number;
  readonly wallMs: number;
}

/** What each hop was sent, and the answer of the peer. */
async function ask(service: Service, path: string, budgetMs?: number) {
  const headers: Record<string, string> =
    budgetMs === undefined ? {} : { 'x-request-timeout-ms': String(budgetMs) };
  const response = await fetch(service.origin + path, { headers });
  const all = (await response.json()) as (Hop | string)[];
  return {
    hops: all.filter((hop) => typeof hop !== 'string'),
    peer: all.find((hop) => typeof hop === 'string'),
  };
}

function remainingOf(header: string | string[] | undefined): number {
  return Number(/\bremaining=(\d+)/.exec(String(header))?.[1] ?? Number.NaN);
}

function counted(metrics: Metrics, name: string, value: number, labels = {}): boolean {
  return metrics.value(`time_budget_${name}`, labels) === value;
}

describe('what arrives', () => {
  test('T-01: no limit sent: the default holds, down the chain as well, and is no received value', async () => {
    const service = await start('hop.mjs', { env: { TIME_BUDGET_DEFAULT_MS: '800' } });
    const { peer: answer } = await ask(service, '/');
    expect(answer).toBe('ok');
    expect(remainingOf(arrivals[0]?.headers['time-budget'])).toBeLessThanOrEqual(800);
    expect(remainingOf(arrivals[0]?.headers['time-budget'])).toBeGreaterThan(0);
    const metrics = await service.until((each) => counted(each, 'outcomes_total', 1));
    expect(metrics.value('time_budget_verdicts_total', { verdict: 'defaulted' })).toBe(1);
    expect(metrics.value('time_budget_received_seconds_count')).toBe(0);
  });

  test('T-01: its signal fires when it is over, and not before', async () => {
    const service = await start('signal.mjs', { env: { TIME_BUDGET_DEFAULT_MS: '600' } });
    await ask(service, '/until-signal').catch(() => {});
    const sentAt = performance.now();
    const text = await (await fetch(`${service.origin}/until-signal`)).text();
    expect(text).toBe('deadline_exceeded');
    // It counts from the arrival, which may have been before it was seen: that bound is what the rest is for.
    expect(performance.now() - sentAt).toBeGreaterThan(200);
  });

  test('T-02: half an hour becomes the ceiling, and the next hop gets that less the reserve', async () => {
    const service = await start('hop.mjs', {
      env: { TIME_BUDGET_CEILING_MS: '1000', TIME_BUDGET_RESERVE_MS: '100' },
    });
    await ask(service, '/', 1_800_000);
    expect(remainingOf(arrivals[0]?.headers['time-budget'])).toBeLessThanOrEqual(900);
    const metrics = await service.until((each) => counted(each, 'outcomes_total', 1));
    expect(metrics.value('time_budget_verdicts_total', { verdict: 'clamped_high' })).toBe(1);
    expect(metrics.value('time_budget_received_seconds_sum')).toBe(1800);
  });
});

describe('clocks', () => {
  test('T-09, P-10: three services whose clocks differ by minutes and days: what is left never grows', async () => {
    const offsets = [7 * 60_000, -13 * 60_000, 24 * HOUR_MS];
    const chain: Service[] = [];
    for (const offset of [...offsets].reverse()) {
      const nextUrl = chain[0]?.origin ?? peerUrl;
      const env = { CLOCK_OFFSET_MS: String(offset), SPEND_MS: '15', NEXT_URL: nextUrl };
      chain.unshift(await start('hop.mjs', { before: [SHIFTED_CLOCK], env }));
    }
    const [first] = chain;
    if (first === undefined) throw new Error('there is a chain');
    for (let i = 0; i < 5; i++) {
      const { hops } = await ask(first, '/', 4000);
      const wall = hops.map(({ wallMs }) => Math.round((wallMs - Date.now()) / 60_000));
      expect(wall).toEqual([7, -13, 24 * 60]);
      const budgets = [4000, ...hops.slice(1).map(({ budget }) => remainingOf(budget))];
      const last = remainingOf(arrivals.at(-1)?.headers['time-budget']);
      for (const [at, budget] of [...budgets.slice(1), last].entries()) {
        // Each hop has at least spent what it says, and a whole number is handed down.
        expect(budget).toBeLessThanOrEqual((budgets[at] ?? 0) - Math.floor(hops[at]?.spentMs ?? 0));
        expect(budget).toBeGreaterThan(0);
      }
    }
    for (const service of chain) {
      const metrics = await service.until((each) =>
        counted(each, 'outcomes_total', 5, { outcome: 'useful' }),
      );
      expect(metrics.value('time_budget_violations_total')).toBe(0);
    }
  });

  test.each([HOUR_MS, -HOUR_MS])(
    'T-32, C6: the wall clock is set by %d ms during a request',
    async (step) => {
      const service = await start('hop.mjs', { before: [SHIFTED_CLOCK] });
      const sentAt = performance.now();
      const { hops } = await ask(service, `/?spend=120&step=${step}`, 5000);
      const elapsedS = (performance.now() - sentAt) / 1000;
      expect(Math.abs((hops[0]?.wallMs ?? 0) - Date.now() - step)).toBeLessThan(60_000);
      const left = remainingOf(arrivals[0]?.headers['time-budget']);
      // An hour forth would leave nothing, an hour back more than there was.
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(5000 - Math.floor(hops[0]?.spentMs ?? 0));
      const metrics = await service.until((each) =>
        counted(each, 'outcomes_total', 1, { outcome: 'useful' }),
      );
      for (const name of ['useful_duration', 'processing', 'call_duration', 'queue']) {
        const seconds = metrics.value(`time_budget_${name}_seconds_sum`);
        expect(seconds, name).toBeGreaterThanOrEqual(name === 'processing' ? 0.119 : 0);
        // A request's queue may be bounded by more than has passed since it was sent, never by an hour.
        expect(seconds, name).toBeLessThan(elapsedS + 5);
      }
    },
  );

  test('C11: frozen for a second and more with timers pending: every expiry is counted once', async () => {
    const service = await start('hop.mjs');
    await ask(service, '/');
    const asked = Array.from({ length: 20 }, () => ask(service, '/hang?limit=600', 300));
    await until(() => arrivals.filter(({ url }) => url === '/hang').length === 20, 'twenty calls');
    service.child.signal('SIGSTOP');
    await new Promise((resolve) => setTimeout(resolve, 1200));
    service.child.signal('SIGCONT');
    for (const { peer: answer } of await Promise.all(asked)) expect(answer).toBe('TimeoutError');
    const metrics = await service.until((each) => counted(each, 'outcomes_total', 21));
    expect(metrics.value('time_budget_outcomes_total', { outcome: 'late' })).toBe(20);
    expect(metrics.value('time_budget_expiries_total')).toBe(20);
    expect(metrics.value('time_budget_expiry_causes_total')).toBe(20);
    expect(metrics.value('time_budget_calls_cut_off_total')).toBe(20);
    expect(metrics.value('time_budget_executing')).toBe(0);
    expect(metrics.value('time_budget_internal_errors_total')).toBe(0);
  });
});

describe('calls', () => {
  test('B-16: a call that has waited for a socket says what is left when it is sent', async () => {
    const service = await start('hop.mjs');
    await Promise.all([1, 2, 3].map(() => ask(service, '/queue', 5000)));
    expect(arrivals).toHaveLength(3);
    const left = arrivals.map(({ headers }) => remainingOf(headers['time-budget']));
    // Each answer takes 300 ms, and the service has seen the requests within 150 ms of each other.
    expect(left[1]).toBeLessThanOrEqual(5000 - 150);
    expect(left[2]).toBeLessThanOrEqual((left[1] ?? 0) - 150);
    expect(left[2]).toBeGreaterThan(0);
    const metrics = await service.until((each) => counted(each, 'outcomes_total', 3));
    expect(metrics.value('time_budget_call_phase_seconds_sum', { phase: 'pool_wait' })).toBeGreaterThan(0.3);
  });

  test('B-26, B-40: 600 of 2,000 spent and a fresh 2,000 sent: a reset on both sides, and at most 1,400 down', async () => {
    const child = await start('hop.mjs');
    const parent = await start('hop.mjs', { env: { NEXT_URL: child.origin } });
    const { hops } = await ask(parent, '/?spend=600&fresh=2000', 2000);
    expect(hops[1]?.timeout).toBe('2000');
    expect(remainingOf(hops[1]?.budget)).toBeLessThanOrEqual(1400);
    // The smaller of the two is what the child works with, and hands on.
    expect(remainingOf(arrivals[0]?.headers['time-budget'])).toBeLessThanOrEqual(1400);
    for (const service of [parent, child]) {
      const metrics = await service.until((each) => counted(each, 'outcomes_total', 1));
      expect(metrics.value('time_budget_violations_total', { kind: 'reset' })).toBe(1);
    }
  });

  test('T-35: the head arrives in time and the body stalls: the time ran out in phase response', async () => {
    const service = await start('hop.mjs');
    const { peer: answer } = await ask(service, '/stall?limit=1600', 1000);
    expect(answer).toBe('TimeoutError');
    const metrics = await service.until((each) => counted(each, 'outcomes_total', 1));
    expect(metrics.value('time_budget_outcomes_total', { outcome: 'late' })).toBe(1);
    expect(metrics.value('time_budget_expiries_total', { phase: 'response', dependency: 'address' })).toBe(1);
    expect(metrics.value('time_budget_expiries_total')).toBe(1);
    expect(metrics.value('time_budget_calls_cut_off_total')).toBe(1);
  });

  test('K1: two hundred calls with the signal of the budget: no warning, and no more listeners than without', async () => {
    const service = await start('signal.mjs', { env: { TIME_BUDGET_DEFAULT_MS: '30000' } });
    const { ofBudget, own, warnings } = (await (await fetch(service.origin)).json()) as {
      readonly ofBudget: number;
      readonly own: number;
      readonly warnings: readonly string[];
    };
    expect(warnings).toEqual([]);
    expect(ofBudget).toBe(own);
    expect(service.child.stderr).toBe('');
  });
});

describe('clients that leave', () => {
  const collector = new OtlpCollector();
  beforeAll(() => collector.start());
  afterAll(() => collector.stop());

  const traced = () => ({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
    OTEL_TRACES_EXPORTER: 'otlp',
    OTEL_METRICS_EXPORTER: 'prometheus',
    OTEL_LOGS_EXPORTER: 'none',
    OTEL_BSP_SCHEDULE_DELAY: '20',
    OTEL_LOG_LEVEL: 'warn',
  });

  test('J9, J10: while a call is out: every span ends once, and none is written to after its end', async () => {
    const service = await start('slow.mjs', { env: { ...traced(), OTEL_SERVICE_NAME: 'leaving' } });
    const wires = [1, 2, 3].map(() =>
      new Wire(service.port).send('GET /slow HTTP/1.1\r\nHost: a\r\nx-request-timeout-ms: 9000\r\n\r\n'),
    );
    await until(() => arrivals.length === 3, 'three calls');
    for (const [at, wire] of wires.entries()) wire.leave(at === 0 ? 'fin' : 'reset');
    await until(() => service.child.stdout.split('handler is over').length === 4, 'the end of the handlers');
    const spans = () => collector.spans.filter((span) => span.service === 'leaving');
    await collector.until(
      () => spans().filter(({ kind }) => kind !== 'other').length >= 6,
      () => JSON.stringify(spans()),
    );
    const metrics = await service.until((each) =>
      counted(each, 'outcomes_total', 3, { outcome: 'cancelled' }),
    );
    expect(metrics.value('time_budget_post_cancel_items_total', { kind: 'handler' })).toBe(3);
    const servers = spans().filter(({ kind }) => kind === 'server');
    expect(servers).toHaveLength(3);
    for (const { attributes } of servers) {
      expect(attributes).toMatchObject({
        'time_budget.outcome': 'cancelled',
        'time_budget.cancel.source': 'client_disconnect',
      });
    }
    const clients = spans().filter(({ kind }) => kind === 'client');
    expect(clients).toHaveLength(3);
    for (const { attributes } of clients) expect(attributes).toHaveProperty(['time_budget.post_cancel_ms']);
    expect(new Set(spans().map(({ spanId }) => spanId)).size).toBe(spans().length);
    expect(service.child.stderr).toBe('');
  });

  test('J9: a span that is written to after its end would have been complained of', async () => {
    const service = await start('slow.mjs', {
      env: { ...traced(), TIME_BUDGET_SDK: 'on' },
      after: [pathToFileURL(testFile('apps/late-span.mjs')).href],
    });
    expect(service.child.stderr).toMatch(/ended span/i);
  });
});
