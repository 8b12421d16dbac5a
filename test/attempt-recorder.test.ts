import { beforeEach, describe, expect, test } from 'vitest';
import type { CallEnding } from '../src/call-recorder.ts';
import type { Declaration } from '../src/core/operations.ts';
import { enterScope, runInScope } from '../src/current.ts';
import type { CallRecord, RequestRecord, Scope } from '../src/records.ts';
import type { ConfigOptions } from '../src/telemetry/config-settings.ts';
import { createTestHooks, type TestHooks } from './support/hooks.ts';
import { createVirtualClock, type VirtualClock } from './support/virtual-clock.ts';

let clock: VirtualClock;
let t: TestHooks;

function start(config: ConfigOptions = {}): void {
  clock = createVirtualClock();
  t = createTestHooks({ clock, config });
}

function enter(
  headers: Record<string, string> = {},
  operation: string | null = 'GET /orders/:id',
  remoteAddress = '127.0.0.1',
): RequestRecord {
  const record = t.recorder.enter({ headers, remoteAddress, method: 'GET', path: '/orders/1' }, clock.at);
  t.recorder.handling(record, operation ?? undefined, clock.at);
  return record;
}

interface CallFacts {
  readonly host?: string;
  readonly path?: string;
  readonly tookMs?: number;
  readonly status?: number;
  readonly ending?: CallEnding;
  readonly wasSent?: boolean;
  readonly declaration?: Declaration;
}

function begin(scope: Scope | undefined, facts: CallFacts = {}): CallRecord {
  const { calls } = t.hooks;
  const target = calls.target(facts.host ?? 'stock', 80, 'http');
  const call = runInScope(scope, () => calls.begin(target, clock.at));
  const identity = { origin: target.origin, method: 'GET', path: facts.path ?? '/items/1' };
  calls.attempts.begin(call, identity, facts.declaration);
  return call;
}

function end(call: CallRecord, facts: CallFacts): void {
  const { calls } = t.hooks;
  call.enter('request', clock.at);
  if (facts.wasSent !== false) calls.dispatch(call, clock.at);
  clock.at += facts.tookMs ?? 10;
  if (facts.status !== undefined) calls.attempts.head(call, facts.status, clock.at);
  calls.end(call, facts.ending ?? 'answered', clock.at);
}

function make(scope: Scope | undefined, facts: CallFacts = {}): CallRecord {
  const call = begin(scope, facts);
  end(call, facts);
  return call;
}

function finish(record: RequestRecord, status = 200): void {
  t.recorder.finish(record, { completed: true, status }, clock.at);
}

const UNAVAILABLE = { status: 503 } as const;
const REFUSED = { ending: 'failed', wasSent: false } as const;

beforeEach(() => {
  start();
  enterScope(undefined);
});

describe('attempts of a call', () => {
  test('I5: four attempts, always unavailable: one original and three repeats, all failed', () => {
    const record = enter();
    const calls = [1, 2, 3, 4].map(() => make(record, UNAVAILABLE));
    finish(record, 503);
    expect(calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3, 4]);
    const labels = { dependency: 'stock', operation: 'GET /orders/:id' };
    expect(t.value('attempts', { ...labels, kind: 'original', owner: 'none' })).toBe(1);
    expect(t.value('attempts', { ...labels, kind: 'reexecute', owner: 'unknown' })).toBe(3);
    expect(t.value('attempts')).toBe(4);
    expect(t.value('repeatResults', { dependency: 'stock', result: 'failed' })).toBe(3);
    expect(t.value('repeatResults')).toBe(3);
  });

  test('T-30: a reconnect does not count as an attempt, nor as a repeat that succeeded or not', () => {
    const record = enter({ 'time-budget': 'remaining=9000, attempt=2, repeated, caller=web' });
    const calls = [REFUSED, REFUSED, { status: 200 }].map((facts) => make(record, facts));
    expect(calls.map(({ attempt }) => attempt)).toEqual([1, 1, 1]);
    expect(t.value('attempts', { kind: 'reconnect' })).toBe(2);
    expect(t.value('attempts') - t.value('attempts', { kind: 'reconnect' })).toBe(1);
    expect(t.value('repeatResults')).toBe(0);
    expect(t.value('violations', { kind: 'double_owner' })).toBe(0);
  });

  test('T-30: a task marked as meant to outlive its request is an attempt and not abandoned', () => {
    const record = enter({ 'x-request-timeout-ms': '50' });
    const call = begin({ request: record, deadlineAt: Infinity, detached: true });
    finish(record);
    end(call, { tookMs: 500 });
    expect(t.value('attempts', { kind: 'original' })).toBe(1);
    expect(t.value('postCancelItems')).toBe(0);
  });

  test('I14: success on the third attempt; the wait is told apart from the execution', () => {
    const record = enter();
    const calls = [UNAVAILABLE, UNAVAILABLE, { status: 200 }].map((facts) => {
      const call = make(record, { ...facts, tookMs: 100 });
      clock.at += 1_000;
      return call;
    });
    expect(calls.map(({ attempt }) => attempt)).toEqual([1, 2, 3]);
    expect(calls.map(({ tried }) => tried?.waitMs)).toEqual([undefined, 1_000, 1_000]);
    expect(t.value('execution', { dependency: 'stock' })).toBeCloseTo(0.3, 9);
    expect(t.value('repeatResults', { result: 'failed' })).toBe(1);
    expect(t.value('repeatResults', { result: 'useful' })).toBe(1);
  });

  test('I3: the second attempt starts with nothing left, and is told to', () => {
    const record = enter({ 'x-request-timeout-ms': '10000' });
    const first = make(record, { ending: 'timed_out', tookMs: 10_000 });
    const second = make(record, { ending: 'timed_out', tookMs: 1 });
    expect(first.attempt).toBe(1);
    expect(second.attempt).toBe(2);
    expect(second.tried?.kind).toBe('resend');
    expect(second.remainingBeforeMs).toBe(0);
    expect(second.refusal).toBe('deadline_exceeded_before_dispatch');
    expect(t.value('violations', { kind: 'started_after_end' })).toBe(1);
    expect(t.value('repeatResults', { result: 'timed_out' })).toBe(1);
  });

  test('R-38: a repeat whose answer nobody can use is late and not useful', () => {
    const record = enter({ 'x-request-timeout-ms': '50' });
    make(record, { ...UNAVAILABLE, tookMs: 10 });
    make(record, { status: 200, tookMs: 40 });
    expect(t.value('repeatResults', { result: 'late' })).toBe(1);
    expect(t.value('repeatResults')).toBe(1);
  });

  test('an error head ends the attempt, although nobody reads its body', () => {
    const record = enter();
    const unread = begin(record);
    t.hooks.calls.dispatch(unread, clock.at);
    t.hooks.calls.attempts.head(unread, 503, clock.at);
    const second = make(record, { status: 200 });
    expect(second.attempt).toBe(2);
    t.hooks.calls.end(unread, 'answered', clock.at);
    expect(make(record, { status: 200 }).attempt).toBe(1);
  });

  test.each([
    [20, 1],
    [21, 2],
  ])(
    'the loser of a race, aborted %i ms after the answer: the next like it has ordinal %i',
    (afterMs, ordinal) => {
      const record = enter();
      const loser = begin(record, { path: '/slow' });
      make(record, { path: '/fast', status: 200 });
      end(loser, { ending: 'aborted', tookMs: afterMs });
      expect(make(record, { path: '/slow' }).attempt).toBe(ordinal);
    },
  );

  test('R-21: a repeat put off into a queue of its own is one, and work after the end', () => {
    const record = enter({ 'x-request-timeout-ms': '100' });
    make(record, UNAVAILABLE);
    clock.at = 100;
    finish(record, 503);
    clock.at = 60_000;
    expect(make(record, { status: 200 }).attempt).toBe(2);
    expect(t.value('attempts', { kind: 'reexecute', operation: 'GET /orders/:id' })).toBe(1);
    expect(t.value('repeatResults', { result: 'late' })).toBe(1);
    expect(t.value('violations', { kind: 'started_after_end' })).toBe(1);
  });

  test('hosts that are one dependency are one operation, other hosts are not', () => {
    start({ dependencies: { stock: { match: ['a.test', 'b.test'] } } });
    const record = enter();
    make(record, { host: 'a.test', ...UNAVAILABLE });
    expect(make(record, { host: 'b.test', ...UNAVAILABLE }).attempt).toBe(2);
    make(record, { host: '10.0.0.1', ...UNAVAILABLE });
    expect(make(record, { host: '10.0.0.2' }).attempt).toBe(1);
  });

  test('another request has its own operations', () => {
    const [one, two] = [enter(), enter()];
    make(one, UNAVAILABLE);
    expect(make(two, UNAVAILABLE).attempt).toBe(1);
    expect(make(one, UNAVAILABLE).attempt).toBe(2);
  });

  test('outside of a request nothing is detected, and what is declared counts', () => {
    make(undefined, UNAVAILABLE);
    expect(make(undefined, UNAVAILABLE).attempt).toBe(1);
    expect(make(undefined, { declaration: { owner: 'undici', attempt: 2 } }).attempt).toBe(2);
    expect(t.value('attempts', { operation: 'unmatched', kind: 'original' })).toBe(2);
    expect(t.value('attempts', { operation: 'unmatched', owner: 'undici' })).toBe(1);
  });

  test('an attempt made before the route is known is counted under it', () => {
    const record = enter({}, null);
    make(record, UNAVAILABLE);
    const open = begin(record);
    expect(t.value('attempts')).toBe(0);
    t.recorder.handling(record, 'GET /orders/:id', clock.at);
    end(open, { status: 200 });
    finish(record);
    expect(t.value('attempts', { operation: 'GET /orders/:id', kind: 'original' })).toBe(1);
    expect(t.value('attempts', { operation: 'GET /orders/:id', kind: 'reexecute' })).toBe(1);
    expect(t.value('attempts')).toBe(2);
  });

  test('I13: three attempts began and ended, nothing is open', () => {
    const record = enter();
    for (const status of [503, 503, 200]) make(record, { status });
    expect(record.openCalls).toBe(0);
    expect(record.operations?.size).toBe(0);
    expect(t.value('executing')).toBe(0);
    expect(t.value('attempts', { kind: 'original' })).toBe(1);
    expect(t.value('attempts')).toBe(3);
  });

  test('the series of repeats are there at 0 with the first original, for a rate', () => {
    make(enter());
    const { attempts, repeatResults } = t.recorder.families;
    expect(attempts.cells.map(({ attributes, value }) => [attributes.kind, value])).toEqual([
      ['original', 1],
      ['resend', 0],
      ['reexecute', 0],
    ]);
    expect(repeatResults.cells).toHaveLength(5);
  });
});

describe('what a library announces elsewhere', () => {
  const declaration = { owner: 'got', attempt: 2 } as const;

  test('is taken once, by the call with that address, method and path, in the same request', () => {
    const { attempts } = t.hooks.calls;
    const [one, two] = [enter(), enter()];
    const [ofOne, ofTwo] = [begin(one), begin(two)];
    runInScope(one, () => attempts.announce('stock:81', 'GET', '/a', declaration));
    expect(attempts.takeAnnounced(ofTwo, 'stock:81', 'GET', '/a')).toBeUndefined();
    expect(attempts.takeAnnounced(ofOne, 'stock:82', 'GET', '/a')).toBeUndefined();
    expect(attempts.takeAnnounced(ofOne, 'stock:81', 'POST', '/a')).toBeUndefined();
    expect(attempts.takeAnnounced(ofOne, 'stock:81', 'GET', '/b')).toBeUndefined();
    expect(attempts.takeAnnounced(ofOne, 'stock:81', 'GET', '/a')).toEqual(declaration);
    expect(attempts.takeAnnounced(ofOne, 'stock:81', 'GET', '/a')).toBeUndefined();
  });

  test('32 are kept; the 33rd drops the oldest', () => {
    const { attempts } = t.hooks.calls;
    const record = enter();
    const call = begin(record);
    for (let i = 0; i < 33; i++) {
      runInScope(record, () => attempts.announce('stock', 'GET', `/${i}`, declaration));
    }
    expect(attempts.takeAnnounced(call, 'stock', 'GET', '/0')).toBeUndefined();
    expect(attempts.takeAnnounced(call, 'stock', 'GET', '/1')).toEqual(declaration);
    expect(attempts.takeAnnounced(call, 'stock', 'GET', '/32')).toEqual(declaration);
  });
});

describe('arrivals', () => {
  test('P-21: each tier tells original demand from repeats, made here or further up', () => {
    const headers = [
      'remaining=900, attempt=1, caller=web',
      'remaining=900, attempt=2, repeated, caller=web',
      'remaining=900, attempt=1, repeated, caller=web',
    ];
    for (const value of headers) finish(enter({ 'time-budget': value }));
    const labels = { caller: 'web', operation: 'GET /orders/:id' };
    expect(t.value('offered', labels)).toBe(3);
    expect(t.value('admitted', labels)).toBe(3);
    expect(t.value('retried', labels)).toBe(2);
  });

  test('a first attempt made by a repeat is part of one on the wire; an original is not', () => {
    const render = (record: RequestRecord, facts: CallFacts) => {
      const call = begin(record, facts);
      const value = t.hooks.carriage.render('time-budget', call, 50);
      end(call, facts);
      return value;
    };
    const original = enter();
    expect(render(original, UNAVAILABLE)).toBe('remaining=50, attempt=1, caller=test-service');
    expect(render(original, REFUSED)).toBe('remaining=50, attempt=2, repeated, caller=test-service');
    const repeat = enter({ 'x-envoy-attempt-count': '2' });
    expect(render(repeat, {})).toBe('remaining=50, attempt=1, repeated, caller=test-service');
  });

  test('I10: one call of the client, two repeats by the proxy: one original in three arrivals', () => {
    for (const count of ['1', '2', '3']) finish(enter({ 'x-envoy-attempt-count': count }));
    expect(t.value('offered')).toBe(3);
    expect(t.value('offered') - t.value('retried')).toBe(1);
  });

  test('a sender that is not trusted says nothing about attempts', () => {
    start({ entry: { trust: 'none' } });
    for (const headers of [
      { 'x-envoy-attempt-count': '3' },
      { 'grpc-previous-rpc-attempts': '2' },
      { 'time-budget': 'remaining=900, attempt=2, repeated' },
    ]) {
      finish(enter(headers));
    }
    expect(t.value('retried')).toBe(0);
  });
});

describe('R-07: two layers that repeat one operation', () => {
  test('a repeat that repeats a call itself is counted once', () => {
    const record = enter({ 'time-budget': 'remaining=9000, attempt=2, repeated' });
    for (let i = 0; i < 3; i++) make(record, UNAVAILABLE);
    expect(t.value('violations', { kind: 'double_owner' })).toBe(1);
  });

  test('so is one whose layer above did not repeat, but one before it', () => {
    const record = enter({ 'time-budget': 'remaining=9000, attempt=1, repeated' });
    for (let i = 0; i < 2; i++) make(record, UNAVAILABLE);
    expect(t.value('violations', { kind: 'double_owner' })).toBe(1);
  });

  test.each([
    ['an original that repeats a call', {}, 3],
    ['a repeat that makes each call once', { 'time-budget': 'remaining=9000, attempt=2, repeated' }, 1],
  ])('none: %s', (_, headers: Record<string, string>, tries) => {
    const record = enter(headers);
    for (let i = 0; i < tries; i++) make(record, UNAVAILABLE);
    expect(t.value('violations', { kind: 'double_owner' })).toBe(0);
  });
});
