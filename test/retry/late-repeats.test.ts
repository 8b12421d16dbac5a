/** Repeats and waits for a request that nobody waits for any more, on a clock that stands still until it is told. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { enterScope, runInScope } from '../../src/current.ts';
import type { RequestRecord } from '../../src/records.ts';
import { backoff, mayRetry } from '../../src/retry/index.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { hasPromtool, wrongAlerts } from '../support/promtool.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

/** What an attempt takes here. */
const TOOK_MS = 100;

let clock: VirtualClock;
let t: TestHooks;

function start(config: ConfigOptions = {}): void {
  clock = createVirtualClock();
  t = createTestHooks({
    clock,
    config: { dependencies: { stock: { match: ['stock'], typicalMs: TOOK_MS } }, ...config },
  });
  activateRecorder(t.recorder);
}

beforeEach(() => enterScope(undefined));
afterEach(() => deactivateRecorder(t.recorder));

function enter(budgetMs: number): RequestRecord {
  const headers = { 'x-request-timeout-ms': String(budgetMs) };
  const facts = { headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' };
  const record = t.recorder.enter(facts, clock.at);
  t.recorder.handling(record, 'GET /', clock.at);
  return record;
}

/** An attempt that takes so long and is answered with 503. */
function fail(record: RequestRecord, tookMs: number): void {
  const { calls } = t.hooks;
  const target = calls.target('stock', 80, 'http');
  const call = runInScope(record, () => calls.begin(target, clock.at));
  calls.attempts.begin(call, { origin: target.origin, method: 'GET', path: '/items' }, undefined);
  call.enter('request', clock.at);
  calls.dispatch(call, clock.at);
  clock.at += tookMs;
  calls.attempts.head(call, 503, clock.at);
  calls.end(call, 'answered', clock.at);
}

const BUSY = Object.assign(new Error('busy'), { status: 503 });
const ask = (backoffMs: number) => ({
  dependency: 'stock',
  error: BUSY,
  attempt: 1,
  maxAttempts: 100_000,
  backoffMs,
});

describe('I4: a cancel at 800 during a wait of 5,000', () => {
  test('a wait that does not notice: 4,200 ms after the cancel, and no attempt', () => {
    start();
    const record = enter(60_000);
    fail(record, 0);
    expect(runInScope(record, () => mayRetry(ask(5_000))).isAllowed).toBe(true);
    clock.at = 800;
    expect(t.recorder.cancel(record, 'application', clock.at)).toBe(true);
    clock.at = 5_000;
    t.recorder.finish(record, { completed: true, status: 503 }, clock.at);
    expect(record.cancelSource).toBe('application');
    expect(t.value('postCancelSeconds', { dependency: 'stock', kind: 'other' })).toBeCloseTo(4.2, 9);
    expect(t.value('postCancelItems', { dependency: 'stock', kind: 'other' })).toBe(1);
    expect([t.value('attempts'), t.value('violations')]).toEqual([1, 0]);
  });

  test('asked after the cancel: refused in enforce, and the caller is why', () => {
    start({ mode: 'enforce' });
    const record = enter(60_000);
    fail(record, 0);
    t.recorder.cancel(record, 'client_disconnect', clock.at);
    const answer = runInScope(record, () => mayRetry(ask(5_000)));
    expect([answer.isAllowed, answer.refusal]).toEqual([false, 'caller_gone']);
  });

  test('the wait of this package ends with the cancel: nothing after it', async () => {
    start();
    const record = enter(60_000);
    fail(record, 0);
    const waiting = runInScope(record, () => backoff(5_000));
    clock.at = 800;
    t.recorder.cancel(record, 'client_disconnect', clock.at);
    expect(await waiting).toBe(false);
    t.recorder.finish(record, { completed: false, status: undefined }, clock.at);
    expect(t.value('postCancelSeconds', { kind: 'other' })).toBe(0);
    expect(t.value('attempts')).toBe(1);
  });
});

describe('I9: five hours of one repeat per second under a total of 5,000', () => {
  const HOURS_MS = 5 * 3_600_000;
  const SAMPLE_MS = 30_000;
  /** Attempts begin at 0, 1,000, …; the sixth one, at 5,000, is the first that is late. */
  const IN_TIME = 5;

  function retryForHours(): number[] {
    const record = enter(5_000);
    const violations: number[] = [];
    for (let at = 0; at < HOURS_MS; at += 1_000) {
      if (at % SAMPLE_MS === 0) violations.push(t.value('violations', { kind: 'started_after_end' }));
      clock.at = at;
      fail(record, TOOK_MS);
      const answer = runInScope(record, () => mayRetry(ask(1_000 - TOOK_MS)));
      if (!answer.isAllowed) break;
    }
    clock.at = Math.max(clock.at, 6_000);
    t.recorder.finish(record, { completed: true, status: 503 }, clock.at);
    expect([record.openCalls, record.operations?.size]).toEqual([0, 1]);
    return violations;
  }

  test('observe: everything after 5,000 is flagged', () => {
    start();
    retryForHours();
    const all = HOURS_MS / 1_000;
    expect(t.value('attempts')).toBe(all);
    expect(t.value('violations', { kind: 'started_after_end' })).toBe(all - IN_TIME);
    expect(t.value('postCancelItems', { result: 'started_after', kind: 'http' })).toBe(all - IN_TIME);
    expect(t.value('postCancelSeconds', { dependency: 'stock', kind: 'http' })).toBeCloseTo(
      ((all - IN_TIME) * TOOK_MS) / 1_000,
      3,
    );
    // After the fifth one 900 are left, as much as the wait alone. From then on each would have been refused.
    const refused = (reason: string) => t.value('refused', { attempt: 'repeat', reason });
    expect(refused('deadline_exceeded_before_dispatch')).toBe(all - IN_TIME);
    expect(refused('does_not_fit_retry')).toBe(1);
    expect(t.value('outcomes', { outcome: 'expired' })).toBe(1);
    expect(t.value('expiries', { dependency: 'stock' })).toBe(1);
  });

  test('enforce: nothing is sent after 5,000', () => {
    start({ mode: 'enforce' });
    retryForHours();
    expect(t.value('attempts')).toBe(IN_TIME);
    expect(t.value('violations')).toBe(0);
    expect(t.value('postCancelSeconds', { dependency: 'stock' })).toBe(0);
  });

  test.skipIf(!hasPromtool)('the alert fires within its five minutes, and for as long as it goes on', () => {
    start();
    const series = 'time_budget_violations_total{job="shop",instance="a",kind="started_after_end"}';
    const fired = 'BudgetContractViolation job=shop kind=started_after_end';
    // The first hour: all of them are alike.
    const samples = retryForHours().slice(0, 121).join(' ');
    expect(wrongAlerts({ [series]: samples }, { 5: [], 6: [fired], 59: [fired] })).toBe(undefined);
  });
});
