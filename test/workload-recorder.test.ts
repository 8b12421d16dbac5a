import { diag } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../src/active.ts';
import { Carriage } from '../src/carriage.ts';
import { OUTCOMES, WORKLOADS, type Workload } from '../src/core/terms.ts';
import { enterScope, runInScope } from '../src/current.ts';
import { detach, setRepeated, setWorkload, withBudget } from '../src/index.ts';
import type { RequestRecord } from '../src/records.ts';
import { createTestHooks, type TestHooks } from './support/hooks.ts';
import { createVirtualClock, type VirtualClock } from './support/virtual-clock.ts';

let clock: VirtualClock;
let t: TestHooks;

beforeEach(() => {
  enterScope(undefined);
  clock = createVirtualClock();
  t = createTestHooks({ clock });
  activateRecorder(t.recorder);
});

afterEach(() => {
  deactivateRecorder(t.recorder);
  vi.restoreAllMocks();
});

/** As a server adapter does it, where the operation is known from the path. */
function arrive(budgetHeader?: string): RequestRecord {
  const headers = budgetHeader === undefined ? {} : { 'time-budget': budgetHeader };
  const record = t.recorder.enter(
    { headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' },
    clock.at,
  );
  t.recorder.handling(record, 'GET /', clock.at);
  t.recorder.admit(record, clock.at, true);
  return record;
}

function finish(record: RequestRecord, status = 200): void {
  t.recorder.finish(record, { completed: true, status }, clock.at);
}

/** A call of 10 ms in the current scope, answered with this status. */
function call(status = 200): void {
  const { calls } = t.hooks;
  const one = calls.begin(calls.target('stock', 80, 'http'), clock.at);
  calls.attempts.begin(one, { origin: 'stock', method: 'GET', path: '/1' }, undefined);
  one.enter('request', clock.at);
  calls.dispatch(one, clock.at);
  clock.at += 10;
  calls.attempts.head(one, status, clock.at);
  calls.end(one, 'answered', clock.at);
}

const admitted = () => Object.fromEntries(WORKLOADS.map((workload) => [workload, count(workload)]));
const count = (workload: Workload) => t.value('workloadAdmitted', { workload });
const NONE = Object.fromEntries(WORKLOADS.map((workload) => [workload, 0]));

describe('M-24: admissions and completions by workload', () => {
  test('every series is there at 0: five workloads, and their outcomes', () => {
    expect(t.recorder.families.workloadAdmitted.cells).toHaveLength(WORKLOADS.length);
    expect(t.recorder.families.workloadCompleted.cells).toHaveLength(WORKLOADS.length * OUTCOMES.length);
    expect(admitted()).toEqual(NONE);
  });

  test('live, unless its sender says that it is a repeat or part of one', () => {
    finish(arrive());
    finish(arrive('attempt=1'));
    finish(arrive('attempt=2'), 503);
    finish(arrive('attempt=1, repeated'));
    expect(admitted()).toEqual({ ...NONE, live: 2, retry: 2 });
    expect(t.value('workloadCompleted', { workload: 'live', outcome: 'useful' })).toBe(2);
    expect(t.value('workloadCompleted', { workload: 'retry', outcome: 'failed' })).toBe(1);
    expect(t.value('workloadCompleted', { workload: 'retry', outcome: 'useful' })).toBe(1);
    expect(t.value('workloadCompleted')).toBe(4);
  });

  test('told by its sender and handed on; not where the sender is not trusted', () => {
    const record = arrive('attempt=2, workload=replay');
    const carriage = new Carriage(t.recorder.config, 'test');
    runInScope(record, () => {
      const one = t.hooks.calls.begin(t.hooks.calls.target('stock', 80, 'http'), clock.at);
      expect(carriage.render('time-budget', one, 7)).toBe(
        'remaining=7, attempt=1, repeated, caller=test, workload=replay',
      );
    });
    expect(admitted()).toEqual({ ...NONE, replay: 1 });
    deactivateRecorder(t.recorder);
    t = createTestHooks({ clock, config: { entry: { trust: 'none' } } });
    finish(arrive('attempt=2, workload=replay'));
    expect(admitted()).toEqual({ ...NONE, live: 1 });
  });

  test.each(['replay', 'probe', 'background', 'live'] as const)(
    'setWorkload: %s, told before the first call',
    (workload) => {
      const record = arrive('attempt=2');
      runInScope(record, () => {
        setWorkload(workload);
        call();
      });
      expect(admitted()).toEqual({ ...NONE, [workload]: 1 });
      finish(record);
      expect(admitted()).toEqual({ ...NONE, [workload]: 1 });
      expect(t.value('workloadCompleted', { workload })).toBe(1);
    },
  );

  test('what is shed or refused has ended and was not let in', () => {
    finish(arrive(), 429);
    expect(admitted()).toEqual(NONE);
    expect(t.value('workloadCompleted', { workload: 'live', outcome: 'shed' })).toBe(1);
    const later = arrive();
    runInScope(later, () => call());
    finish(later, 429);
    expect(admitted()).toEqual({ ...NONE, live: 1 });
  });

  test('nothing said: counted with the first call, and not again', () => {
    const record = arrive();
    expect(admitted()).toEqual(NONE);
    runInScope(record, () => {
      call();
      call();
    });
    expect(admitted()).toEqual({ ...NONE, live: 1 });
    finish(record);
    expect(admitted()).toEqual({ ...NONE, live: 1 });
  });

  test('told after the first call it holds for the end and for further calls', () => {
    const record = arrive();
    runInScope(record, () => {
      call();
      setWorkload('probe');
      call();
    });
    finish(record);
    expect(admitted()).toEqual({ ...NONE, live: 1 });
    expect(t.value('workloadCompleted', { workload: 'probe' })).toBe(1);
    expect(t.value('workloadCalls', { workload: 'probe' })).toBe(1);
  });

  test('a job: withBudget says it', () => {
    withBudget(1_000, () => call(), { operation: 'drain', workload: 'replay' });
    withBudget(1_000, () => undefined, { operation: 'drain' });
    expect(admitted()).toEqual({ ...NONE, replay: 1, live: 1 });
    expect(t.value('workloadCalls', { dependency: 'stock', workload: 'replay' })).toBe(1);
  });

  test('an unknown word is ignored and named', () => {
    const warn = vi.spyOn(diag, 'warn').mockImplementation(() => {});
    const record = arrive();
    // A service without types can pass anything.
    runInScope(record, () => setWorkload('batch' as 'replay'));
    withBudget(1, () => undefined, { workload: 'batch' as 'replay' });
    expect(warn).toHaveBeenCalledTimes(2);
    expect(warn.mock.calls[0]?.[0]).toContain(`must be one of ${WORKLOADS.join(', ')}, got batch`);
    finish(record);
    expect(admitted()).toEqual({ ...NONE, live: 2 });
  });

  test('M-28: the peak is read when it is collected', () => {
    for (let i = 0; i < 5; i++) finish(arrive());
    clock.at = 1_000;
    finish(arrive('attempt=2'));
    t.recorder.families.workloadPeak.refresh?.();
    expect(t.value('workloadPeak', { workload: 'live' })).toBe(50);
    expect(t.value('workloadPeak', { workload: 'retry' })).toBe(10);
  });
});

describe('M-37: the part of the work of a dependency that is no live, original demand', () => {
  test('originals of live requests are in none of it', () => {
    const record = arrive();
    runInScope(record, () => call());
    finish(record);
    expect(t.value('workloadCalls')).toBe(0);
    expect(t.value('execution', { dependency: 'stock' })).toBeCloseTo(0.01);
  });

  test('two repeats of three attempts are two thirds of it', () => {
    const record = arrive();
    runInScope(record, () => {
      call(503);
      call(503);
      call(200);
    });
    finish(record);
    expect(t.value('workloadCalls', { dependency: 'stock', workload: 'retry' })).toBe(2);
    const share = t.value('workloadExecution') / t.value('execution', { dependency: 'stock' });
    expect(share).toBeCloseTo(2 / 3);
  });

  test('the first call of a request that is a repeat is caused by it', () => {
    const record = arrive('attempt=1, repeated');
    runInScope(record, () => call());
    expect(t.value('workloadCalls', { workload: 'retry' })).toBe(1);
  });

  test('what a half-open breaker lets through is a probe', () => {
    const record = arrive();
    const breaker = { dependency: 'stock', state: 'half_open', isProbe: true } as const;
    runInScope({ request: record, deadlineAt: Infinity, detached: false, mark: { breaker } }, () => call());
    expect(t.value('workloadCalls', { dependency: 'stock', workload: 'probe' })).toBe(1);
  });

  test('detached calls are background, those of a replay are replay, its repeats as well', () => {
    const live = arrive();
    runInScope(live, () => detach(() => call()));
    expect(t.value('workloadCalls', { workload: 'background' })).toBe(1);
    const replay = arrive();
    runInScope(replay, () => {
      setWorkload('replay');
      call(503);
      call();
      detach(() => call());
    });
    expect(t.value('workloadCalls', { workload: 'replay' })).toBe(3);
    expect(t.value('workloadCalls')).toBe(4);
  });
});

describe('I-18: a repeat whose sender cannot say that it is one', () => {
  test('user: counted by its owner and as retried, and told to the peers of its calls', () => {
    const record = arrive();
    runInScope(record, () => {
      setRepeated('user');
      setRepeated('user');
      call();
    });
    finish(record);
    expect(t.value('arrivalRepeats', { owner: 'user' })).toBe(1);
    expect(t.value('retried')).toBe(1);
    expect(admitted()).toEqual({ ...NONE, retry: 1 });
    expect([record.repeated, record.attempt]).toEqual([true, 2]);
  });

  test('where its sender had said so already, it is retried once, and the larger ordinal holds', () => {
    const record = arrive('attempt=3');
    runInScope(record, () => setRepeated('user', 2));
    finish(record);
    expect(t.value('retried')).toBe(1);
    expect(t.value('arrivalRepeats', { owner: 'user' })).toBe(1);
    expect(record.attempt).toBe(3);
  });

  test('an unknown owner, an ordinal of 1 and a place outside of any request change nothing', () => {
    vi.spyOn(diag, 'warn').mockImplementation(() => {});
    const record = arrive();
    runInScope(record, () => {
      // A service without types can pass anything.
      setRepeated('none' as 'user');
      setRepeated('user', 1);
    });
    setRepeated('user');
    setWorkload('replay');
    expect(record.repeated).toBe(false);
    expect(t.value('arrivalRepeats')).toBe(0);
    expect(admitted()).toEqual(NONE);
  });
});
