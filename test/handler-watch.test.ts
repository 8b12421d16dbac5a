import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { beforeEach, describe, expect, test } from 'vitest';
import { runInScope } from '../src/current.ts';
import { HandlerWatch } from '../src/handler-watch.ts';
import { signal } from '../src/index.ts';
import type { RequestRecord, Scope } from '../src/records.ts';
import { createTestHooks, type TestHooks } from './support/hooks.ts';
import { createVirtualClock, type VirtualClock } from './support/virtual-clock.ts';

let clock: VirtualClock;
let t: TestHooks;
let record: RequestRecord;

beforeEach(() => {
  clock = createVirtualClock();
  t = createTestHooks({ clock, config: { operations: { 'GET /long': { defaultMs: 9000 } } } });
  record = t.recorder.enter({ headers: {}, remoteAddress: undefined, method: 'GET', path: '/' }, 0);
  t.recorder.handling(record, undefined, 0);
});

describe('scope of the handler', () => {
  test('one per request, which follows the deadline of what it was called in', () => {
    const watch = HandlerWatch.of(record);
    expect(HandlerWatch.of(watch)).toBe(watch);
    expect(HandlerWatch.of(record)).toBe(watch);
    expect(watch.request).toBe(record);
    expect(watch.deadlineAt).toBe(Infinity);
    t.recorder.handling(record, 'GET /long', 0);
    expect(watch.deadlineAt).toBe(9000);
    expect(watch.detached).toBe(false);
  });

  test('a middleware that narrowed the time, or set work apart, did so for the handler too', () => {
    const narrow: Scope = { request: record, deadlineAt: 50, detached: true };
    const watch = HandlerWatch.of(narrow);
    expect(watch.outer).toBe(narrow);
    expect(watch.deadlineAt).toBe(50);
    expect(watch.detached).toBe(true);
  });

  test('its signal fires on a cancel, and is let go of when the request is over', () => {
    const watch = HandlerWatch.of(record);
    const ofHandler = runInScope(watch, signal);
    t.recorder.cancel(record, 'client_disconnect', 5);
    expect(ofHandler?.reason).toMatchObject({ code: 'client_disconnect' });
    t.recorder.finish(record, { completed: false, status: undefined }, 5);
    // A new one, as the old one was let go of; it tells of the cancel all the same.
    const later = runInScope(watch, signal);
    expect(later).not.toBe(ofHandler);
    expect(later?.aborted).toBe(true);
  });
});

describe('the end of the handlers', () => {
  const first = {};
  const second = {};
  let watch: HandlerWatch;

  beforeEach(() => {
    watch = HandlerWatch.of(record);
  });

  test('not before one has started, nor while its promise is open', () => {
    expect(watch.isOver).toBe(false);
    watch.started(first);
    expect(watch.isOver).toBe(false);
    watch.settled();
    expect(watch.isOver).toBe(true);
  });

  test('one that has replied and returned is over; one that has not replied works on unseen', () => {
    watch.started(first);
    watch.returned(first, true);
    expect(watch.isOver).toBe(true);
    watch.started(second);
    watch.returned(second, false);
    expect(watch.isOver).toBe(false);
    expect(record.handlerTracked).toBe(false);
  });

  test('a check that passed the request on while it was called says nothing about the handler behind it', () => {
    watch.started(first);
    watch.started(second);
    watch.returned(first, false);
    expect(record.handlerTracked).toBe(true);
    expect(watch.isOver).toBe(false);
    watch.settled();
    expect(watch.isOver).toBe(true);
  });

  test('a check that passes it on from a callback: seen again with the next handler', () => {
    watch.started(first);
    watch.returned(first, false);
    expect(record.handlerTracked).toBe(false);
    watch.started(second);
    expect(record.handlerTracked).toBe(true);
    watch.settled();
    expect(watch.isOver).toBe(true);
  });

  test('of two with promises, the one that lasts longer', () => {
    watch.started(first);
    watch.started(second);
    watch.settled();
    expect(watch.isOver).toBe(false);
    watch.settled();
    expect(watch.isOver).toBe(true);
  });
});

describe('a watch that is kept, as a pooled connection keeps it, lets go of the handlers', () => {
  const collect = collector();

  test.each(['settled', 'returned'] as const)('once they have %s', async (how) => {
    const watch = HandlerWatch.of(record);
    const ref = runHandler(watch, how);
    // A WeakRef that was just made holds its object until the end of the task.
    await new Promise((resolve) => setImmediate(resolve));
    collect();
    expect(ref.deref()).toBeUndefined();
    expect(watch.request).toBe(record);
  });

  function runHandler(watch: HandlerWatch, how: 'settled' | 'returned'): WeakRef<object> {
    const handler = {};
    watch.started(handler);
    watch[how](handler, true);
    return new WeakRef(handler);
  }
});

/** The garbage collector, for a process that was not started with it. */
function collector(): () => void {
  setFlagsFromString('--expose-gc');
  // With the flag, every new context has it.
  return runInNewContext('gc') as () => void;
}

describe('E1: who answers 503, 504 or 408', () => {
  function finish(status: number, outsideHandler: boolean): void {
    HandlerWatch.of(record).started({});
    t.recorder.finish(record, { completed: true, status, outsideHandler }, 500);
  }

  test.each([408, 503, 504])('%i from outside of the handler is a local timeout', (status) => {
    finish(status, true);
    expect(t.value('cancellations', { source: 'local_timeout' })).toBe(1);
    t.recorder.handlerEnded(record, 1000);
    expect(t.value('postCancelSeconds', { kind: 'handler' })).toBe(0.5);
  });

  test.each([
    [503, false],
    [500, true],
    [502, true],
    [429, true],
    [200, true],
  ])('%i, from outside: %s, is an answer', (status, outside) => {
    finish(status, outside);
    expect(t.value('cancellations')).toBe(0);
    t.recorder.handlerEnded(record, 1000);
    expect(t.value('postCancelSeconds')).toBe(0);
  });

  test('503 from outside after the handler has ended is an answer', () => {
    t.recorder.handlerEnded(record, 400);
    finish(503, true);
    expect(t.value('cancellations')).toBe(0);
  });
});

describe('operation', () => {
  test('a route that may only have passed it on names the request where none follows', () => {
    record.likelyOperation = 'GET /api/*';
    t.recorder.finish(record, { completed: true, status: 200 }, 10);
    expect(t.value('outcomes', { operation: 'GET /api/*' })).toBe(1);
  });

  test('and does not where one does', () => {
    record.likelyOperation = 'GET /api/*';
    t.recorder.handling(record, 'GET /api/orders', 5);
    t.recorder.admit(record, 5);
    t.recorder.finish(record, { completed: true, status: 200 }, 10);
    expect(t.value('outcomes', { operation: 'GET /api/orders' })).toBe(1);
    expect(t.value('outcomes')).toBe(1);
    expect(t.histogram('queue')).toEqual({ count: 1, sum: 0.005 });
  });
});
