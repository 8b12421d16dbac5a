import type { Span } from '@opentelemetry/api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import type { CancelSource, Phase } from '../../src/core/terms.ts';
import { enterScope } from '../../src/current.ts';
import { signal, withBudget } from '../../src/index.ts';
import { type CallOptions, type ManualCall, recordCall } from '../../src/manual/index.ts';
import type { CallRecord } from '../../src/records.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';

let t: TestHooks;
/** The calls that were begun, in order. */
let records: CallRecord[];
/** How long the next events will have waited for the loop. */
let waitedMs = 0;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  waitedMs = 0;
  t = createTestHooks({
    clock: { now: () => performance.now(), waitMs: () => waitedMs, idleMs: () => performance.now() },
  });
  records = [];
  const begin = t.recorder.calls.begin.bind(t.recorder.calls);
  vi.spyOn(t.recorder.calls, 'begin').mockImplementation((...args) => {
    const record = begin(...args);
    records.push(record);
    return record;
  });
  activateRecorder(t.recorder);
  enterScope(undefined);
});

afterEach(() => {
  deactivateRecorder(t.recorder);
  vi.useRealTimers();
});

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

/** Makes a call in a request of `budgetMs`, and lets all that was planned happen. */
async function play<T>(
  budgetMs: number,
  work: (call: ManualCall) => Promise<T>,
  options?: CallOptions,
): Promise<T | { readonly rejected: unknown }> {
  const made = withBudget(budgetMs, () => recordCall('stock', work, options)).catch((rejected: unknown) => ({
    rejected,
  }));
  await vi.runAllTimersAsync();
  return made;
}

const phaseS = (phase: Phase) => t.histogram('callPhase', { dependency: 'stock', phase }).sum;
const error = Object.assign(new Error('mine'), { code: 'MINE' });

describe('phases', () => {
  test('those that were named, one after the other', async () => {
    await play(500, async (call) => {
      call.enter('queue');
      await sleep(20);
      call.enter('connect');
      await sleep(30);
      call.sent();
      await sleep(40);
      call.enter('response');
      await sleep(50);
    });
    expect([phaseS('queue'), phaseS('connect'), phaseS('request'), phaseS('response')]).toEqual([
      0.02, 0.03, 0.04, 0.05,
    ]);
    const [record] = records;
    expect([record?.remainingBeforeMs, record?.remainingAfterMs]).toEqual([500, 360]);
    expect(
      [record?.startedAt, record?.dispatchedAt].map((at) => (at ?? 0) - (record?.startedAt ?? 0)),
    ).toEqual([0, 50]);
  });

  test.each([
    [undefined, 'request'],
    ['http', 'request'],
    ['sql', 'db_execution'],
    ['handler', 'request'],
    ['nonsense', 'request'],
  ] as [CallOptions['kind'], Phase][])('a call of kind %s that says nothing is %s', async (kind, phase) => {
    await play(500, () => sleep(20), kind === undefined ? undefined : { kind });
    expect(phaseS(phase)).toBe(0.02);
    expect(t.histogram('callPhase').count).toBe(1);
    expect(records[0]?.workKind).toBe(kind === 'http' || kind === 'sql' ? kind : 'other');
  });

  test('the first one holds from the start, and a word that is none is ignored', async () => {
    await play(500, async (call) => {
      call.enter('elsewhere' as Phase);
      call.enter(undefined as unknown as Phase);
      await vi.advanceTimersByTimeAsync(0);
      call.enter('dns');
    });
    expect(records[0]?.stretches).toBe(2);
    withBudget(500, () => recordCall('stock', (call) => call.enter('token')));
    expect([records[1]?.stretches, records[1]?.phase]).toEqual([1, 'token']);
  });

  test('what lay unseen while the loop was busy is not the dependency’s', async () => {
    await play(500, async (call) => {
      call.sent();
      await sleep(40);
      waitedMs = 30;
    });
    expect([phaseS('request'), phaseS('event_loop')]).toEqual([0.01, 0.03]);
  });

  test('but of a call that is over in one step, nothing lay', () => {
    waitedMs = 30;
    recordCall('stock', () => vi.advanceTimersByTime(40));
    expect([phaseS('request'), phaseS('event_loop')]).toEqual([0.04, 0]);
  });

  test('sent twice, taken off the object, and after the end', async () => {
    let kept: ManualCall | undefined;
    await play(500, async (call) => {
      kept = call;
      const { sent, enter } = call;
      sent();
      await sleep(10);
      enter('response');
      sent();
      await sleep(10);
    });
    kept?.enter('connect');
    kept?.sent();
    expect([phaseS('request'), phaseS('response'), phaseS('connect')]).toEqual([0.01, 0.01, 0]);
    expect(records[0]?.dispatchedAt).toBe(records[0]?.startedAt);
  });
});

describe('details on a span of the service', () => {
  test('with what is known when the call ends, where the span still records', async () => {
    const attributes: Record<string, unknown> = {};
    const span = {
      isRecording: () => true,
      setAttribute: (key: string, value: unknown) => {
        attributes[key] = value;
      },
      addEvent() {},
    } as unknown as Span; // What is written to it is all that is looked at.
    await play(
      100,
      async (call) => {
        call.enter('queue');
        await sleep(120);
        throw Object.assign(new Error(), { name: 'AbortError' });
      },
      { span },
    );
    expect(attributes).toMatchObject({
      'time_budget.dependency': 'stock',
      'time_budget.remaining_before_ms': 100,
      'time_budget.remaining_after_ms': -20,
      'time_budget.phase.queue_ms': 120,
      'time_budget.expiry.phase': 'queue',
      'time_budget.cancel.source': 'inherited_deadline',
    });
  });

  test('what is no span costs the details alone', () => {
    const span = {} as unknown as Span;
    expect(recordCall('stock', () => 7, { span })).toBe(7);
    expect([t.value('calls', { dependency: 'stock' }), t.value('executing')]).toEqual([1, 0]);
  });
});

describe('what it gives', () => {
  test('the value, and the very same reason', async () => {
    const value = {};
    expect(await play(500, async () => value)).toBe(value);
    expect(await play(500, () => Promise.reject(error))).toEqual({ rejected: error });
    expect(recordCall('stock', () => value)).toBe(value);
  });

  test('what was thrown in the same step', () => {
    expect(() =>
      recordCall('stock', () => {
        throw error;
      }),
    ).toThrow(error);
    expect([records[0]?.endedAt !== undefined, t.value('executing', { dependency: 'stock' })]).toEqual([
      true,
      0,
    ]);
  });

  test('a reason whose members throw', async () => {
    const hostile = new Proxy(new Error(), {
      get() {
        throw new Error('theirs');
      },
    });
    const made = withBudget(500, () => recordCall('stock', () => Promise.reject(hostile)));
    await made.catch(() => undefined);
    expect([records[0]?.endedAt !== undefined, t.value('executing', { dependency: 'stock' })]).toEqual([
      true,
      0,
    ]);
  });

  test.each([undefined, null, 7, {}])('%s is no dependency: the work runs, unrecorded', (name) => {
    expect(recordCall(name as unknown as string, (call) => call.sent() ?? 7)).toBe(7);
    expect(t.value('executing')).toBe(0);
  });

  test('where the package was not started it is the work alone', () => {
    deactivateRecorder(t.recorder);
    const work = vi.fn((call: ManualCall) => {
      call.enter('queue');
      call.sent();
      return 7;
    });
    expect(recordCall('stock', work, { timeoutMs: 5 })).toBe(7);
    expect(records).toEqual([]);
  });

  test('outside a request it is a call of nobody', () => {
    expect(recordCall('stock', () => 7)).toBe(7);
    expect(t.value('calls', { caller: 'unknown', dependency: 'stock' })).toBe(1);
    expect(records[0]?.remainingBeforeMs).toBeUndefined();
  });

  test('one within another', async () => {
    await play(500, () => recordCall('cache', () => sleep(10)));
    expect(records.map(({ dependency }) => dependency)).toEqual(['stock', 'cache']);
    expect(t.value('executing')).toBe(0);
  });
});

describe('how it ended', () => {
  const failAfter = (ms: number, reason: unknown) => async () => {
    await sleep(ms);
    throw reason;
  };
  const named = (name: string) => Object.assign(new Error(name), { name });

  const cases: [string, number, number, unknown, number | undefined, CancelSource | undefined][] = [
    ['an error', 500, 99, error, undefined, undefined],
    ['an error before its limit', 500, 97, error, 100, undefined],
    ['an error at its limit, as early as a timer may be', 500, 98, error, 100, 'local_timeout'],
    ['an error without a code at its limit', 500, 100, new Error('Command timed out'), 100, 'local_timeout'],
    ['a TimeoutError without a limit', 500, 100, named('TimeoutError'), undefined, 'local_timeout'],
    ['an abort at its limit', 500, 100, named('AbortError'), 100, 'local_timeout'],
    ['an abort before', 500, 50, named('AbortError'), 100, 'application'],
    ['an abort at the deadline, its limit later', 100, 100, named('AbortError'), 200, 'inherited_deadline'],
    ['an abort at the deadline, its limit before', 100, 100, named('AbortError'), 90, 'inherited_deadline'],
  ];
  test.each(cases)('%s', async (_, budgetMs, afterMs, reason, timeoutMs, source) => {
    await play(budgetMs, failAfter(afterMs, reason), { timeoutMs });
    expect([records[0]?.cancelSource, records[0]?.succeeded]).toEqual([source, false]);
  });

  test('given up by its own limit: its expiry is in the phase in progress', async () => {
    await play(
      500,
      async (call) => {
        call.enter('connect');
        await sleep(60);
        call.sent();
        await sleep(40);
        throw error;
      },
      { timeoutMs: 100 },
    );
    expect([records[0]?.expiryPhase, records[0]?.bindingTerm]).toEqual(['request', 'own_timeout']);
    expect(t.value('expiries', { dependency: 'stock', phase: 'request' })).toBe(1);
  });

  test.each([0, -1, Number.NaN, Infinity, '100' as unknown as number])(
    '%s is no limit',
    async (timeoutMs) => {
      await play(500, failAfter(100, error), { timeoutMs });
      expect([records[0]?.ownTimeoutMs, records[0]?.cancelSource]).toEqual([undefined, undefined]);
    },
  );

  test('a limit beyond what is left is a reset', async () => {
    await play(100, () => sleep(1), { timeoutMs: 101 });
    expect(t.value('violations', { kind: 'reset' })).toBe(1);
  });

  test('the signal of the budget', async () => {
    await play(
      100,
      () =>
        new Promise((_, reject) => {
          const told = signal();
          told?.addEventListener('abort', () => reject(told.reason));
        }),
    );
    expect([records[0]?.cancelSource, records[0]?.expiryPhase]).toEqual(['inherited_deadline', 'request']);
  });
});

describe('H1: the cluster is down, a command is issued with budget 200', () => {
  test('phase queue, remaining 0 at 200, still pending then, and what it goes on for is for nobody', async () => {
    let giveUp: (reason: unknown) => void = () => {};
    const command = new Promise((_, reject) => {
      giveUp = reject;
    });
    let pending: Promise<unknown> | undefined;
    const served = withBudget(200, async () => {
      pending = recordCall('redis', (call) => {
        call.enter('queue');
        return command;
      });
      await sleep(200);
    });
    await vi.advanceTimersByTimeAsync(200);
    await served;
    expect(t.value('expiries', { dependency: 'redis', phase: 'queue' })).toBe(1);
    expect(t.value('executing', { dependency: 'redis' })).toBe(1);
    expect(records[0]?.endedAt).toBeUndefined();
    await vi.advanceTimersByTimeAsync(300);
    giveUp(new Error('Connection is closed.'));
    await pending?.catch(() => undefined);
    expect([records[0]?.expiryPhase, records[0]?.remainingAfterMs]).toEqual(['queue', -300]);
    expect(t.value('postCancelSeconds', { dependency: 'redis' })).toBeCloseTo(0.3, 9);
    expect(t.value('executing', { dependency: 'redis' })).toBe(0);
  });
});
