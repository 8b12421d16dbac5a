import { once } from 'node:events';
import type { Span } from '@opentelemetry/api';
import { ConsecutiveBreaker, ConstantBackoff, circuitBreaker, handleAll, retry, wrap } from 'cockatiel';
import CircuitBreaker from 'opossum';
import pRetry from 'p-retry';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { enterScope } from '../../src/current.ts';
import type { RequestRecord } from '../../src/records.ts';
import {
  guardBackoff,
  guardPRetry,
  mayRetry,
  retryBudget,
  watchCockatielBreaker,
  watchFallback,
  watchOpossumBreaker,
} from '../../src/retry/index.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import {
  DEPENDENCY,
  type FailingServer,
  fetchItems,
  type RetryStage,
  startFailingServer,
  startRetryStage,
} from '../support/retry-stage.ts';

const AMPLE: ConfigOptions = {
  retryBudgets: { stock: { model: 'token_bucket', ratio: 0, reservePerSecond: 1, ttlMs: 10_000 } },
};

let server: FailingServer;
let stage: RetryStage;

beforeEach(async () => {
  enterScope(undefined);
  server = await startFailingServer();
});

afterEach(async () => {
  stage.stop();
  await server.close();
});

const settled = (work: Promise<unknown>): Promise<unknown> => work.catch((error: unknown) => error);

function states(): Record<string, number> {
  const of = (state: string) => stage.t.value('breakerState', { dependency: DEPENDENCY, state });
  return { closed: of('closed'), half_open: of('half_open'), open: of('open') };
}

function transitions(): number[] {
  const of = (state: string) => stage.t.value('breakerTransitions', { dependency: DEPENDENCY, state });
  return [of('closed'), of('half_open'), of('open')];
}

const blocked = () => stage.t.value('breakerBlocked', { dependency: DEPENDENCY });
const probes = () => stage.t.value('breakerProbes', { dependency: DEPENDENCY });

/** One of cockatiel that opens after so many failures, for as long as `openForMs` says. */
function cockatielBreaker(failures: number) {
  const state = { openForMs: 60_000 };
  const halfOpenAfter = {
    get duration() {
      return state.openForMs;
    },
    next() {
      return this;
    },
  };
  const breaker = circuitBreaker(handleAll, {
    halfOpenAfter,
    breaker: new ConsecutiveBreaker(failures),
  });
  return { breaker: watchCockatielBreaker(DEPENDENCY, breaker), state };
}

function opossumBreaker(action: () => Promise<unknown>, resetTimeout = 60_000) {
  const options = { volumeThreshold: 1, errorThresholdPercentage: 1, timeout: false, resetTimeout } as const;
  return watchOpossumBreaker(DEPENDENCY, new CircuitBreaker(action, options));
}

interface Event {
  readonly name: string;
  readonly attributes: Record<string, unknown>;
}

/** Keeps the events of a request. */
function spanOf(record: RequestRecord): Event[] {
  const events: Event[] = [];
  const span = {
    addEvent: (name: string, attributes: Record<string, unknown>) => events.push({ name, attributes }),
    isRecording: () => false,
  };
  // Only these two are used before a request ends that does not record.
  record.span = span as unknown as Span;
  return events;
}

describe('M-25, S-22: what a breaker of cockatiel does', () => {
  test('every state has its series from the start, one of them 1', () => {
    stage = startRetryStage(server.port, {});
    cockatielBreaker(1);
    expect(states()).toEqual({ closed: 1, half_open: 0, open: 0 });
    expect(transitions()).toEqual([0, 0, 0]);
    expect(stage.t.recorder.families.breakerBlocked.cells).toHaveLength(1);
    expect(stage.t.recorder.families.breakerProbes.cells).toHaveLength(1);
  });

  test('open, blocked, a probe that fails, one that does not', async () => {
    stage = startRetryStage(server.port, {});
    const { breaker, state } = cockatielBreaker(2);
    const ask = () => settled(breaker.execute(() => fetchItems(server.url)));
    server.failures = 3;
    await ask();
    expect(states()).toEqual({ closed: 1, half_open: 0, open: 0 });
    await ask();
    expect(states()).toEqual({ closed: 0, half_open: 0, open: 1 });
    expect(await ask()).toHaveProperty('isBrokenCircuitError', true);
    expect([blocked(), probes(), server.arrivals]).toEqual([1, 0, 2]);

    state.openForMs = 0;
    await ask();
    expect([states().open, probes(), server.arrivals]).toEqual([1, 1, 3]);
    expect(await ask()).toBe('stocked');
    expect(states()).toEqual({ closed: 1, half_open: 0, open: 0 });
    expect(transitions()).toEqual([1, 2, 2]);
    expect([blocked(), probes()]).toEqual([1, 2]);
    // The probe itself came before the close.
    expect(stage.t.histogram('breakerAfterClose', { dependency: DEPENDENCY }).count).toBe(0);
    await ask();
    expect(stage.t.histogram('breakerAfterClose', { dependency: DEPENDENCY }).count).toBe(1);
  });

  test('one that waited for a probe which failed is blocked once, and after one that did not it runs once', async () => {
    stage = startRetryStage(server.port, {});
    const { breaker, state } = cockatielBreaker(1);
    const failing = () => Promise.reject(new Error('x'));
    await settled(breaker.execute(failing));
    for (const probe of [failing, () => Promise.resolve('y')]) {
      state.openForMs = 0;
      const [, waiting] = [breaker.execute(probe), breaker.execute(() => fetchItems(server.url))].map(
        settled,
      );
      state.openForMs = 60_000;
      await waiting;
    }
    expect([blocked(), probes(), server.arrivals]).toEqual([1, 2, 1]);
    expect(stage.t.histogram('breakerAfterClose', { dependency: DEPENDENCY }).count).toBe(1);
  });

  test('isolated by hand is open', () => {
    stage = startRetryStage(server.port, {});
    const { breaker } = cockatielBreaker(1);
    const handle = breaker.isolate();
    expect(states()).toEqual({ closed: 0, half_open: 0, open: 1 });
    handle.dispose();
    expect(states()).toEqual({ closed: 1, half_open: 0, open: 0 });
  });

  test('two breakers of one dependency are two, and watching one again is none', () => {
    stage = startRetryStage(server.port, {});
    const { breaker } = cockatielBreaker(1);
    cockatielBreaker(1).breaker.isolate();
    expect(watchCockatielBreaker(DEPENDENCY, breaker)).toBe(breaker);
    expect(states()).toEqual({ closed: 1, half_open: 0, open: 1 });
  });

  test('one that was made before the package started is seen with its next change', () => {
    const { breaker } = cockatielBreaker(1);
    stage = startRetryStage(server.port, {});
    expect(states()).toEqual({ closed: 0, half_open: 0, open: 0 });
    breaker.isolate();
    expect(states()).toEqual({ closed: 0, half_open: 0, open: 1 });
  });

  test('results, errors and arguments stay those of the library', async () => {
    stage = startRetryStage(server.port, {});
    const { breaker } = cockatielBreaker(9);
    const { signal } = new AbortController();
    expect(await breaker.execute((context) => context.signal === signal, signal)).toBe(true);
    const failure = new Error('x');
    await expect(breaker.execute(() => Promise.reject(failure))).rejects.toBe(failure);
    // An error like the breaker's own, of another one inside.
    const inner = Object.assign(new Error('inner'), { isBrokenCircuitError: true });
    await expect(breaker.execute(() => Promise.reject(inner))).rejects.toBe(inner);
    expect(blocked()).toBe(0);
  });

  test.each([undefined, null, 5, 'breaker', {}])('%o is no breaker, and is given back', (none) => {
    // Plain JavaScript can give anything.
    expect(watchCockatielBreaker('stock', none as never)).toBe(none);
    expect(watchOpossumBreaker('stock', none as never)).toBe(none);
  });

  test('a version that is not known is left as it is', () => {
    stage = startRetryStage(server.port, {});
    const odd = { state: 9, onStateChange: () => {}, execute: () => 1 };
    const { execute } = odd;
    expect(watchCockatielBreaker(DEPENDENCY, odd).execute).toBe(execute);
  });
});

describe('M-25, S-22: what a breaker of opossum does', () => {
  test('open, blocked, a probe, closed', async () => {
    stage = startRetryStage(server.port, {});
    const breaker = opossumBreaker(() => fetchItems(server.url), 20);
    server.failures = 1;
    const halfOpen = once(breaker, 'halfOpen');
    await settled(breaker.fire());
    expect(await settled(breaker.fire())).toHaveProperty('code', 'EOPENBREAKER');
    expect(states()).toEqual({ closed: 0, half_open: 0, open: 1 });
    expect([blocked(), probes(), server.arrivals]).toEqual([1, 0, 1]);
    await halfOpen;
    expect(states()).toEqual({ closed: 0, half_open: 1, open: 0 });
    const probe = breaker.fire();
    // While it is under way nothing else is let through.
    await settled(breaker.fire());
    expect(await probe).toBe('stocked');
    expect([blocked(), probes(), server.arrivals]).toEqual([2, 1, 2]);
    expect(states()).toEqual({ closed: 1, half_open: 0, open: 0 });
    expect(transitions()).toEqual([1, 1, 1]);
    breaker.shutdown();
    expect(states()).toEqual({ closed: 0, half_open: 0, open: 0 });
  });
});

describe('R-31: attempts that a breaker blocks cost no token', () => {
  test('repeats of cockatiel: what was paid for them comes back', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...AMPLE });
    const { breaker } = cockatielBreaker(1);
    const backoff = guardBackoff(
      { dependency: DEPENDENCY, maxAttempts: 3, isSafe: false },
      new ConstantBackoff(1),
    );
    const policy = wrap(retry(handleAll, { maxAttempts: 9, backoff }), breaker);
    server.failures = 9;
    const events = await stage.inRequest(5_000, async (record) => {
      const seen = spanOf(record);
      expect(await settled(policy.execute(() => fetchItems(server.url)))).toHaveProperty(
        'isBrokenCircuitError',
        true,
      );
      // At once, and not when the request ends.
      expect(retryBudget(DEPENDENCY).balance(performance.now())).toBe(10);
      return seen;
    });
    expect([server.arrivals, blocked()]).toEqual([1, 2]);
    expect(stage.t.value('retryWithdrawals', { result: 'granted' })).toBe(2);
    expect(stage.t.value('retryDeposits', { source: 'refund' })).toBe(2);
    expect(retryBudget(DEPENDENCY).balance(performance.now())).toBe(10);
    expect(
      events.filter(({ name }) => name === 'time_budget.blocked').map((each) => each.attributes),
    ).toEqual(Array(2).fill({ 'time_budget.dependency': DEPENDENCY, 'time_budget.breaker.state': 'open' }));
  });

  test('repeats of p-retry around opossum, outside a request as well', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...AMPLE });
    const breaker = opossumBreaker(() => fetchItems(server.url));
    server.failures = 9;
    const options = guardPRetry({ dependency: DEPENDENCY }, { retries: 2, minTimeout: 1 });
    expect(await settled(pRetry(() => breaker.fire(), options))).toHaveProperty('code', 'EOPENBREAKER');
    expect([server.arrivals, blocked()]).toEqual([1, 2]);
    expect(stage.t.value('retryWithdrawals', { result: 'granted' })).toBe(2);
    expect(retryBudget(DEPENDENCY).balance(performance.now())).toBe(10);
    breaker.shutdown();
  });

  test('a budget that failures empty hears of those at the dependency only', async () => {
    stage = startRetryStage(server.port, {
      retryBudgets: {
        stock: {
          model: 'grpc_throttling',
          maxTokens: 10,
          tokenRatio: 0.1,
          floor: { attempts: 1, everyMs: 1_000 },
        },
      },
    });
    const ask = (error: unknown, attempt: number) =>
      mayRetry({ dependency: DEPENDENCY, error, attempt, maxAttempts: 9 });
    const before = retryBudget(DEPENDENCY).balance(performance.now());
    ask(Object.assign(new Error('open'), { code: 'EOPENBREAKER' }), 1);
    ask(Object.assign(new Error('open'), { isBrokenCircuitError: true }), 2);
    expect(retryBudget(DEPENDENCY).balance(performance.now())).toBe(before);
    ask(Object.assign(new Error('busy'), { status: 503 }), 3);
    expect(retryBudget(DEPENDENCY).balance(performance.now())).toBe(before - 1);
  });

  test('a repeat that still waits is another one, and keeps its token', async () => {
    stage = startRetryStage(server.port, { mode: 'enforce', ...AMPLE });
    const { breaker } = cockatielBreaker(1);
    breaker.isolate();
    await stage.inRequest(5_000, async () => {
      const error = Object.assign(new Error('busy'), { status: 503 });
      mayRetry({ dependency: DEPENDENCY, error, attempt: 1, maxAttempts: 3, backoffMs: 1_000 });
      await settled(breaker.execute(() => fetchItems(server.url)));
      expect([blocked(), stage.t.value('retryDeposits', { source: 'refund' })]).toEqual([1, 0]);
    });
    // Its request has ended without it.
    expect(stage.t.value('retryDeposits', { source: 'refund' })).toBe(1);
  });
});

describe('M-27, L-24: a fallback is another piece of work', () => {
  let second: FailingServer;

  beforeEach(async () => {
    second = await startFailingServer();
  });
  afterEach(() => second.close());

  const fallbacks = () =>
    stage.t.recorder.families.fallbacks.cells
      .filter(({ value }) => value > 0)
      .map(({ attributes, value }) => [
        attributes.dependency,
        attributes.result,
        attributes.shares_dependency,
        value,
      ]);

  test.each([
    ['another dependency', () => second.url, 'no'],
    ['the one that has failed', () => server.url, 'yes'],
  ] as const)('opossum: it goes to %s', async (_, url, shares) => {
    stage = startRetryStage(server.port, {
      dependencies: { second: { match: [`127.0.0.1:${second.port}`] } },
    });
    const breaker = opossumBreaker(() => fetchItems(server.url));
    const policy = { dependency: DEPENDENCY, name: 'cache' };
    breaker.fallback(watchFallback(policy, async () => `old: ${await fetchItems(url())}`));
    server.failures = 1;
    const events = await stage.inRequest(5_000, async (record) => {
      const seen = spanOf(record);
      expect(await breaker.fire()).toBe('old: stocked');
      return seen;
    });
    expect(fallbacks()).toEqual([[DEPENDENCY, 'answered', shares, 1]]);
    // Its call counts where it went.
    const stockCalls = shares === 'yes' ? 2 : 1;
    expect(stage.t.value('calls', { dependency: DEPENDENCY })).toBe(stockCalls);
    expect(stage.t.value('calls', { dependency: 'second' })).toBe(2 - stockCalls);
    expect(stage.t.value('fallbackSeconds', { dependency: DEPENDENCY })).toBeGreaterThan(0);
    expect(events.find(({ name }) => name === 'time_budget.fallback')?.attributes).toEqual({
      'time_budget.fallback.name': 'cache',
      'time_budget.dependency': DEPENDENCY,
      'time_budget.fallback.result': 'answered',
      'time_budget.fallback.shares_dependency': shares === 'yes',
    });
    breaker.shutdown();
  });

  test.each([
    ['in a request', true],
    ['outside', false],
  ])('one that fails and that nobody listens to is unhandled, as without us: %s', async (_, isInRequest) => {
    stage = startRetryStage(server.port, {});
    const lost = new Error('nobody listens');
    const run = watchFallback({ dependency: DEPENDENCY, name: 'cache' }, () => Promise.reject(lost));
    const listeners = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    try {
      const told = new Promise((resolve) => process.once('unhandledRejection', resolve));
      if (isInRequest) await stage.inRequest(undefined, async () => void run());
      else void run();
      expect(await told).toBe(lost);
    } finally {
      for (const listener of listeners) process.on('unhandledRejection', listener);
    }
    expect(fallbacks()).toEqual([[DEPENDENCY, 'failed', isInRequest ? 'no' : 'unknown', 1]]);
  });

  test('refused by a quota, failed, and outside a request', async () => {
    stage = startRetryStage(server.port, {});
    const run = watchFallback({ dependency: DEPENDENCY, name: 'second provider' }, (error: unknown) => {
      throw error;
    });
    const quota = Object.assign(new Error('quota'), { status: 429 });
    const failure = new Error('x');
    expect(() => run(failure)).toThrow(failure);
    await stage.inRequest(undefined, async () => {
      expect(() => run(quota)).toThrow(quota);
      const later = watchFallback({ dependency: DEPENDENCY, name: 'later' }, () => Promise.reject(quota));
      await expect(later()).rejects.toBe(quota);
    });
    expect(fallbacks()).toEqual([
      [DEPENDENCY, 'failed', 'unknown', 1],
      [DEPENDENCY, 'refused', 'no', 2],
    ]);
  });
});
