/**
 * Hands the cells over to a meter provider that is not ours: counters and gauges are read when it collects, by
 * observable instruments; histograms have no observable form, so each value is recorded there as well.
 */
import type { Attributes, Histogram, Meter, MeterProvider, ObservableResult } from '@opentelemetry/api';
import type { Families, Family, HistogramCell, NumberCell } from './metrics.ts';
import { SCOPE_NAME } from './names.ts';

/**
 * Values recorded before the provider came that are recorded there after all: about 20 ms of work at most. A
 * provider comes before the first request, so that this is far more than a service has by then.
 */
const MAX_REPLAYED = 20_000;

/**
 * Connects the cells to the provider, with everything that was counted before. Called again for another
 * provider, after the undo of the first, that one is given the whole count too. `onError` gets what the
 * provider throws; nothing else does.
 */
export function attachMeter(
  families: Families,
  provider: MeterProvider,
  version: string,
  onError: (error: unknown) => void,
): () => void {
  const meter = provider.getMeter(SCOPE_NAME, version);
  const undos: (() => void)[] = [];
  let left = MAX_REPLAYED;
  for (const family of Object.values(families)) {
    if (isHistogram(family)) {
      left -= attachHistogram(family, meter, left, onError, undos);
    } else {
      undos.push(attachNumbers(family, meter));
    }
  }
  return () => {
    for (const undo of undos.splice(0)) undo();
  };
}

type AnyFamily = Family<HistogramCell> | Family<NumberCell>;

function isHistogram(family: AnyFamily): family is Family<HistogramCell> {
  return family.definition.type === 'histogram';
}

function attachNumbers(family: Family<NumberCell>, meter: Meter): () => void {
  const { name, type, unit, description } = family.definition;
  const instrument =
    type === 'gauge'
      ? meter.createObservableGauge(name, { unit, description })
      : meter.createObservableCounter(name, { unit, description });
  const observe = (result: ObservableResult): void => {
    family.refresh?.();
    for (const cell of family.cells) if (!cell.isAbsent) result.observe(cell.value, cell.attributes);
  };
  instrument.addCallback(observe);
  return () => instrument.removeCallback(observe);
}

/** Returns how many values it recorded again. */
function attachHistogram(
  family: Family<HistogramCell>,
  meter: Meter,
  maxReplayed: number,
  onError: (error: unknown) => void,
  undos: (() => void)[],
): number {
  const { name, unit, description } = family.definition;
  let histogram: Histogram | undefined;
  const sink = (value: number, attributes: Attributes): void => {
    try {
      histogram?.record(value, attributes);
    } catch (error) {
      onError(error);
    }
  };
  let replayed = 0;
  family.eachCell((cell) => {
    // The bounds are known from the first cell on.
    histogram ??= meter.createHistogram(name, {
      unit,
      description,
      advice: { explicitBucketBoundaries: [...cell.bounds] },
    });
    if (cell.count <= maxReplayed - replayed) {
      replayed += cell.count;
      for (const { value, times } of valuesLike(cell)) {
        for (let i = 0; i < times; i++) sink(value, cell.attributes);
      }
    }
    cell.sink = sink;
  });
  undos.push(() => {
    family.eachCell((cell) => {
      cell.sink = undefined;
    });
  });
  return replayed;
}

/**
 * Values that fill a histogram as the recorded ones did: as many in each bucket, and the same sum. Each lies at
 * the same share of the way through its bucket, which the sum decides. The least and the greatest are not known.
 */
export function valuesLike(cell: HistogramCell): readonly { value: number; times: number }[] {
  const buckets = [...cell.counts.entries()]
    .filter(([, times]) => times > 0)
    .map(([index, times]) => {
      const low = index === 0 ? 0 : (cell.bounds[index - 1] ?? 0);
      return { low, width: (cell.bounds[index] ?? Infinity) - low, times };
    });
  const beyond = cell.sum - sum(buckets.map(({ low, times }) => low * times));
  const widths = sum(buckets.map(({ width, times }) => (width === Infinity ? 0 : width * times)));
  const open = buckets.find(({ width }) => width === Infinity);
  // Half of what is above the lower bounds goes to the open bucket, which has no other measure.
  const share = widths === 0 ? 0 : clamp(beyond / widths / (open === undefined ? 1 : 2), 0, 1);
  const openWidth = open === undefined ? 0 : Math.max(0, beyond - share * widths) / open.times;
  return buckets.map(({ low, width, times }) => ({
    // A bound itself belongs to the bucket below it.
    value: Math.max(low + (width === Infinity ? openWidth : share * width), low * (1 + Number.EPSILON)),
    times,
  }));
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function clamp(value: number, least: number, most: number): number {
  return Math.min(most, Math.max(least, value));
}
