import { getEventListeners } from 'node:events';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../src/active.ts';
import { enterScope, runInScope } from '../src/current.ts';
import {
  BudgetError,
  checkpoint,
  current,
  detach,
  recordDuplicate,
  remainingMs,
  setCaller,
  setPriority,
  setRepeated,
  setWorkload,
  shed,
  signal,
  withBudget,
} from '../src/index.ts';
import type { RequestRecord } from '../src/records.ts';
import { createTestHooks, type TestHooks } from './support/hooks.ts';

let t: TestHooks;

function request(effectiveMs: number | undefined): RequestRecord {
  const at = performance.now();
  const headers = effectiveMs === undefined ? {} : { 'x-request-timeout-ms': String(effectiveMs) };
  const record = t.recorder.enter({ headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' }, at);
  t.recorder.handling(record, undefined, at);
  return record;
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  t = createTestHooks({
    clock: { now: () => performance.now(), waitMs: () => 0, idleMs: () => performance.now() },
  });
  activateRecorder(t.recorder);
  enterScope(undefined);
});

afterEach(() => {
  deactivateRecorder(t.recorder);
  vi.useRealTimers();
});

describe('outside a request', () => {
  test('there is no budget, and nothing throws', () => {
    expect(current()).toBeUndefined();
    expect(remainingMs()).toBeUndefined();
    expect(signal()).toBeUndefined();
    expect(checkpoint()).toBe(false);
    expect(detach(() => 7)).toBe(7);
    setCaller('x');
    setPriority('low');
  });

  test('withBudget is a request of its own, with its outcome', async () => {
    const result = await withBudget(100, async () => remainingMs(), { operation: 'nightly' });
    expect(result).toBe(100);
    expect(t.value('outcomes', { operation: 'nightly', outcome: 'useful' })).toBe(1);
    await expect(
      withBudget(100, async () => Promise.reject(new Error('mine')), { operation: 'nightly' }),
    ).rejects.toThrow('mine');
    expect(t.value('outcomes', { operation: 'nightly', outcome: 'failed' })).toBe(1);
    expect(() =>
      withBudget(100, () => {
        throw new TypeError('mine');
      }),
    ).toThrow(TypeError);
  });

  test.each([-1, Number.NaN])('withBudget refuses %s before the work starts', (ms) => {
    const work = vi.fn();
    expect(() => withBudget(ms, work)).toThrow(`withBudget: ms must be a number >= 0, got ${ms}`);
    expect(work).not.toHaveBeenCalled();
  });

  test.each([
    ['a text', '100'],
    ['a large number', 100n],
    ['a symbol', Symbol('100')],
    ['nothing', undefined],
    ['an object without a text', Object.create(null)],
  ])('withBudget refuses %s by name, in a request as well', (_, ms) => {
    // Plain JavaScript can give anything.
    const run = () => withBudget(ms as number, () => 1);
    const message = /^withBudget: ms must be a number >= 0, got /;
    expect(run).toThrow(message);
    expect(run).toThrow(RangeError);
    expect(() => runInScope(request(100), run)).toThrow(message);
  });

  test.each([null, undefined, 5, 'nightly'])('withBudget takes %o for no options', (options) => {
    expect(withBudget(100, () => remainingMs(), options as unknown as object)).toBe(100);
  });

  test('withBudget works where the package was not started', async () => {
    deactivateRecorder(t.recorder);
    expect(withBudget(50, () => remainingMs())).toBe(50);
  });
});

describe('in a request', () => {
  test('what is known of it', () => {
    const record = request(1000);
    vi.advanceTimersByTime(250);
    runInScope(record, () => {
      setCaller('checkout');
      setPriority('critical');
      expect(current()).toEqual({
        remainingMs: 750,
        receivedMs: 1000,
        effectiveMs: 1000,
        verdict: 'accepted',
        caller: 'checkout',
        priority: 'critical',
        operation: undefined,
        cancelSource: undefined,
      });
    });
  });

  test('withBudget never lengthens, and a smaller one holds for its calls only', () => {
    const record = request(1000);
    runInScope(record, () => {
      expect(withBudget(5000, () => remainingMs())).toBe(1000);
      withBudget(200, () => {
        const call = t.hooks.calls.begin(t.hooks.calls.target('a', 80, 'http'), performance.now());
        expect(call.remainingBeforeMs).toBe(200);
      });
      expect(remainingMs()).toBe(1000);
    });
  });

  test('detached work has no deadline and no signal of the request', () => {
    const record = request(100);
    const inside = runInScope(record, () => detach(() => ({ left: remainingMs(), stop: signal() })));
    expect(inside.left).toBeUndefined();
    t.recorder.cancel(record, 'client_disconnect', performance.now());
    expect(inside.stop?.aborted).toBe(false);
  });

  test('an unknown priority is ignored', () => {
    const record = request(100);
    // A caller without types can pass anything.
    runInScope(record, () => setPriority('urgent' as 'low'));
    expect(record.priority).toBe('unset');
  });

  test.each([
    ['undefined', undefined],
    ['null', null],
    ['a number', 7],
    ['a large number', 5n],
    ['a symbol', Symbol('s')],
    ['a parsed body', JSON.parse('{"toString":1}')],
  ])('what plain JavaScript hands over as a word (%s) is ignored, and throws nothing', (_, word) => {
    const record = request(100);
    runInScope(record, () => {
      setCaller(word as string);
      setPriority(word as 'low');
      setWorkload(word as 'live');
      setRepeated(word as 'user');
      recordDuplicate(word as 'recognised');
      shed(word as 'memory');
      if (word !== undefined && word !== 7) setRepeated('user', word as number);
    });
    const { caller, priority, workload, repeated, disposition } = record;
    expect({ caller, priority, workload, repeated, disposition }).toEqual({
      caller: 'unknown',
      priority: 'unset',
      workload: undefined,
      repeated: false,
      disposition: undefined,
    });
    enterScope(undefined);
    expect(withBudget(10, () => 1, { operation: word as string })).toBe(1);
  });

  test('checkpoint: false while somebody waits, true after the cancel and after the deadline', () => {
    const record = request(100);
    runInScope(record, () => {
      expect(checkpoint()).toBe(false);
      vi.advanceTimersByTime(100);
      expect(checkpoint()).toBe(true);
      expect(detach(() => checkpoint())).toBe(false);
    });
    const other = request(100);
    t.recorder.cancel(other, 'client_disconnect', performance.now());
    expect(runInScope(other, () => checkpoint())).toBe(true);
  });
});

describe('the signal', () => {
  test('is the same each time and fires at the deadline with the reason', () => {
    const record = request(100);
    const stop = runInScope(record, () => signal());
    expect(runInScope(record, () => signal())).toBe(stop);
    vi.advanceTimersByTime(99);
    expect(stop?.aborted).toBe(false);
    vi.advanceTimersByTime(1);
    expect(stop?.reason).toBeInstanceOf(BudgetError);
    expect(stop?.reason.code).toBe('deadline_exceeded');
  });

  test('fires when the request is cancelled, with the first source; not in a scope that is over', () => {
    const record = request(1000);
    const [outer, inner] = runInScope(record, () => [signal(), withBudget(500, () => signal())]);
    t.recorder.cancel(record, 'client_disconnect', performance.now());
    t.recorder.cancel(record, 'shutdown', performance.now());
    expect(outer?.reason.code).toBe('client_disconnect');
    expect(inner?.aborted).toBe(false);
  });

  test('of a nested scope in use fires with the request', async () => {
    const record = request(1000);
    let stop: AbortSignal | undefined;
    const work = runInScope(record, () =>
      withBudget(500, () => {
        stop = signal();
        return new Promise<void>((resolve) => stop?.addEventListener('abort', () => resolve()));
      }),
    );
    t.recorder.cancel(record, 'client_disconnect', performance.now());
    await work;
    expect(stop?.reason.code).toBe('client_disconnect');
  });

  test('asked for after the cancel it has fired already', () => {
    const record = request(1000);
    t.recorder.cancel(record, 'client_disconnect', performance.now());
    expect(runInScope(record, () => signal())?.reason.code).toBe('client_disconnect');
  });

  test('C1: thirty days do not fire after a second, nor after the longest timer', () => {
    const stop = runInScope(request(2_592_000_000), () => signal());
    vi.advanceTimersByTime(1000);
    expect(stop?.aborted).toBe(false);
    vi.advanceTimersByTime(2_147_483_647);
    expect(stop?.aborted).toBe(false);
    vi.advanceTimersByTime(2_592_000_000 - 2_147_483_647);
    expect(stop?.aborted).toBe(true);
  });

  test('C5: fractions, nothing left and no limit are no errors', () => {
    expect(withBudget(749.6, () => signal())?.aborted).toBe(false);
    expect(withBudget(0, () => signal()?.aborted)).toBe(true);
    expect(withBudget(Infinity, () => [remainingMs(), signal()?.aborted])).toEqual([undefined, false]);
  });

  test('K4: nothing is left of it when the request is over', () => {
    const record = request(60_000);
    runInScope(record, () => signal());
    expect(vi.getTimerCount()).toBe(1);
    t.recorder.finish(record, { completed: true, status: 200 }, performance.now());
    expect(vi.getTimerCount()).toBe(0);
  });

  test('K1: two hundred users of one signal cause no warning, and none of the listeners is ours', () => {
    const warn = vi.spyOn(process, 'emitWarning');
    const stop = runInScope(request(1000), () => signal());
    if (stop === undefined) throw new Error('a request has a signal');
    const uses = Array.from({ length: 200 }, () => () => {});
    for (const use of uses) stop.addEventListener('abort', use);
    expect(getEventListeners(stop, 'abort')).toHaveLength(200);
    for (const use of uses) stop.removeEventListener('abort', use);
    expect(getEventListeners(stop, 'abort')).toHaveLength(0);
    expect(warn).not.toHaveBeenCalled();
  });
});
