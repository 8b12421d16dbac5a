/** Hooks for in-process tests of adapters: real time unless a clock is given, and cells read by their labels. */
import { performance } from 'node:perf_hooks';
import type { Adapter, Undo } from '../../instrumentation/adapter.ts';
import { Hooks } from '../../instrumentation/adapter.ts';
import { loopIdleMs } from '../../instrumentation/process/loop-clock.ts';
import { Carriage } from '../../src/carriage.ts';
import type { Clock } from '../../src/clock.ts';
import { Recorder } from '../../src/recorder.ts';
import { type ConfigOptions, defaultConfig } from '../../src/telemetry/config.ts';
import { HistogramCell, type NumberCell } from '../../src/telemetry/metrics.ts';
import type { MetricKey } from '../../src/telemetry/names.ts';

export interface TestHooksOptions {
  readonly config?: ConfigOptions;
  /** What peers see as their caller. */
  readonly serviceName?: string;
  readonly clock?: Clock;
  /** Started at once, in this order. */
  readonly adapters?: readonly Adapter[];
}

/** Exported label keys, so `{ source: 'client_disconnect' }` and not `cancel_source`. Those left out match any. */
type Labels = Readonly<Record<string, string>>;

interface HistogramValue {
  readonly count: number;
  readonly sum: number;
}

export interface TestHooks {
  readonly hooks: Hooks;
  readonly recorder: Recorder;
  /** Sum of the counter's or gauge's cells with these labels; 0 where there is none. */
  value(metric: MetricKey, labels?: Labels): number;
  /** Count and sum (in seconds, or as a ratio) of the histogram's cells with these labels. */
  histogram(metric: MetricKey, labels?: Labels): HistogramValue;
  /** Stops the adapters, last started first. Safe to call again. */
  stop(): void;
}

/**
 * Real time, but every arrival counts as seen at once: how long it may have lain unnoticed is an upper bound, wide
 * in a test that has just loaded its modules, and has tests of its own.
 */
export const REAL_CLOCK: Clock = {
  now: () => performance.now(),
  waitMs: () => 0,
  idleMs: loopIdleMs,
};

export function createTestHooks(options: TestHooksOptions = {}): TestHooks {
  const config = defaultConfig(options.config);
  const recorder = new Recorder(config, options.clock ?? REAL_CLOCK);
  const hooks = new Hooks(recorder, new Carriage(config, options.serviceName ?? 'test-service'));
  const undos: Undo[] = [];
  for (const adapter of options.adapters ?? []) undos.push(adapter.start(hooks));
  return {
    hooks,
    recorder,
    value(metric, labels = {}) {
      let sum = 0;
      for (const cell of cellsOf(recorder, metric, labels)) {
        if (cell instanceof HistogramCell) throw new Error(`${metric} is a histogram: use histogram()`);
        sum += cell.value;
      }
      return sum;
    },
    histogram(metric, labels = {}) {
      let count = 0;
      let sum = 0;
      for (const cell of cellsOf(recorder, metric, labels)) {
        if (!(cell instanceof HistogramCell)) throw new Error(`${metric} is no histogram: use value()`);
        count += cell.count;
        sum += cell.sum;
      }
      return { count, sum };
    },
    stop() {
      for (const undo of undos.splice(0).reverse()) undo();
    },
  };
}

function cellsOf(recorder: Recorder, metric: MetricKey, labels: Labels): (NumberCell | HistogramCell)[] {
  const family = recorder.families[metric];
  const cells: readonly (NumberCell | HistogramCell)[] = family.cells;
  // A label that the metric has not would match nothing, and a test for 0 would always pass.
  for (const key of Object.keys(labels)) {
    if (cells.length > 0 && !cells.some((cell) => key in cell.attributes)) {
      throw new Error(`${family.definition.name} has no label ${key}`);
    }
  }
  return cells.filter((cell) =>
    Object.entries(labels).every(([key, value]) => cell.attributes[key] === value),
  );
}
