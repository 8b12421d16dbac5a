import { metrics } from '@opentelemetry/api';
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { TimeBudgetInstrumentation } from '../../instrumentation/index.ts';
import { activeRuntime } from '../../instrumentation/process/runtime.ts';
import { activeRecorder } from '../../src/active.ts';

const made: TimeBudgetInstrumentation[] = [];
function make(
  ...options: ConstructorParameters<typeof TimeBudgetInstrumentation>
): TimeBudgetInstrumentation {
  const instrumentation = new TimeBudgetInstrumentation(...options);
  made.push(instrumentation);
  return instrumentation;
}

afterEach(() => {
  for (const each of made.splice(0).reverse()) each.disable();
  vi.restoreAllMocks();
});

function createProvider() {
  const exporter = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const provider = new MeterProvider({ readers: [reader] });
  /** What it was told of the faults inside of us, series by series. */
  const errors = async () => {
    exporter.reset();
    await reader.forceFlush();
    return exporter
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics))
      .filter(({ descriptor }) => descriptor.name === 'time_budget.internal_errors')
      .flatMap(({ dataPoints }) => dataPoints.map(({ value }) => value));
  };
  return { provider, errors };
}

function countError(): void {
  activeRecorder()?.families.internalErrors.cell().add(1);
}

describe('TimeBudgetInstrumentation', () => {
  test('runs from its constructor until it is disabled, and again when it is enabled', () => {
    const instrumentation = make();
    const recorder = activeRecorder();
    expect(recorder).toBeDefined();
    instrumentation.enable();
    expect(activeRecorder()).toBe(recorder);
    instrumentation.disable();
    expect(activeRecorder()).toBeUndefined();
    instrumentation.disable();
    instrumentation.enable();
    expect(activeRecorder()).toBe(recorder);
  });

  test('takes settings, the environment over them', () => {
    vi.stubEnv('TIME_BUDGET_CEILING_MS', '700');
    make({ entry: { ceilingMs: 5000, defaultMs: 300 } });
    vi.unstubAllEnvs();
    expect(activeRecorder()?.config.entry).toMatchObject({ ceilingMs: 700, defaultMs: 300 });
  });

  test('J5: a second one records nothing and wraps nothing, and its end is not the end of the first', () => {
    const first = make();
    const runtime = activeRuntime();
    const second = make({ entry: { defaultMs: 5 } });
    expect(activeRuntime()).toBe(runtime);
    expect(first.getModuleDefinitions().map(({ name }) => name)).toContain('pg');
    expect(second.getModuleDefinitions()).toEqual([]);
    second.disable();
    expect(activeRuntime()).toBe(runtime);
  });

  test('hands the cells to the meter provider that it is given, of whichever of the two', async () => {
    make();
    const second = make();
    countError();
    const { provider, errors } = createProvider();
    second.setMeterProvider(provider);
    second.setMeterProvider(provider);
    countError();
    expect(await errors()).toEqual([2]);
  });

  test('a provider that does nothing is passed over; the last real one is used', async () => {
    const instrumentation = make();
    const [first, second] = [createProvider(), createProvider()];
    instrumentation.setMeterProvider(first.provider);
    instrumentation.setMeterProvider(metrics.getMeterProvider());
    countError();
    expect(await first.errors()).toEqual([1]);
    instrumentation.setMeterProvider(second.provider);
    countError();
    expect(await first.errors()).toEqual([1]);
    expect(await second.errors()).toEqual([2]);
  });

  test('settings that are not allowed are told, and nothing runs', () => {
    const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    const instrumentation = make({ entry: { defaultMs: -1 } });
    expect(activeRecorder()).toBeUndefined();
    expect(instrumentation.getModuleDefinitions()).toEqual([]);
    instrumentation.setMeterProvider(createProvider().provider);
    expect(write.mock.calls.map(([line]) => line)).toEqual([
      expect.stringMatching(/^otel-time-budget: entry\.defaultMs: -1 is not allowed; use .*\n$/),
      'otel-time-budget: not started; the service runs without it\n',
    ]);
  });

  test('switched off, nothing runs and nothing is said', () => {
    const write = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    make({ disabled: true });
    expect(activeRecorder()).toBeUndefined();
    expect(write).not.toHaveBeenCalled();
  });

  test('what a provider throws is counted and goes no further', () => {
    const instrumentation = make();
    const broken = {
      getMeter: () => {
        throw new Error('vendor');
      },
    };
    expect(() => activeRuntime()?.useMeterProvider(broken as unknown as MeterProvider)).not.toThrow();
    expect(activeRecorder()?.families.internalErrors.cell().value).toBe(1);
    expect(instrumentation.isEnabled()).toBe(true);
  });
});
