/** How requests are told to be admitted, shed or refused, and the identities that hold at every moment. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../src/active.ts';
import { degradedMode, watchBulkhead, watchQueue } from '../src/admission/index.ts';
import type { Ending } from '../src/core/outcome.ts';
import { enterScope, runInScope } from '../src/current.ts';
import { shed } from '../src/index.ts';
import type { RequestRecord } from '../src/records.ts';
import type { ConfigOptions, DegradedModeDefinition } from '../src/telemetry/config-settings.ts';
import { MAX_QUEUES } from '../src/telemetry/names.ts';
import { createTestHooks, type TestHooks } from './support/hooks.ts';
import { createVirtualClock, type VirtualClock } from './support/virtual-clock.ts';

let clock: VirtualClock;
let t: TestHooks;

function start(config: ConfigOptions = {}): void {
  if (t !== undefined) deactivateRecorder(t.recorder);
  clock = createVirtualClock();
  t = createTestHooks({ clock, config });
  activateRecorder(t.recorder);
}

function enter(budgetMs?: number): RequestRecord {
  const headers = budgetMs === undefined ? {} : { 'x-request-timeout-ms': String(budgetMs) };
  const facts = { headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/items' };
  const record = t.recorder.enter(facts, clock.at);
  t.recorder.handling(record, undefined, clock.at);
  return record;
}

function end(record: RequestRecord, ending: Partial<Ending> = {}): string | undefined {
  t.recorder.finish(record, { completed: true, status: 200, ...ending }, clock.at);
  return record.outcome;
}

function call(record: RequestRecord): void {
  const target = t.hooks.calls.target('stock', 80, 'http');
  const made = runInScope(record, () => t.hooks.calls.begin(target, clock.at));
  t.hooks.calls.end(made, 'answered', clock.at);
}

beforeEach(() => {
  enterScope(undefined);
  start();
});

afterEach(() => {
  const shedCount = t.value('shed');
  const refused = t.value('outcomes', { outcome: 'refused' });
  expect(t.value('offered')).toBe(
    t.value('admitted') + shedCount + refused + t.value('inFlight', { state: 'undecided' }),
  );
  deactivateRecorder(t.recorder);
});

describe('L-09: a refusal seen without code', () => {
  test.each([
    ['429', { status: 429 }, 'shed', 'quota'],
    ['503 that names a time to come again', { status: 503, retryAfter: true }, 'shed', 'capacity'],
    ['503 that says nothing', { status: 503, retryAfter: false }, 'failed', undefined],
    ['500 with a time to come again', { status: 500, retryAfter: true }, 'failed', undefined],
    ['429 that nobody has received', { status: 429, completed: false }, 'cancelled', undefined],
  ] as const)('%s', (_, ending, outcome, reason) => {
    expect(end(enter(), ending)).toBe(outcome);
    expect(t.value('admitted')).toBe(reason === undefined ? 1 : 0);
    expect(t.value('shed')).toBe(reason === undefined ? 0 : 1);
    if (reason !== undefined) expect(t.value('shed', { reason })).toBe(1);
    // L-18: a refusal is never useful.
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(0);
  });

  test('a 503 passed on from a dependency is no refusal of this service, a 429 after a call is', () => {
    const passedOn = enter();
    call(passedOn);
    expect(end(passedOn, { status: 503, retryAfter: true })).toBe('failed');
    const limited = enter();
    call(limited);
    expect(end(limited, { status: 429 })).toBe('shed');
  });

  test('a refusal after the deadline is a refusal, and not late', () => {
    const record = enter(100);
    clock.at = 100;
    expect(end(record, { status: 503, retryAfter: true })).toBe('shed');
  });

  test('a handler that was given up by a timeout middleware with a Retry-After is no refusal', () => {
    const record = enter();
    end(record, { status: 503, retryAfter: true, outsideHandler: true });
    expect(record.cancelSource).toBe('local_timeout');
  });
});

describe('shed()', () => {
  test.each(['concurrency', 'memory', 'pool_wait', 'event_loop', 'composite'] as const)(
    'L-07: %s, whatever the answer is',
    (reason) => {
      const record = enter();
      runInScope(record, () => shed(reason));
      expect(end(record, { status: 200 })).toBe('shed');
      expect(t.value('shed', { reason })).toBe(1);
      expect(t.value('admitted')).toBe(0);
    },
  );

  test('outside a request, after its end, and for an unknown reason nothing happens', () => {
    shed('memory');
    const record = enter();
    end(record);
    runInScope(record, () => shed('memory'));
    const other = enter();
    // What plain JavaScript can pass.
    runInScope(other, () => shed('because' as 'memory'));
    expect(end(other)).toBe('useful');
    expect(t.value('shed')).toBe(0);
  });
});

describe('M-18: requests in flight', () => {
  test('arriving until the operation is known, undecided until the end', () => {
    const record = enter();
    const state = () =>
      ['arriving', 'undecided', 'admitted'].map((each) => t.value('inFlight', { state: each }));
    expect(state()).toEqual([1, 0, 0]);
    t.recorder.handling(record, 'GET /items', 0);
    t.recorder.admit(record, 0);
    expect(state()).toEqual([0, 1, 0]);
    expect([t.value('offered'), t.value('admitted')]).toEqual([1, 0]);
    end(record);
    expect(state()).toEqual([0, 0, 0]);
    expect([t.value('offered'), t.value('admitted')]).toEqual([1, 1]);
  });
});

describe('degraded modes', () => {
  const trigger = {
    metric: 'time_budget_queue_depth',
    labels: ['queue=jobs'],
    enterAt: 10,
    exitAt: 2,
    windowMs: 100,
  };

  function depthOf(queue: { depth: number }): void {
    watchQueue('jobs', () => queue);
  }

  test('T-17, L-26: entry and exit by the named metric, looked at once in its window', () => {
    const queue = { depth: 9 };
    depthOf(queue);
    const mode = degradedMode('cached', { trigger });
    const active = () => t.value('degradedActive', { mode: 'cached', trigger: 'time_budget_queue_depth' });
    expect(mode.isActive()).toBe(false);
    queue.depth = 10;
    clock.at = 99;
    expect(mode.isActive()).toBe(false);
    clock.at = 100;
    expect(mode.isActive()).toBe(true);
    expect(active()).toBe(1);
    queue.depth = 3;
    clock.at = 200;
    expect(mode.isActive()).toBe(true);
    queue.depth = 2;
    clock.at = 300;
    // At a collection as well, though nobody asks.
    t.recorder.families.degradedActive.refresh?.();
    expect(active()).toBe(0);
    expect(t.value('degradedChanges', { mode: 'cached', change: 'enter' })).toBe(1);
    expect(t.value('degradedChanges', { mode: 'cached', change: 'exit' })).toBe(1);
  });

  test('a counter counts per second, a histogram by its mean', () => {
    const failures = degradedMode('failures', {
      trigger: {
        metric: 'time_budget_violations_total',
        labels: ['kind=reset'],
        enterAt: 5,
        exitAt: 0,
        windowMs: 1_000,
      },
    });
    const slow = degradedMode('slow', {
      trigger: {
        metric: 'db_client_connection_wait_time_seconds',
        enterAt: 0.5,
        exitAt: 0.1,
        windowMs: 1_000,
      },
    });
    expect([failures.isActive(), slow.isActive()]).toEqual([false, false]);
    t.recorder.families.violations.cell('reset').add(9);
    t.recorder.families.poolWait.cell('a').record(0.2);
    t.recorder.families.poolWait.cell('b').record(0.8);
    clock.at = 2_000;
    expect([failures.isActive(), slow.isActive()]).toEqual([false, true]);
    t.recorder.families.violations.cell('reset').add(5);
    clock.at = 3_000;
    expect([failures.isActive(), slow.isActive()]).toEqual([true, false]);
  });

  test('L-28: a degraded answer is no useful one, and late where it is late', () => {
    const mode = degradedMode('cached', {});
    const inTime = enter(100);
    runInScope(inTime, () => mode.answer({ ageMs: 60_000, isPartial: true }));
    expect(end(inTime)).toBe('degraded');
    const late = enter(100);
    runInScope(late, () => mode.answer());
    clock.at = 200;
    expect(end(late)).toBe('late');
    const failed = enter();
    runInScope(failed, () => mode.answer());
    expect(end(failed, { status: 500 })).toBe('failed');
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(0);
    expect(t.value('violations', { kind: 'degraded_non_degradable' })).toBe(0);
  });

  test('L-27: an operation that must not degrade is told no, and a degraded answer of it is a violation', () => {
    start({ routes: [{ path: '/items', operation: 'pay' }] });
    const mode = degradedMode('cached', { nonDegradable: ['pay'] });
    mode.enter();
    expect(mode.isActive()).toBe(true);
    const record = enter();
    expect(runInScope(record, () => mode.isActive())).toBe(false);
    runInScope(record, () => mode.answer());
    end(record);
    expect(t.value('violations', { kind: 'degraded_non_degradable' })).toBe(1);
    const refused = enter();
    runInScope(refused, () => mode.answer());
    end(refused, { status: 500 });
    expect(t.value('violations', { kind: 'degraded_non_degradable' })).toBe(1);
  });

  test('the file stands before the code, and is at 0 from the start', () => {
    start({ degradedModes: { cached: { trigger } } });
    expect(t.recorder.families.degradedActive.cells.map(({ attributes }) => attributes)).toEqual([
      { mode: 'cached', trigger: 'time_budget_queue_depth' },
    ]);
    expect(degradedMode('cached', {}).trigger).toBe('time_budget_queue_depth');
  });

  test('one that was asked for before the package was started is the one of the file afterwards', () => {
    deactivateRecorder(t.recorder);
    const mode = degradedMode('early', {});
    expect(mode.trigger).toBe('manual');
    start({ degradedModes: { early: { trigger } } });
    expect(mode.trigger).toBe('time_budget_queue_depth');
    mode.enter();
    expect(t.value('degradedActive', { mode: 'early' })).toBe(1);
  });

  test.each<[unknown, string]>([
    [null, 'the definition must be an object, got null'],
    [{ trigger: null }, 'trigger must be an object, got null'],
    [{ trigger: { ...trigger, enterAt: '5' } }, 'trigger.enterAt must be a finite number, got 5'],
    [{ trigger: { ...trigger, windowMs: 0 } }, 'trigger.windowMs must be a number in 10..3600000, got 0'],
    [
      { trigger: { ...trigger, labels: 'queue=jobs' } },
      'trigger.labels must be a list of texts of the form label=value, got queue=jobs',
    ],
    [
      { trigger: { ...trigger, labels: ['jobs'] } },
      'trigger.labels must be a list of texts of the form label=value, got jobs',
    ],
    [{ leastMs: Number.NaN }, 'leastMs must be a number >= 0, got NaN'],
    [{ nonDegradable: 'POST /pay' }, 'nonDegradable must be a list of operations, got POST /pay'],
  ])('%o of plain JavaScript is refused by name', (definition, message) => {
    expect(() => degradedMode('y', definition as DegradedModeDefinition)).toThrow(
      new RangeError(`degradedMode: y: ${message}`),
    );
  });

  test('facts of plain JavaScript throw nothing into the answer', () => {
    const mode = degradedMode('z', {});
    const record = enter();
    expect(() => runInScope(record, () => mode.answer(null as unknown as undefined))).not.toThrow();
  });

  test('without the package a mode of the file is off, and the service starts; with it, the file is right', () => {
    deactivateRecorder(t.recorder);
    const mode = degradedMode('from-the-file');
    expect(mode.isActive()).toBe(false);
    expect(() => mode.answer()).not.toThrow();
    start({ degradedModes: { 'from-the-file': {} } });
    mode.enter();
    expect(t.value('degradedActive', { mode: 'from-the-file' })).toBe(1);
    expect(mode.isActive()).toBe(true);
  });

  test('what cannot work is refused', () => {
    start();
    expect(() => degradedMode('x')).toThrow(
      new RangeError('degradedMode: there is no mode x, and no definition'),
    );
    expect(() => degradedMode('x', { trigger: { ...trigger, metric: 'cpu' } })).toThrow(
      /must be a metric.*got cpu/,
    );
    expect(() => degradedMode('x', { trigger: { ...trigger, exitAt: 10 } })).toThrow(/exitAt.*got 10/);
    expect(() => start({ degradedModes: { x: { trigger: { ...trigger, exitAt: 10 } } } })).toThrow(/exitAt/);
    expect(() => start({ degradedModes: { x: { trigger: { ...trigger, metric: 'cpu' } } } })).toThrow(
      /metric/,
    );
  });
});

describe('queues of others', () => {
  test('M-21, M-22: depth, age of the oldest and useful life, read when they are collected', () => {
    let state = { depth: 3, oldestAt: 1_000, usefulLifeMs: 5_000 };
    const undo = watchQueue('jobs', () => state);
    clock.at = 3_500;
    t.recorder.families.queueOldest.refresh?.();
    expect(t.value('queueDepth', { queue: 'jobs' })).toBe(3);
    expect(t.value('queueOldest', { queue: 'jobs' })).toBe(2.5);
    expect(t.value('queueUsefulLife', { queue: 'jobs' })).toBe(5);
    state = { depth: 0, oldestAt: 1_000, usefulLifeMs: 5_000 };
    t.recorder.families.queueDepth.refresh?.();
    expect([t.value('queueDepth'), t.value('queueOldest')]).toEqual([0, 0]);
    undo();
    state = { depth: 7, oldestAt: 0, usefulLifeMs: 1 };
    t.recorder.families.queueDepth.refresh?.();
    expect(t.value('queueDepth')).toBe(0);
  });

  test('one that throws is counted and keeps nothing else from being read', () => {
    watchQueue('broken', () => {
      throw new Error('closed');
    });
    watchQueue('jobs', () => ({ depth: 2 }));
    t.recorder.families.queueDepth.refresh?.();
    expect(t.value('queueDepth', { queue: 'jobs' })).toBe(2);
    expect(t.value('internalErrors')).toBe(1);
    // Nothing is known of its oldest: absent, and not 0.
    expect(t.recorder.families.queueOldest.cells).toEqual([]);
  });

  test('names are bounded for as long as their series stand, which is longer than the watching', () => {
    for (let i = 1; i <= MAX_QUEUES; i++) watchQueue(`jobs${i}`, () => ({ depth: 1 }))();
    expect(() => watchQueue('one-more', () => ({ depth: 1 }))).toThrow(/one-more is one too many/);
    expect(() => watchQueue('jobs7', () => ({ depth: 1 }))).not.toThrow();
  });

  test('one that was told of before the package was started is there afterwards', () => {
    deactivateRecorder(t.recorder);
    watchQueue('early', () => ({ depth: 4 }));
    start();
    t.recorder.families.queueDepth.refresh?.();
    expect(t.value('queueDepth', { queue: 'early' })).toBe(4);
  });
});

test('a bulkhead that is none is refused', () => {
  const none = { executionSlots: Number.NaN, queueSlots: 0, onReject: vi.fn() };
  expect(() => watchBulkhead('stock', none)).toThrow(RangeError);
  expect(() => watchBulkhead('stock', null as unknown as typeof none)).toThrow(/must have executionSlots/);
});
