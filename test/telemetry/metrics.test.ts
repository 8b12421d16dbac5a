import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import {
  AggregationTemporality,
  DataPointType,
  MeterProvider,
  type MetricData,
  MetricReader,
} from '@opentelemetry/sdk-metrics';
import { beforeEach, describe, expect, test } from 'vitest';
import { createCellProducer } from '../../instrumentation/process/metric-producer.ts';
import { createTextWriter } from '../../instrumentation/sdk/prometheus-text.ts';
import { enterScope, runInScope } from '../../src/current.ts';
import type { Recorder } from '../../src/recorder.ts';
import { type ConfigOptions, defaultConfig } from '../../src/telemetry/config.ts';
import { attachMeter, valuesLike } from '../../src/telemetry/meter-backend.ts';
import { createFamilies, type Families, HistogramCell, seriesBound } from '../../src/telemetry/metrics.ts';
import { METRICS, RATIO_BUCKETS, SECONDS_BUCKETS } from '../../src/telemetry/names.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

interface Exposed {
  readonly unit: string;
  readonly description: string;
  readonly type: string;
  /** By labels as JSON, sorted. */
  readonly series: Readonly<Record<string, unknown>>;
}
type Exposition = Readonly<Record<string, Exposed>>;

interface BackEnd {
  readonly name: string;
  /** Connects the cells; what it returns collects them. */
  connect(families: Families, temporality?: AggregationTemporality): () => Promise<Exposition>;
}

function collector(reader: MetricReader): () => Promise<Exposition> {
  return async () => {
    const { resourceMetrics, errors } = await reader.collect();
    expect(errors).toEqual([]);
    return Object.fromEntries(
      resourceMetrics.scopeMetrics.flatMap(({ scope, metrics }) => {
        expect(scope.name).toBe('otel-time-budget');
        return metrics.map((metric) => [metric.descriptor.name, exposed(metric)]);
      }),
    );
  };
}

function exposed(metric: MetricData): Exposed {
  const series: Record<string, unknown> = {};
  for (const { attributes, value } of metric.dataPoints) {
    const key = JSON.stringify(Object.entries(attributes).sort());
    expect(series).not.toHaveProperty([key]);
    // Sums of fractions differ in the last digits with the order of adding; a least and a greatest only the
    // SDK has.
    series[key] =
      typeof value === 'number'
        ? rounded(value)
        : {
            count: value.count,
            sum: rounded(value.sum),
            ...('buckets' in value
              ? { bounds: value.buckets.boundaries, counts: [...value.buckets.counts] }
              : {}),
          };
  }
  const monotonic = metric.dataPointType === DataPointType.SUM && metric.isMonotonic ? ', monotonic' : '';
  const { unit, description } = metric.descriptor;
  return { unit, description, type: DataPointType[metric.dataPointType] + monotonic, series };
}

function rounded(value: number | undefined): number | undefined {
  return value === undefined ? undefined : Number(value.toPrecision(12));
}

const options = (temporality: AggregationTemporality) => ({
  aggregationTemporalitySelector: () => temporality,
});

const OURS: BackEnd = {
  name: 'metric producer',
  connect(families, temporality = AggregationTemporality.CUMULATIVE) {
    const producer = createCellProducer(families, '1.2.3', () => temporality);
    const reader = new Reader({ ...options(temporality), metricProducers: [producer] });
    new MeterProvider({ readers: [reader] });
    return collector(reader);
  },
};
const FOREIGN: BackEnd = {
  name: 'meter of another SDK',
  connect(families, temporality = AggregationTemporality.CUMULATIVE) {
    const reader = new Reader(options(temporality));
    attachMeter(families, new MeterProvider({ readers: [reader] }), '1.2.3', (error) => {
      throw error;
    });
    return collector(reader);
  },
};

let clock: VirtualClock;
let t: TestHooks;

function start(config: ConfigOptions = {}): void {
  clock = createVirtualClock();
  t = createTestHooks({ clock, config });
}

/** A request of 100 ms with two calls, one of which is cut off, ended after `ms`. */
function drive({ recorder, hooks }: TestHooks, ms: number, headers: Record<string, string> = {}): void {
  const startedAt = clock.at;
  const record = recorder.enter(
    {
      headers: { 'x-request-timeout-ms': '100', ...headers },
      remoteAddress: '127.0.0.1',
      method: 'GET',
      path: '/orders/1',
    },
    startedAt,
  );
  recorder.handling(record, 'GET /orders/:id', startedAt + 1);
  runInScope(record, () => {
    const stock = hooks.calls.begin(hooks.calls.target('stock', 80, 'http'), startedAt + 2);
    hooks.calls.end(stock, 'answered', startedAt + 12);
    const price = hooks.calls.begin(hooks.calls.target('price', 80, 'http'), startedAt + 12, 20);
    hooks.calls.end(price, 'timed_out', startedAt + 32);
  });
  clock.at = startedAt + ms;
  recorder.finish(record, { completed: true, status: 200 }, clock.at);
}

beforeEach(() => {
  enterScope(undefined);
  start({ dependencies: { stock: { capMs: 300, reserveMs: 5 } } });
});

describe.each([OURS, FOREIGN])('$name', (backEnd) => {
  test('every metric with its name, unit, type and description', async () => {
    const collect = backEnd.connect(t.recorder.families);
    drive(t, 60);
    drive(t, 130, { 'time-budget': 'remaining=x, caller=shop' });
    const metrics = await collect();
    for (const [name, { unit, description, type }] of Object.entries(metrics)) {
      const definition = Object.values(METRICS).find((each) => each.name === name);
      expect({ unit, description }, name).toEqual({
        unit: definition?.unit,
        description: definition?.description,
      });
      expect(type, name).toBe(
        { counter: 'SUM, monotonic', histogram: 'HISTOGRAM', gauge: 'GAUGE' }[definition?.type ?? 'gauge'],
      );
    }
    expect(Object.keys(metrics)).toEqual(
      expect.arrayContaining(['time_budget.offered', 'time_budget.remaining.ratio', 'time_budget.executing']),
    );
  });

  test('counters, gauges and histograms with their labels', async () => {
    const collect = backEnd.connect(t.recorder.families);
    drive(t, 60);
    drive(t, 130);
    const metrics = await collect();
    const who = '["caller","unknown"],["operation","GET /orders/:id"]';
    expect(metrics['time_budget.offered']?.series).toEqual({ [`[${who},["priority","unset"]]`]: 2 });
    expect(metrics['time_budget.outcomes']?.series).toMatchObject({
      '[["caller","unknown"],["operation","GET /orders/:id"],["outcome","late"],["priority","unset"]]': 1,
      '[["caller","unknown"],["operation","GET /orders/:id"],["outcome","refused"],["priority","unset"]]': 0,
    });
    expect(metrics['time_budget.executing']?.series).toEqual({
      '[["dependency","price"]]': 0,
      '[["dependency","stock"]]': 0,
    });
    expect(metrics['time_budget.dependency_cap.seconds']?.series).toEqual({
      '[["dependency","stock"]]': 0.3,
    });
    expect(metrics['time_budget.received.seconds']?.series).toEqual({
      [`[${who}]`]: {
        count: 2,
        sum: 0.2,
        bounds: [...SECONDS_BUCKETS],
        counts: [0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0],
      },
    });
    expect(metrics['time_budget.call_duration.seconds']?.series['[["dependency","price"]]']).toMatchObject({
      count: 2,
      sum: 0.04,
    });
    // The overrun of 30 ms; the request that was in time is not in it.
    expect(metrics['time_budget.overrun.seconds']?.series).toEqual({
      '[["operation","GET /orders/:id"]]': {
        count: 1,
        sum: 0.03,
        bounds: [...SECONDS_BUCKETS],
        counts: [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0],
      },
    });
    expect(
      metrics['time_budget.remaining.ratio']?.series[
        '[["operation","GET /orders/:id"],["point","before_call"]]'
      ],
    ).toMatchObject({
      bounds: [...RATIO_BUCKETS],
      count: 4,
    });
  });

  test('closed lists are there with 0 before the first request; a histogram without a value is absent', async () => {
    const metrics = await backEnd.connect(t.recorder.families)();
    expect(metrics['time_budget.expiries']?.series['[["dependency","none"],["phase","pool_wait"]]']).toBe(0);
    expect(metrics['time_budget.internal_errors']?.series).toEqual({ '[]': 0 });
    expect(metrics).not.toHaveProperty(['time_budget.call_duration.seconds']);
  });

  test('a collection does not age: what is recorded after it is in the next one', async () => {
    const collect = backEnd.connect(t.recorder.families);
    drive(t, 60);
    const first = await collect();
    const before = structuredClone(first);
    drive(t, 60);
    expect(first).toEqual(before);
    const second = await collect();
    expect(Object.values(second['time_budget.offered']?.series ?? {})).toEqual([2]);
  });

  test('a reader that wants deltas gets them', async () => {
    const collect = backEnd.connect(t.recorder.families, AggregationTemporality.DELTA);
    drive(t, 60);
    drive(t, 60);
    expect(Object.values((await collect())['time_budget.offered']?.series ?? {})).toEqual([2]);
    drive(t, 60);
    const metrics = await collect();
    expect(Object.values(metrics['time_budget.offered']?.series ?? {})).toEqual([1]);
    expect(Object.values(metrics['time_budget.processing.seconds']?.series ?? {})).toMatchObject([
      { count: 1, sum: 0.059 },
    ]);
    // A gauge has no delta.
    expect(metrics['time_budget.dependency_cap.seconds']?.series).toEqual({
      '[["dependency","stock"]]': 0.3,
    });
  });

  test('M6: 12 ms reads between 10 and 25 ms', async () => {
    const collect = backEnd.connect(t.recorder.families);
    t.recorder.families.callDuration.cell('stock').recordMs(12);
    const series = (await collect())['time_budget.call_duration.seconds']?.series['[["dependency","stock"]]'];
    expect(series).toMatchObject({
      bounds: expect.arrayContaining([0.01, 0.025]),
      counts: [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    });
    expect(SECONDS_BUCKETS.slice(1, 3)).toEqual([0.01, 0.025]);
  });

  test('a value on a bound belongs to the bucket below it; negative and endless ones are not recorded', async () => {
    const collect = backEnd.connect(t.recorder.families);
    const cell = t.recorder.families.callDuration.cell('stock');
    for (const value of [0, 0.005, 0.0050001, 30, 30.1, -0.001, Number.NaN, Infinity]) cell.record(value);
    expect(
      (await collect())['time_budget.call_duration.seconds']?.series['[["dependency","stock"]]'],
    ).toMatchObject({
      counts: [2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
      count: 5,
    });
  });

  test('buckets of the configuration', async () => {
    start({ bucketsS: [0.1, 1] });
    const collect = backEnd.connect(t.recorder.families);
    t.recorder.families.callDuration.cell('stock').record(0.5);
    t.recorder.families.remainingRatio.cell('GET /', 'received').record(0.5);
    const metrics = await collect();
    expect(Object.values(metrics['time_budget.call_duration.seconds']?.series ?? {})).toMatchObject([
      { bounds: [0.1, 1], counts: [0, 1, 0] },
    ]);
    expect(Object.values(metrics['time_budget.remaining.ratio']?.series ?? {})).toMatchObject([
      { bounds: [...RATIO_BUCKETS] },
    ]);
  });
});

describe('both back ends', () => {
  test.each([AggregationTemporality.CUMULATIVE, AggregationTemporality.DELTA])(
    'give equal series for the same records, temporality %i',
    async (temporality) => {
      const ours = OURS.connect(t.recorder.families, temporality);
      const foreign = FOREIGN.connect(t.recorder.families, temporality);
      for (let round = 0; round < 3; round++) {
        for (const ms of [40, 60, 99, 100, 101, 5_000, 31_000])
          drive(t, ms, { 'time-budget': 'remaining=80, caller=shop' });
        const expected = await ours();
        const actual = await foreign();
        expect(Object.keys(expected).length).toBeGreaterThan(20);
        expect(actual).toEqual(expected);
      }
    },
  );

  test('a provider that comes late is given everything from the start', async () => {
    const ours = OURS.connect(t.recorder.families);
    for (const ms of [40, 60, 99, 130, 5_000, 31_000]) drive(t, ms);
    const foreign = FOREIGN.connect(t.recorder.families);
    drive(t, 70);
    expect(await foreign()).toEqual(await ours());
  });

  test('a provider that takes the place of another is given everything too, and the first gets no more', async () => {
    const { families } = t.recorder;
    const [left, right] = [new Reader(), new Reader()];
    const fail = (error: unknown) => {
      throw error;
    };
    const undo = attachMeter(families, new MeterProvider({ readers: [left] }), '1', fail);
    drive(t, 60);
    undo();
    attachMeter(families, new MeterProvider({ readers: [right] }), '1', fail);
    drive(t, 60);
    const [first, second] = [await collector(left)(), await collector(right)()];
    expect(Object.values(first['time_budget.processing.seconds']?.series ?? {})).toMatchObject([
      { count: 1 },
    ]);
    expect(Object.values(second['time_budget.processing.seconds']?.series ?? {})).toMatchObject([
      { count: 2 },
    ]);
    expect(second).toEqual(await OURS.connect(families)());
  });

  test('a provider whose histogram throws costs no record', () => {
    const errors: unknown[] = [];
    const observable = { addCallback() {}, removeCallback() {} };
    const meter = {
      createObservableGauge: () => observable,
      createObservableCounter: () => observable,
      createHistogram: () => ({
        record() {
          throw new Error('vendor');
        },
      }),
    };
    // As much of a provider as is used.
    const broken = { getMeter: () => meter } as unknown as MeterProvider;
    attachMeter(t.recorder.families, broken, '1', (error) => errors.push(error));
    drive(t, 60);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
    expect(errors).toHaveLength(histogramCount(t.recorder));
  });
});

function histogramCount({ families }: Recorder): number {
  let count = 0;
  for (const { cells } of Object.values(families)) {
    for (const cell of cells) if (cell instanceof HistogramCell) count += cell.count;
  }
  return count;
}

describe('values that fill a histogram again', () => {
  test.each([
    [[]],
    [[0]],
    [[0.005]],
    [[0.012, 0.013, 0.02]],
    [[0, 0.3, 0.3, 4]],
    [[45]],
    [[30.000001]],
    [[0.001, 29, 31, 7200]],
    [[0.01, 0.01, 0.01, 0.025]],
  ])('%j: as many in each bucket, the same sum', (values) => {
    const [cell, again] = [new HistogramCell({}, SECONDS_BUCKETS), new HistogramCell({}, SECONDS_BUCKETS)];
    for (const value of values) cell.record(value);
    for (const { value, times } of valuesLike(cell)) for (let i = 0; i < times; i++) again.record(value);
    expect(again.counts).toEqual(cell.counts);
    expect(again.sum).toBeCloseTo(cell.sum, 9);
  });
});

describe('the exposition page', () => {
  async function page(families: Families): Promise<string> {
    const exporter = new PrometheusExporter({
      preventServerStart: true,
      withoutScopeInfo: true,
      metricProducers: [createCellProducer(families, '1.2.3')],
    });
    new MeterProvider({ readers: [exporter] });
    const server = createServer((request, response) => exporter.getMetricsRequestHandler(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    await new Promise((resolve) => server.close(resolve));
    return text;
  }

  test('M3: exactly one suffix; M4: the unit is in the name, and a counter ends in _total', async () => {
    drive(t, 130);
    const text = await page(t.recorder.families);
    const names = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, type]) => `${name} ${type}`);
    expect(names).toEqual(
      expect.arrayContaining([
        'time_budget_received_seconds histogram',
        'time_budget_remaining_seconds histogram',
        'time_budget_remaining_ratio histogram',
        'time_budget_outcomes_total counter',
        'time_budget_execution_seconds_total counter',
        'time_budget_post_cancel_seconds_total counter',
        'time_budget_executing gauge',
        'time_budget_reserve_seconds gauge',
      ]),
    );
    expect(text).not.toMatch(/_total_total|_seconds_seconds|_ratio_ratio|_milliseconds|otel_scope/);
    expect(text).toContain(
      'time_budget_outcomes_total{caller="unknown",operation="GET /orders/:id",priority="unset",outcome="late"} 1\n',
    );
    expect(text).toContain('time_budget_overrun_seconds_bucket{operation="GET /orders/:id",le="0.025"} 0\n');
    expect(text).toContain('time_budget_overrun_seconds_bucket{operation="GET /orders/:id",le="0.05"} 1\n');
    expect(text).toContain('time_budget_overrun_seconds_bucket{operation="GET /orders/:id",le="+Inf"} 1\n');
  });

  test('our own writer writes what the exporter would', async () => {
    drive(t, 130, { 'time-budget': 'remaining=80, caller=shop' });
    drive(t, 31_000);
    const { families } = t.recorder;
    families.callDuration.cell('a "quoted" \\ name\nof two lines').record(0.012);
    families.poolWait.cell('orders').recordMs(3);
    const own = createTextWriter(families)();
    const [, theirs] = (await page(families)).split(/(?<=^target_info.*\n)/m);
    // The one difference: that one adds no unit, and the conventions' name has none.
    expect(own).toBe(theirs?.replaceAll('db_client_connection_wait_time', '$&_seconds'));
    expect(own).toContain('le="0.025"} 1\n');
  });

  test('every metric of the catalogue has one valid name, and no two share one', async () => {
    const families = createFamilies();
    for (const family of Object.values(families)) {
      const cell = family.cell(...family.definition.labels.map(() => 'x'));
      if (cell instanceof HistogramCell) cell.record(0.1);
      else cell.add(1);
    }
    const text = await page(families);
    const names = [...text.matchAll(/^# TYPE (\S+) \S+$/gm)].map(([, name]) => name);
    expect(names.filter((name) => name !== 'target_info')).toHaveLength(Object.keys(METRICS).length);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9_]*[a-z0-9]$/);
    expect(text).toContain('db_client_connection_wait_time_count{db_client_connection_pool_name="x"} 1\n');
  });
});

describe('the bound on series', () => {
  test('M7: ten thousand paths, callers and hosts stay within the bound, which is not far off', () => {
    const labels = { operations: 3, dependencies: 2, callers: 2 };
    start({ labels });
    for (let i = 0; i < 10_000; i++) {
      const record = t.recorder.enter(
        {
          headers: {
            'time-budget': `remaining=100, caller=c${i}, priority=${['critical', 'normal'][i % 2]}`,
          },
          remoteAddress: '127.0.0.1',
          method: 'GET',
          path: `/orders/${i}`,
        },
        clock.at,
      );
      t.recorder.handling(record, `GET /orders/${i}`, clock.at);
      runInScope(record, () => {
        const call = t.hooks.calls.begin(t.hooks.calls.target(`h${i}`, 80, 'http'), clock.at);
        t.hooks.calls.end(call, 'answered', clock.at + 1);
      });
      clock.at += 2;
      t.recorder.finish(record, { completed: true, status: 200 }, clock.at);
    }
    const caps = { operation: 3, dependency: 2, caller: 2 };
    for (const { definition, cells } of Object.values(t.recorder.families)) {
      const perCell =
        definition.type === 'histogram'
          ? (definition.unit === '1' ? RATIO_BUCKETS : SECONDS_BUCKETS).length + 3
          : 1;
      expect(cells.length * perCell, definition.name).toBeLessThanOrEqual(seriesBound(definition, caps));
    }
    // 3 operations and other, by 3 points.
    expect(t.recorder.families.remaining.cells).toHaveLength(12);
    // 2 callers and other, 3 operations and other, 2 priorities, though not in every combination.
    expect(t.recorder.families.offered.cells.length).toBeLessThanOrEqual(3 * 4 * 2);
    expect(t.value('labelOverflow', { label: 'operation' })).toBe(9_997);
    expect(t.value('labelOverflow', { label: 'dependency' })).toBe(9_998);
  });

  test('the bound of a metric is the product of its labels, and of its buckets', () => {
    const caps = { operation: 50, dependency: 20, caller: 8 };
    expect(seriesBound(METRICS.received, caps)).toBe((8 + 2) * (50 + 2) * (SECONDS_BUCKETS.length + 3));
    expect(seriesBound(METRICS.remainingRatio, caps)).toBe((50 + 2) * 3 * (RATIO_BUCKETS.length + 3));
    expect(seriesBound(METRICS.executing, caps)).toBe(20 + 2);
    expect(seriesBound(METRICS.internalErrors, caps)).toBe(1);
    expect(defaultConfig().labels).toEqual({ operations: 50, dependencies: 20, callers: 8 });
  });
});
