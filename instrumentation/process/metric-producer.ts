/** Hands the cells over at collection, where the SDK is ours: no record goes through an instrument. */
import { performance } from 'node:perf_hooks';
import { type HrTime, ValueType } from '@opentelemetry/api';
import {
  AggregationTemporality,
  type AggregationTemporalitySelector,
  type DataPoint,
  DataPointType,
  type Histogram,
  InstrumentType,
  type MetricData,
  type MetricDescriptor,
  type MetricProducer,
  type ResourceMetrics,
} from '@opentelemetry/sdk-metrics';
import type { Families, Family, HistogramCell, NumberCell } from '../../src/telemetry/metrics.ts';
import { type MetricDefinition, SCOPE_NAME } from '../../src/telemetry/names.ts';

/** A producer with a synchronous form, for the last collection of a process that is ending. */
export interface CellProducer extends MetricProducer {
  collectNow(): Pick<ResourceMetrics, 'scopeMetrics'>;
  /** Whether something was counted since the last collection. */
  hasNews(): boolean;
}

/**
 * One producer for each reader: it remembers what the reader was told, for readers that want deltas. Views and
 * cardinality limits of the SDK do not apply; series are bounded where the cells are made. A histogram that
 * nothing was recorded in is absent, as it is when an instrument keeps it.
 */
export function createCellProducer(
  families: Families,
  version: string,
  temporalityOf: AggregationTemporalitySelector = () => AggregationTemporality.CUMULATIVE,
): CellProducer {
  const scope = { name: SCOPE_NAME, version };
  const collectors = Object.values(families).map((family) =>
    isHistogram(family)
      ? histogramCollector(family, temporalityOf(InstrumentType.HISTOGRAM))
      : numberCollector(family, temporalityOf(InstrumentType.COUNTER)),
  );
  // Cells count from the start of the process on, whenever the reader came.
  const startedAt = hrTime(performance.timeOrigin);
  let collectedAt = startedAt;
  let collectedCount = 0;

  const collectNow = () => {
    const now = hrTime(Date.now());
    const interval = { startedAt, collectedAt, now };
    const metrics = collectors
      .map((collect) => collect(interval))
      .filter(({ dataPoints }) => dataPoints.length > 0);
    collectedAt = now;
    collectedCount = countOf(families);
    return { scopeMetrics: [{ scope, metrics }] };
  };
  return {
    collectNow,
    hasNews: () => countOf(families) !== collectedCount,
    // The reader takes only the scopes; the resource is its own.
    collect: async () => ({ resourceMetrics: { resource: NO_RESOURCE, ...collectNow() }, errors: [] }),
  };
}

const NO_RESOURCE: ResourceMetrics['resource'] = {
  attributes: {},
  merge: (other) => other ?? NO_RESOURCE,
  getRawAttributes: () => [],
};

interface Interval {
  readonly startedAt: HrTime;
  /** When this reader collected before. */
  readonly collectedAt: HrTime;
  readonly now: HrTime;
}

type AnyFamily = Family<HistogramCell> | Family<NumberCell>;
type Collect = (interval: Interval) => MetricData;

function isHistogram(family: AnyFamily): family is Family<HistogramCell> {
  return family.definition.type === 'histogram';
}

function numberCollector(family: Family<NumberCell>, temporality: AggregationTemporality): Collect {
  const descriptor = describe(family.definition);
  const isDelta = temporality === AggregationTemporality.DELTA;
  const told = new Map<NumberCell, number>();
  return (interval) => {
    family.refresh?.();
    const startTime = isDelta ? interval.collectedAt : interval.startedAt;
    const point = (cell: NumberCell, value: number): DataPoint<number> => ({
      startTime,
      endTime: interval.now,
      attributes: cell.attributes,
      value,
    });
    if (family.definition.type === 'gauge') {
      return {
        descriptor,
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        dataPointType: DataPointType.GAUGE,
        dataPoints: family.cells.filter((cell) => !cell.isAbsent).map((cell) => point(cell, cell.value)),
      };
    }
    const dataPoints = family.cells.map((cell) => {
      if (!isDelta) return point(cell, cell.value);
      const before = told.get(cell) ?? 0;
      told.set(cell, cell.value);
      return point(cell, cell.value - before);
    });
    return {
      descriptor,
      aggregationTemporality: temporality,
      dataPointType: DataPointType.SUM,
      isMonotonic: true,
      dataPoints,
    };
  };
}

function histogramCollector(family: Family<HistogramCell>, temporality: AggregationTemporality): Collect {
  const descriptor = describe(family.definition);
  const isDelta = temporality === AggregationTemporality.DELTA;
  const told = new Map<HistogramCell, Histogram>();
  return (interval) => {
    const dataPoints: DataPoint<Histogram>[] = [];
    for (const cell of family.cells) {
      const before = isDelta ? told.get(cell) : undefined;
      if (cell.count === (before?.count ?? 0)) continue;
      const whole = snapshot(cell);
      if (isDelta) told.set(cell, whole);
      dataPoints.push({
        startTime: isDelta ? interval.collectedAt : interval.startedAt,
        endTime: interval.now,
        attributes: cell.attributes,
        value: before === undefined ? whole : difference(whole, before),
      });
    }
    return {
      descriptor,
      aggregationTemporality: temporality,
      dataPointType: DataPointType.HISTOGRAM,
      dataPoints,
    };
  };
}

/** Grows with every record of a counter or a histogram. */
function countOf(families: Families): number {
  let count = 0;
  for (const family of Object.values(families)) {
    if (isHistogram(family)) for (const cell of family.cells) count += cell.count;
    else if (family.definition.type === 'counter') for (const cell of family.cells) count += cell.value;
  }
  return count;
}

/** A copy: an exporter reads it later, while the cell goes on counting. */
function snapshot(cell: HistogramCell): Histogram {
  const buckets = { boundaries: [...cell.bounds], counts: [...cell.counts] };
  return { buckets, sum: cell.sum, count: cell.count };
}

function difference(whole: Histogram, before: Histogram): Histogram {
  const { boundaries, counts } = whole.buckets;
  return {
    buckets: {
      boundaries,
      counts: counts.map((count, index) => count - (before.buckets.counts[index] ?? 0)),
    },
    sum: (whole.sum ?? 0) - (before.sum ?? 0),
    count: whole.count - before.count,
  };
}

function describe({ name, description, unit }: MetricDefinition): MetricDescriptor {
  return { name, description, unit, valueType: ValueType.DOUBLE };
}

/** Seconds and nanoseconds since 1970. */
function hrTime(epochMs: number): HrTime {
  const ms = Math.floor(epochMs);
  return [Math.floor(ms / 1000), (ms % 1000) * 1e6];
}
