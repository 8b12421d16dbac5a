/** Counting that is put off: nobody who reads a metric sees a difference. */
import { beforeEach, describe, expect, test } from 'vitest';
import { enterScope, runInScope } from '../src/current.ts';
import type { RequestRecord } from '../src/records.ts';
import { MAX_UNCOUNTED } from '../src/tally.ts';
import { createTestHooks, type TestHooks } from './support/hooks.ts';
import { createVirtualClock, type VirtualClock } from './support/virtual-clock.ts';

let clock: VirtualClock;
let t: TestHooks;

beforeEach(() => {
  clock = createVirtualClock();
  t = createTestHooks({ clock });
  enterScope(undefined);
});

function enter(
  headers: Readonly<Record<string, string>> = { 'time-budget': 'remaining=1000, caller=shop' },
): RequestRecord {
  const record = t.recorder.enter(
    { headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/a' },
    clock.at,
  );
  t.recorder.handling(record, 'GET /a', clock.at);
  t.recorder.admit(record, clock.at, true);
  return record;
}

function finish(record: RequestRecord): void {
  t.recorder.finish(record, { completed: true, status: 200 }, clock.at);
}

/** An arrival and an end are one entry each. */
function serve(requests: number, headers?: Readonly<Record<string, string>>): void {
  for (let i = 0; i < requests; i++) finish(enter(headers));
}

/** Of a request without a budget nobody asks whether it is less than usual, so that nothing is read. */
const NO_BUDGET = {};

describe('what is put off', () => {
  test('is counted when a metric is read, whichever it is', () => {
    serve(3);
    expect(t.value('internalErrors')).toBe(0);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(3);
    expect(t.histogram('remaining', { point: 'received' }).count).toBe(3);
  });

  test('is counted by itself when there is as much as is held at the most', () => {
    const cell = t.recorder.families.outcomes.cell('unknown', 'GET /a', 'unset', 'useful');
    serve(MAX_UNCOUNTED / 2 - 1, NO_BUDGET);
    const last = enter(NO_BUDGET);
    expect(cell.value).toBe(0);
    finish(last);
    expect(cell.value).toBe(MAX_UNCOUNTED / 2);
  });

  test('is counted once, also where counting itself reads what is usual', () => {
    serve(30);
    clock.at = 120_000;
    serve(30);
    // A new window begins with the first of these, and the one before is read for it.
    expect(t.recorder.typical.operation('GET /a', clock.at)).toEqual({ medianMs: 0, p95Ms: 0 });
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(60);
    expect(t.histogram('processing').count).toBe(60);
  });

  test('is learned in the window that it ended in', () => {
    const take = (requests: number, ms: number) => {
      for (let i = 0; i < requests; i++) {
        const record = enter(NO_BUDGET);
        clock.at += ms;
        finish(record);
      }
    };
    const usualMs = () => t.recorder.typical.operation('GET /a', clock.at)?.medianMs;
    take(30, 10);
    expect(usualMs()).toBeCloseTo(10, 0);
    clock.at = 60_500;
    // Not counted yet when somebody asks, and of the window after.
    take(25, 50);
    expect(usualMs()).toBeCloseTo(10, 0);
    clock.at = 125_000;
    expect(usualMs()).toBeGreaterThan(48);
  });

  test('is counted also where one of the entries cannot be', () => {
    const records = [enter(), enter(), enter()];
    for (const record of records) finish(record);
    const [, broken] = records;
    Object.defineProperty(broken, 'spentBeforeFirstCallMs', {
      value: () => {
        throw new Error('broken');
      },
    });
    expect(t.value('internalErrors')).toBe(1);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(3);
    expect(t.histogram('queue', { operation: 'GET /a' }).count).toBe(3);
    expect(t.value('internalErrors')).toBe(1);
  });
});

describe('what was known then is what is counted', () => {
  test('a call belongs to the caller that its request had when it was made', () => {
    const record = enter();
    const call = runInScope(record, () =>
      t.hooks.calls.begin(t.hooks.calls.target('stock', 80, 'http'), clock.at),
    );
    record.caller = 'billing';
    t.hooks.calls.end(call, 'answered', clock.at);
    finish(record);
    expect(t.value('calls', { caller: 'shop' })).toBe(1);
    expect(t.value('calls')).toBe(1);
  });

  test('a call that says which request it is only after its begin was counted is still counted as an attempt', () => {
    const { calls } = t.hooks;
    const target = calls.target('stock', 80, 'http');
    const call = calls.begin(target, clock.at);
    expect(t.value('calls')).toBe(1);
    // Something else is put off meanwhile, as while a call waits in a pool.
    calls.begin(target, clock.at);
    const identity = { origin: 'stock:80', method: 'GET', path: '/a' };
    calls.attempts.begin(call, identity, undefined);
    expect(t.value('attempts', { kind: 'original' })).toBe(1);
    calls.end(call, 'answered', clock.at);
    expect(t.value('attempts', { kind: 'original' })).toBe(1);
  });

  test('durations are those up to the end, not up to the reading', () => {
    const record = enter();
    clock.at += 100;
    finish(record);
    clock.at += 5_000;
    expect(t.histogram('processing', { operation: 'GET /a' })).toEqual({ count: 1, sum: 0.1 });
    expect(t.histogram('usefulDuration', { operation: 'GET /a' })).toEqual({ count: 1, sum: 0.1 });
  });
});
