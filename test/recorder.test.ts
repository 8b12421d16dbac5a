import { beforeEach, describe, expect, test } from 'vitest';
import { enterScope, runInScope } from '../src/current.ts';
import type { RequestRecord } from '../src/records.ts';
import type { ConfigOptions } from '../src/telemetry/config-settings.ts';
import { createTestHooks, type TestHooks } from './support/hooks.ts';
import { createVirtualClock, type VirtualClock } from './support/virtual-clock.ts';

let clock: VirtualClock;
let t: TestHooks;

function start(config: ConfigOptions = {}): void {
  clock = createVirtualClock();
  t = createTestHooks({ clock, config });
}

function enter(headers: Record<string, string> = {}, path = '/orders/1'): RequestRecord {
  const record = t.recorder.enter({ headers, remoteAddress: '127.0.0.1', method: 'GET', path }, clock.at);
  t.recorder.handling(record, 'GET /orders/:id', clock.at);
  return record;
}

function target() {
  return t.hooks.calls.target('inventory', 80, 'http');
}

beforeEach(() => {
  start();
  enterScope(undefined);
});

describe('one outcome per request', () => {
  test.each([
    ['useful', 99, { completed: true, status: 200 }],
    ['late', 100, { completed: true, status: 200 }],
    ['late', 130, { completed: true, status: 404 }],
    ['failed', 89, { completed: true, status: 500 }],
    ['expired', 90, { completed: true, status: 504 }],
    ['expired', 130, { completed: true, status: 500 }],
    ['shed', 50, { completed: true, status: 429 }],
    ['cancelled', 50, { completed: false, status: undefined }],
    ['expired', 100, { completed: false, status: undefined }],
  ] as const)('%s, ended at %i of 100', (outcome, at, ending) => {
    const record = enter({ 'x-request-timeout-ms': '100' });
    clock.at = at;
    t.recorder.finish(record, ending, at);
    t.recorder.finish(record, { completed: true, status: 200 }, at + 1);
    expect(record.outcome).toBe(outcome);
    expect(t.value('outcomes', { outcome })).toBe(1);
    expect(t.value('outcomes')).toBe(1);
  });

  test('no budget and no default: absent, and no expiry is invented', () => {
    const record = enter();
    clock.at = 3_600_000;
    t.recorder.finish(record, { completed: true, status: 200 }, clock.at);
    expect(record.verdict).toBe('absent');
    expect(record.outcome).toBe('useful');
    expect(t.value('expiries')).toBe(0);
    expect(t.histogram('received').count).toBe(0);
  });
});

describe('who cancelled', () => {
  test('D: a caller that said nothing of ours is a client', () => {
    const record = enter({ 'x-request-timeout-ms': '1000' });
    clock.at = 60;
    t.recorder.peerGone(record, 60);
    expect(record.cancelSource).toBe('client_disconnect');
  });

  test('C-05: one of our own services that leaves early is an upstream cancel', () => {
    const record = enter({ 'time-budget': 'remaining=1000, attempt=1, caller=gateway' });
    t.recorder.peerGone(record, 60);
    expect(record.cancelSource).toBe('upstream_cancel');
    expect(record.caller).toBe('gateway');
  });

  test.each([
    [989, 'client_disconnect'],
    [990, 'inherited_deadline'],
    [1400, 'inherited_deadline'],
  ] as const)('D12: a reset at %i of a deadline of 1000 is %s', (at, source) => {
    const record = enter({ 'x-request-timeout-ms': '1000' });
    clock.at = at;
    t.recorder.peerGone(record, at);
    expect(record.cancelSource).toBe(source);
  });

  test('a default deadline was not handed down by the caller, so its leaving is a disconnect', () => {
    start({ entry: { defaultMs: 1000 } });
    const record = enter();
    t.recorder.peerGone(record, 1200);
    expect(record.cancelSource).toBe('client_disconnect');
  });

  test('the first source is kept', () => {
    const record = enter();
    expect(t.recorder.cancel(record, 'local_timeout', 10)).toBe(true);
    expect(t.recorder.cancel(record, 'client_disconnect', 11)).toBe(false);
    t.recorder.finish(record, { completed: false, status: undefined }, 12);
    expect(t.value('cancellations', { source: 'local_timeout' })).toBe(1);
    expect(t.value('cancellations')).toBe(1);
  });
});

describe('calls', () => {
  test('B-16: what is left before the call, at the send, and after it', () => {
    start({ dependencies: { inventory: { match: ['inventory'], reserveMs: 50 } } });
    const record = enter({ 'x-request-timeout-ms': '1000' });
    clock.at = 100;
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 100));
    expect(call.remainingBeforeMs).toBe(900);
    expect(call.allowanceMs).toBe(850);
    expect(call.bindingTerm).toBe('remaining_minus_reserve');
    expect(t.hooks.calls.dispatch(call, 300.4)).toBe(649);
    t.hooks.calls.end(call, 'answered', 500);
    expect(call.remainingAfterMs).toBe(500);
    expect(t.histogram('remaining', { point: 'before_call' })).toEqual({ count: 1, sum: 0.9 });
    expect(t.histogram('remaining', { point: 'after_call' })).toEqual({ count: 1, sum: 0.5 });
  });

  test('B-40: 2,000 with 600 spent hands down at most 1,400 less the reserve; a fresh 2,000 is a reset', () => {
    start({ reserveMs: 75 });
    const record = enter({ 'x-request-timeout-ms': '2000' });
    clock.at = 600;
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 600));
    expect(t.hooks.calls.dispatch(call, 600)).toBe(1325);
    t.hooks.calls.granted(call, 2000, 600);
    t.hooks.calls.granted(call, 2000, 600);
    expect(call.resetViolation).toBe(true);
    expect(t.value('violations', { kind: 'reset' })).toBe(1);
  });

  test('B-26: a child that is told more by another header than ours says has found a reset', () => {
    const record = enter({ 'time-budget': 'remaining=1400, attempt=1', 'x-request-timeout-ms': '2000' });
    expect(record.receivedMs).toBe(1400);
    expect(t.value('violations', { kind: 'reset' })).toBe(1);
    expect(t.value('headerInvalid', { format: 'x_request_timeout_ms', reason: 'conflict' })).toBe(1);
  });

  test('B3: a call made after the deadline is counted as started after it, and is not blocked', () => {
    const record = enter({ 'x-request-timeout-ms': '50' });
    clock.at = 60;
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 60));
    expect(call.remainingBeforeMs).toBe(-10);
    expect(call.refusal).toBe('deadline_exceeded_before_dispatch');
    expect(t.value('violations', { kind: 'started_after_end' })).toBe(1);
    expect(t.value('refused', { reason: 'deadline_exceeded_before_dispatch' })).toBe(1);
    t.hooks.calls.end(call, 'answered', 100);
    expect(t.value('postCancelSeconds', { dependency: 'inventory' })).toBeCloseTo(0.04, 9);
    expect(t.value('postCancelItems', { result: 'started_after' })).toBe(1);
  });

  test('C-18: three children run on after the client has left; all three are reported', () => {
    const record = enter({ 'x-request-timeout-ms': '1000' });
    const calls = runInScope(record, () => [0, 1, 2].map(() => t.hooks.calls.begin(target(), 10)));
    t.recorder.peerGone(record, 60);
    t.recorder.finish(record, { completed: false, status: undefined }, 60);
    const endings = ['answered', 'failed', 'aborted'] as const;
    for (const [i, call] of calls.entries()) t.hooks.calls.end(call, endings[i] ?? 'answered', 160 + 100 * i);
    expect(t.value('postCancelSeconds', { kind: 'http', intended: 'no' })).toBeCloseTo(0.1 + 0.2 + 0.3, 9);
    for (const result of ['completed', 'failed', 'stopped'])
      expect(t.value('postCancelItems', { result })).toBe(1);
    expect(calls[2]?.cancelSource).toBe('client_disconnect');
    expect(t.value('executing')).toBe(0);
  });

  test('E6: work after a useful answer is not work for nobody', () => {
    const record = enter({ 'x-request-timeout-ms': '1000' });
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 10));
    t.recorder.finish(record, { completed: true, status: 200 }, 50);
    t.hooks.calls.end(call, 'answered', 3050);
    expect(t.value('postCancelSeconds')).toBe(0);
    expect(t.value('violations')).toBe(0);
  });

  test('E11: what lost a race against a timer belongs to its request until it settles', () => {
    const record = enter({ 'x-request-timeout-ms': '100' });
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 0));
    clock.at = 100;
    t.recorder.finish(record, { completed: true, status: 504 }, 100);
    expect(t.value('executing')).toBe(1);
    clock.at = 400;
    t.hooks.calls.end(call, 'answered', 400);
    expect(call.postCancelMs).toBe(300);
    expect(t.value('postCancelItems', { result: 'completed' })).toBe(1);
    expect(t.value('executing')).toBe(0);
  });

  test('D8: a proxy that hides the disconnect: the full duration, and no source is invented', () => {
    const record = enter({ 'x-request-timeout-ms': '1000' });
    clock.at = 900;
    t.recorder.finish(record, { completed: true, status: 200 }, 900);
    expect(record.cancelSource).toBeUndefined();
    expect(t.value('cancellations')).toBe(0);
    expect(t.histogram('usefulDuration')).toEqual({ count: 1, sum: 0.9 });
  });

  test('a call cut off by its own limit is an expiry of the call, in the phase in progress', () => {
    const record = enter({ 'x-request-timeout-ms': '1000' });
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 0, 200));
    call.enter('connect', 0);
    call.enter('tls', 20);
    t.hooks.calls.end(call, 'timed_out', 210);
    expect(call.cancelSource).toBe('local_timeout');
    expect(call.expiryPhase).toBe('tls');
    clock.at = 220;
    t.recorder.finish(record, { completed: true, status: 200 }, 220);
    expect(t.value('expiries')).toBe(1);
    expect(t.value('expiries', { dependency: 'inventory', phase: 'tls' })).toBe(1);
  });

  test('the deadline of the request inside a call is one expiry, however late the call is seen to end', () => {
    const record = enter({ 'x-request-timeout-ms': '100' });
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 0));
    call.enter('pool_wait', 0);
    clock.at = 110;
    t.recorder.finish(record, { completed: true, status: 504 }, 110);
    t.hooks.calls.end(call, 'timed_out', 650);
    expect(call.expiryPhase).toBe('pool_wait');
    expect(t.value('expiries')).toBe(1);
    expect(t.value('expiries', { dependency: 'inventory', phase: 'pool_wait' })).toBe(1);
  });

  test('D12: a caller that gives up 5 ms before its deadline has run out of time in the phase in progress', () => {
    const record = enter({ 'x-request-timeout-ms': '100' });
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 0));
    call.enter('db_execution', 10);
    clock.at = 95;
    t.recorder.peerGone(record, 95);
    t.recorder.finish(record, { completed: false, status: undefined }, 95);
    expect(record.outcome).toBe('expired');
    expect(t.value('expiries', { dependency: 'inventory', phase: 'db_execution' })).toBe(1);
    expect(record.cause).toBeDefined();
  });

  test('D18: the loser of a race is a lost race, not an error', () => {
    const record = enter();
    const [winner, loser] = runInScope(record, () => [
      t.hooks.calls.begin(target(), 0),
      t.hooks.calls.begin(target(), 0),
    ]);
    if (winner === undefined || loser === undefined) throw new Error('two calls were made');
    t.hooks.calls.end(winner, 'answered', 100);
    t.hooks.calls.end(loser, 'aborted', 101);
    expect(loser.cancelSource).toBe('lost_race');
  });

  test('a call outside any request is recorded, without a budget', () => {
    const call = t.hooks.calls.begin(target(), 0);
    t.hooks.calls.end(call, 'answered', 40);
    expect(t.value('calls', { caller: 'unknown', binding_term: 'none' })).toBe(1);
    expect(t.histogram('callDuration', { dependency: 'inventory' })).toEqual({ count: 1, sum: 0.04 });
    expect(t.hooks.calls.dispatch(call, 0)).toBeUndefined();
  });

  test('a middleware that calls before the route is known is counted under the route', () => {
    const record = t.recorder.enter(
      { headers: { 'x-request-timeout-ms': '100' }, remoteAddress: undefined, method: 'GET', path: '/x' },
      0,
    );
    const call = runInScope(record, () => t.hooks.calls.begin(target(), 0));
    t.hooks.calls.end(call, 'answered', 10);
    t.recorder.handling(record, 'GET /x', 20);
    t.recorder.finish(record, { completed: true, status: 200 }, 30);
    expect(t.histogram('remaining', { operation: 'GET /x', point: 'before_call' }).count).toBe(1);
    expect(t.histogram('remaining', { operation: 'unmatched' }).count).toBe(0);
  });
});

describe('T-28: labels stay bounded', () => {
  test('ten thousand distinct paths, callers and hosts fold into other and are counted', () => {
    for (let i = 0; i < 10_000; i++) {
      const headers = { 'time-budget': `remaining=100, attempt=1, caller=c${i}` };
      const record = t.recorder.enter(
        { headers, remoteAddress: '127.0.0.1', method: 'GET', path: `/${i}` },
        0,
      );
      t.recorder.handling(record, `GET /${i}`, 0);
      const call = runInScope(record, () =>
        t.hooks.calls.begin(t.hooks.calls.target(`host-${i}`, 80, 'http'), 0),
      );
      t.hooks.calls.end(call, 'answered', 1);
      t.recorder.finish(record, { completed: true, status: 200 }, 2);
    }
    const { families } = t.recorder;
    const values = (cells: readonly { attributes: Record<string, unknown> }[], key: string) =>
      new Set(cells.map((cell) => cell.attributes[key]));
    expect(values(families.offered.cells, 'caller').size).toBe(8 + 1);
    expect(values(families.offered.cells, 'operation').size).toBe(50 + 1);
    expect(values(families.callDuration.cells, 'dependency').size).toBe(20 + 1);
    expect(t.value('labelOverflow', { label: 'caller' })).toBe(10_000 - 8);
    expect(t.value('labelOverflow', { label: 'operation' })).toBe(10_000 - 50);
  });

  test('an address, a control character or a text is no name', () => {
    for (const host of ['10.1.2.3', '::1', 'a\u0007b', 'x'.repeat(81)]) {
      expect(['address', 'other']).toContain(t.hooks.calls.target(host, 80, 'http').dependency);
    }
  });
});
