import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { REPLAY_STOPS } from '../../src/core/terms.ts';
import { enterScope, runInScope } from '../../src/current.ts';
import { withBudget } from '../../src/index.ts';
import { type Replay, type ReplayFacts, type ReplayOptions, replay } from '../../src/recovery/index.ts';
import { MAX_QUEUES } from '../../src/telemetry/names.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

let clock: VirtualClock;
let t: TestHooks;
let facts: ReplayFacts;
const open: Replay[] = [];

beforeEach(() => {
  enterScope(undefined);
  clock = createVirtualClock();
  t = createTestHooks({ clock });
  activateRecorder(t.recorder);
  facts = {};
});

afterEach(() => {
  for (const one of open.splice(0)) one.close();
  deactivateRecorder(t.recorder);
});

function start(options: Partial<ReplayOptions> = {}, name = 'jobs'): Replay {
  const one = replay(name, { maxPerSecond: 10, read: () => facts, ...options });
  open.push(one);
  return one;
}

/** How many are released when it is asked as often as it can be, until this instant. */
function release(one: Replay, untilMs: number): number {
  let count = 0;
  for (; clock.at < untilMs; clock.at += 10) if (one.tryRelease().isAllowed) count++;
  return count;
}

const gauge = (stop: string) => t.value('replayStop', { queue: 'jobs', stop });
const collect = () => t.recorder.families.replayLimit.refresh?.();

describe('what plain JavaScript can give', () => {
  test.each([
    [undefined, 'options must be an object, got undefined'],
    [{ maxPerSecond: 1, read: 5 }, 'read must be a function, got 5'],
  ])('%o is refused by name', (options, message) => {
    expect(() => replay('jobs', options as unknown as ReplayOptions)).toThrow(
      new RangeError(`replay: ${message}`),
    );
  });

  test.each([
    ['one that is stopped', () => Promise.resolve({ isThrottled: true })],
    ['one that fails', () => Promise.reject(new Error('no store'))],
  ])('nothing is released on an async read: %s', (_, read) => {
    const one = start({ read: read as unknown as () => ReplayFacts });
    expect(one.tryRelease()).toEqual({ isAllowed: false, waitMs: 1_000, stops: [] });
    expect(t.value('internalErrors')).toBe(1);
  });
});

describe('T-23, L-32: a replay is held under its rate', () => {
  test('next to nothing is spare: it asks again soon, since there may be more by then', () => {
    facts = { capacityPerSecond: 100.0001, livePerSecond: 100 };
    const one = start();
    expect(one.tryRelease().isAllowed).toBe(true);
    expect(one.tryRelease().waitMs).toBe(1_000);
    facts = { capacityPerSecond: 200, livePerSecond: 100 };
    clock.at = 1_000;
    expect(one.tryRelease().isAllowed).toBe(true);
  });

  test('names are bounded for as long as their series stand', () => {
    for (let i = 1; i <= MAX_QUEUES; i++) start({}, `jobs${i}`).close();
    expect(() => start({}, 'one-more')).toThrow(/at most 20, one-more is one too many/);
    expect(() => start({}, 'jobs7')).not.toThrow();
  });

  test('asked all the time, it releases ten a second and not one more', () => {
    const one = start();
    expect(release(one, 5_000)).toBe(50);
    expect(t.value('replayReleased', { queue: 'jobs' })).toBe(50);
  });

  test('a pause is not made up for', () => {
    const one = start();
    expect(one.tryRelease().isAllowed).toBe(true);
    clock.at = 60_000;
    expect(release(one, 61_000)).toBe(10);
  });

  test('it says when to ask again', () => {
    const one = start();
    one.tryRelease();
    clock.at = 30;
    expect(one.tryRelease()).toEqual({ isAllowed: false, waitMs: 70, stops: [] });
    clock.at = 100;
    expect(one.tryRelease()).toEqual({ isAllowed: true, waitMs: 0, stops: [] });
  });

  test('what is spare is the rate where it is less, and the rate follows at once', () => {
    facts = { capacityPerSecond: 100, livePerSecond: 95 };
    const one = start();
    expect(release(one, 2_000)).toBe(10);
    facts = { capacityPerSecond: 100, livePerSecond: 120 };
    expect(one.tryRelease()).toEqual({ isAllowed: false, waitMs: 1_000, stops: [] });
    collect();
    expect([t.value('replayLimit'), t.value('replaySpare')]).toEqual([0, -20]);
    facts = { capacityPerSecond: 100, livePerSecond: 20 };
    collect();
    expect([t.value('replayLimit'), t.value('replaySpare')]).toEqual([10, 80]);
  });

  test('L-33: live demand is what this process admits, replay itself not counted', () => {
    facts = { capacityPerSecond: 25 };
    const one = start({ maxPerSecond: 100 });
    one.tryRelease();
    for (let i = 0; i < 20; i++) withBudget(1_000, () => undefined);
    for (let i = 0; i < 50; i++) withBudget(1_000, () => undefined, { workload: 'replay' });
    clock.at = 1_000;
    collect();
    expect(t.value('replaySpare')).toBe(5);
    expect(t.value('replayLimit')).toBe(5);
    expect(t.value('workloadCompleted', { workload: 'live' })).toBe(20);
    expect(t.value('workloadCompleted', { workload: 'replay' })).toBe(50);
  });

  test('without a capacity nothing is estimated', () => {
    start().tryRelease();
    expect(t.recorder.families.replaySpare.cells.every((cell) => cell.isAbsent)).toBe(true);
  });
});

describe('L-34, A-14: stopped by what it is told', () => {
  test('each stop and each pause is counted, once for as long as it lasts', () => {
    const one = start({ latencyLimitMs: 200 });
    expect(REPLAY_STOPS.map(gauge)).toEqual([0, 0, 0, 0]);
    facts = { latencyMs: 300, isThrottled: true };
    expect(one.tryRelease()).toEqual({ isAllowed: false, waitMs: 1_000, stops: ['latency', 'throttled'] });
    clock.at = 1_000;
    one.tryRelease();
    expect(REPLAY_STOPS.map(gauge)).toEqual([1, 0, 0, 1]);
    facts = { latencyMs: 300 };
    collect();
    expect(REPLAY_STOPS.map(gauge)).toEqual([1, 0, 0, 0]);
    facts = {};
    expect(one.tryRelease().isAllowed).toBe(true);
    facts = { latencyMs: 300 };
    clock.at = 9_000;
    one.tryRelease();
    const pauses = (stop: string) => t.value('replayPauses', { queue: 'jobs', stop });
    expect(REPLAY_STOPS.map(pauses)).toEqual([2, 0, 0, 1]);
    expect(t.value('replayReleased')).toBe(1);
  });

  test('a pause is an event on the span of the work that asked', async () => {
    const exporter = new InMemorySpanExporter();
    const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
    const headers = {};
    const record = t.recorder.enter({ headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' }, 0);
    record.span = provider.getTracer('test').startSpan('drain');
    const one = start();
    facts = { isThrottled: true };
    runInScope(record, () => {
      one.tryRelease();
      one.tryRelease();
    });
    record.span.end();
    const [span] = exporter.getFinishedSpans();
    expect(span?.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      ['time_budget.replay_paused', { 'time_budget.replay.stop': 'throttled' }],
    ]);
  });

  test('where nothing can be seen nothing is released', () => {
    const one = start({
      read: () => {
        throw new Error('closed');
      },
    });
    expect(one.tryRelease()).toEqual({ isAllowed: false, waitMs: 1_000, stops: [] });
    expect(t.value('internalErrors')).toBeGreaterThan(0);
  });
});

describe('what cannot work is refused', () => {
  test.each([
    [{ maxPerSecond: 0 }, 'replay: maxPerSecond must be a number > 0, got 0'],
    [{ maxPerSecond: Number.NaN }, 'replay: maxPerSecond must be a number > 0, got NaN'],
    [{ latencyLimitMs: 0 }, 'replay: latencyLimitMs must be a number > 0, got 0'],
    [{ liveUsefulLifeMs: -1 }, 'replay: liveUsefulLifeMs must be a number > 0, got -1'],
    [{ duplicateLimit: 1.1 }, 'replay: duplicateLimit must be in 0..1, got 1.1'],
  ])('%o', (options, message) => {
    expect(() => start(options)).toThrow(new RangeError(message));
  });

  test('a name that is taken, until it is closed; one that is no label; one too many', () => {
    const one = start();
    expect(() => start()).toThrow('there is a replay jobs already');
    one.close();
    start();
    expect(() => start({}, 'a b')).toThrow(RangeError);
    for (let i = 1; i < 20; i++) start({}, `jobs-${i}`);
    expect(() => start({}, 'jobs-20')).toThrow('at most 20, jobs-20 is one too many');
  });

  test('without the package it paces and stops all the same', () => {
    deactivateRecorder(t.recorder);
    const one = start({ maxPerSecond: 0.001 }, 'alone');
    expect(one.tryRelease().isAllowed).toBe(true);
    expect(one.tryRelease().isAllowed).toBe(false);
    facts = { isThrottled: true };
    expect(one.tryRelease().stops).toEqual(['throttled']);
  });
});
