import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createCellProducer } from '../../instrumentation/process/metric-producer.ts';
import { createTextWriter } from '../../instrumentation/sdk/prometheus-text.ts';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { type QueueState, watchQueue } from '../../src/admission/index.ts';
import { workOf } from '../../src/core/backlog.ts';
import { METRICS, type MetricKey } from '../../src/telemetry/names.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

let clock: VirtualClock;
let t: TestHooks;
let state: QueueState;

beforeEach(() => {
  clock = createVirtualClock();
  t = createTestHooks({ clock });
  activateRecorder(t.recorder);
  watchQueue('jobs', () => state);
});

afterEach(() => deactivateRecorder(t.recorder));

function collect(at: number, now: QueueState): void {
  clock.at = at;
  state = now;
  t.recorder.families.queueDepth.refresh?.();
}

/** The value that leaves the process; undefined where none does. */
function told(metric: MetricKey): unknown {
  const { scopeMetrics } = createCellProducer(t.recorder.families, '1').collectNow();
  const metrics = scopeMetrics.flatMap((scope) => scope.metrics);
  const found = metrics.find(({ descriptor }) => descriptor.name === METRICS[metric].name);
  return found?.dataPoints.find(({ attributes }) => attributes.queue === 'jobs')?.value;
}

describe('A-17, L-14: the backlog as the model sees it, on rates that are measured', () => {
  const totals = (depth: number, entered: number, repeats: number, started: number): QueueState => ({
    depth,
    entered,
    repeats,
    left: { started },
  });

  test('it grows: 0, and no time; it shrinks: 1, and the time; the break-even rate beside both', () => {
    collect(0, totals(2_000, 2_000, 0, 0));
    expect([told('modelDrains'), told('modelTimeToDrain')]).toEqual([undefined, undefined]);
    collect(10_000, totals(2_400, 3_200, 400, 800));
    expect([told('modelDrains'), told('modelTimeToDrain'), told('modelBreakEven')]).toEqual([
      0,
      undefined,
      0,
    ]);
    collect(80_000, totals(1_000, 9_200, 400, 8_200));
    expect(told('modelDrains')).toBe(1);
    expect(told('modelTimeToDrain')).toBeCloseTo(1_000 / (7_400 / 70 - 6_000 / 70), 6);
    expect(told('recovering')).toBe(70);
    expect(t.value('queueRepeats')).toBe(400);
  });

  test('what is not known is on no page, rather than 0 or NaN', () => {
    collect(0, totals(10, 10, 0, 0));
    const page = createTextWriter(t.recorder.families)();
    expect(page).toContain('time_budget_queue_depth{queue="jobs"} 10\n');
    expect(page).not.toContain('time_budget_model_time_to_drain_seconds{');
    expect(page).not.toContain('NaN');
  });

  test('a queue that tells its depth alone has no figure of the model', () => {
    collect(0, { depth: 10 });
    collect(10_000, { depth: 5 });
    expect([told('modelDrains'), told('recovering')]).toEqual([undefined, undefined]);
  });

  test('T-26: every figure of the model says in its name and its text that it is one', () => {
    for (const { name, description } of Object.values(METRICS)) {
      expect(name.includes('.model.'), name).toBe(/fluid model/i.test(description));
    }
    expect(Object.values(METRICS).filter(({ name }) => name.includes('.model.'))).toHaveLength(3);
  });
});

describe('N-21: cost, and not length', () => {
  test('ten slow reports are the larger backlog than a thousand small updates', () => {
    const reports = workOf([{ count: 10, cost: 300 }]);
    const updates = workOf([{ count: 1_000, cost: 1 }]);
    collect(0, { depth: 10, entered: 10, left: {}, work: { waiting: reports, entered: reports, done: 0 } });
    expect([told('queueDepth'), told('queueWork')]).toEqual([10, 3_000]);
    expect(reports).toBeGreaterThan(updates);
  });

  test('the model reckons in cost where it is told', () => {
    collect(0, { depth: 10, entered: 10, left: {}, work: { waiting: 3_000, entered: 3_000, done: 0 } });
    // One report done is a tenth of the items and of the work, at 30 units a second.
    collect(10_000, {
      depth: 9,
      entered: 10,
      left: { started: 1 },
      work: { waiting: 2_700, entered: 3_000, done: 300 },
    });
    expect(told('modelTimeToDrain')).toBeCloseTo(90, 6);
  });
});

describe('L-15, L-16, T-34: nothing leaves without a word', () => {
  test('entered = left by every way + depth', () => {
    const left = { started: 5, expired: 3, parked: 1, deleted: 1 };
    collect(0, { depth: 2, entered: 12, left });
    const sum = Object.keys(left).map((result) => t.value('queueLeft', { queue: 'jobs', result }));
    expect(sum).toEqual([5, 3, 1, 1]);
    expect(t.value('queueLeft') + t.value('queueDepth')).toBe(t.value('queueEntered'));
    expect(t.value('violations', { kind: 'no_disposition' })).toBe(0);
  });

  test('what is gone otherwise is a violation, once', () => {
    collect(0, { depth: 2, entered: 12, left: { started: 5 } });
    collect(1_000, { depth: 2, entered: 12, left: { started: 5 } });
    expect(t.value('violations', { kind: 'no_disposition' })).toBe(5);
    collect(2_000, { depth: 1, entered: 12, left: { started: 5 } });
    expect(t.value('violations', { kind: 'no_disposition' })).toBe(6);
  });

  test.each([
    ['an async one', () => Promise.resolve({ depth: 1 })],
    ['an async one that fails', () => Promise.reject(new Error('no broker'))],
    ['nothing', () => undefined],
    ['a text', () => ({ depth: '12' })],
    ['an oldest that is none', () => ({ depth: 1, oldestAt: null })],
    ['totals that are none', () => ({ depth: 1, entered: '5', left: { started: 1 } })],
    ['work that is none', () => ({ depth: 1, work: {} })],
    ['a depth without end', () => ({ depth: Infinity })],
    ['an oldest without end', () => ({ depth: 1, oldestAt: -Infinity })],
    ['a useful life without end', () => ({ depth: 1, usefulLifeMs: Infinity })],
    ['totals without end', () => ({ depth: 1, entered: Infinity, left: {} })],
    ['work without end', () => ({ depth: 1, work: { waiting: Infinity, entered: 1, done: 0 } })],
    ['NaN', () => ({ depth: Number.NaN })],
  ])('a read that tells no numbers (%s) is a fault, and spoils no page', (_, tell) => {
    collect(0, { depth: 3 });
    // Plain JavaScript can give anything.
    collect(1_000, tell() as unknown as QueueState);
    expect(t.value('internalErrors')).toBe(1);
    expect(t.value('queueDepth')).toBe(3);
    expect(createTextWriter(t.recorder.families)()).not.toMatch(/ (undefined|NaN|\[object|[+-]?Inf)/);
  });

  test('totals that make no sense change nothing', () => {
    collect(0, { depth: 0, entered: 9, left: { started: 9 } });
    collect(1_000, { depth: 0, entered: 8, left: { started: -1 } });
    expect([t.value('queueEntered'), t.value('queueLeft')]).toEqual([9, 9]);
  });
});
