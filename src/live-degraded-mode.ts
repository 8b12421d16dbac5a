/** A degraded mode in this process: on or off by the metric that it is tied to, and counted. */
import { DegradedSwitch } from './core/degraded-switch.ts';
import { MODE_CHANGES } from './core/terms.ts';
import type { Watched } from './load-recorder.ts';
import type { Recorder } from './recorder.ts';
import type { DegradedModeSettings, DegradedTrigger } from './telemetry/config-settings.ts';
import { HistogramCell, type NumberCell } from './telemetry/metrics.ts';
import { METRICS, type MetricKey, prometheusName } from './telemetry/names.ts';

/** Label value where a mode is thrown by hand. */
const MANUAL = 'manual';
/** Time between two looks at a metric, and the window of its rate, where none is given. */
export const DEFAULT_WINDOW_MS = 1_000;

export class LiveDegradedMode implements Watched {
  readonly kind = 'mode';
  readonly madeBy = 'degradedMode';
  readonly name: string;
  readonly trigger: string;
  readonly #settings: DegradedModeSettings;
  readonly #switch: DegradedSwitch;
  readonly #forbidden: ReadonlySet<string>;
  #recorder: Recorder | undefined;
  #gauge: NumberCell | undefined;
  #readAt = -Infinity;
  #before: Sums | undefined;

  /** Throws RangeError for points that cannot switch. */
  constructor(settings: DegradedModeSettings) {
    const { name, trigger, leastMs, nonDegradable } = settings;
    this.name = name;
    this.trigger = trigger?.metric ?? MANUAL;
    this.#settings = settings;
    this.#switch = new DegradedSwitch(
      trigger && { enterAt: trigger.enterAt, exitAt: trigger.exitAt, leastMs: leastMs ?? 0 },
    );
    this.#forbidden = new Set(nonDegradable);
  }

  connect(recorder: Recorder): void {
    this.#recorder = recorder;
    this.#gauge = recorder.families.degradedActive.cell(this.name, this.trigger);
    this.#gauge.value = this.#switch.isOn ? 1 : 0;
    for (const change of MODE_CHANGES)
      recorder.families.degradedChanges.cell(this.name, this.trigger, change);
  }

  /** Looks at the metric, at most once in its window: who asks for each request pays nothing for the others. */
  refresh(now: number): void {
    const { trigger } = this.#settings;
    const windowMs = trigger?.windowMs ?? DEFAULT_WINDOW_MS;
    if (trigger === undefined || this.#recorder === undefined || now - this.#readAt < windowMs) return;
    const sums = sumsOf(this.#recorder, trigger);
    const value = valueFrom(sums, this.#before, now - this.#readAt);
    this.#readAt = now;
    this.#before = sums;
    const change = this.#switch.read(value, now);
    if (change !== undefined) this.#record(change);
  }

  /** Whether it is on, as of its last look, which is made now where it is due. */
  isOn(now: number): boolean {
    this.refresh(now);
    return this.#switch.isOn;
  }

  /** By hand. False where it is so already. */
  set(isOn: boolean, now: number): boolean {
    if (!this.#switch.set(isOn, now)) return false;
    this.#record(isOn ? 'enter' : 'exit');
    return true;
  }

  isForbidden(operation: string | undefined): boolean {
    return operation !== undefined && this.#forbidden.has(operation);
  }

  #record(change: (typeof MODE_CHANGES)[number]): void {
    if (this.#gauge !== undefined) this.#gauge.value = change === 'enter' ? 1 : 0;
    this.#recorder?.families.degradedChanges.cell(this.name, this.trigger, change).add(1);
  }
}

interface Sums {
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly sum: number;
  readonly count: number;
}

/** The metrics that a mode may be tied to, by the names that Prometheus gives them. */
const KEYS: ReadonlyMap<string, MetricKey> = new Map(
  // The keys are those of METRICS, which Object.keys widens to string.
  (Object.keys(METRICS) as MetricKey[]).map((key) => [prometheusName(METRICS[key]), key]),
);

export function isTriggerMetric(name: string): boolean {
  return KEYS.has(name);
}

function sumsOf({ families }: Recorder, { metric, labels }: DegradedTrigger): Sums {
  const family = families[KEYS.get(metric) ?? 'internalErrors'];
  family.refresh?.();
  let sum = 0;
  let count = 0;
  const cells: readonly (NumberCell | HistogramCell)[] = family.cells;
  for (const cell of cells) {
    if (!labels.every(([key, value]) => cell.attributes[key] === value)) continue;
    sum += cell instanceof HistogramCell ? cell.sum : cell.value;
    count += cell instanceof HistogramCell ? cell.count : 1;
  }
  return { type: family.definition.type, sum, count };
}

/** A gauge as it is, a counter per second, a histogram by its mean; NaN where there is nothing to say yet. */
function valueFrom(sums: Sums, before: Sums | undefined, windowMs: number): number {
  if (sums.type === 'gauge') return sums.count === 0 ? Number.NaN : sums.sum;
  if (before === undefined) return Number.NaN;
  if (sums.type === 'counter') return ((sums.sum - before.sum) * 1_000) / windowMs;
  const count = sums.count - before.count;
  // Nothing was recorded: nothing is slow.
  return count === 0 ? 0 : (sums.sum - before.sum) / count;
}
