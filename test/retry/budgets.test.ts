import { AggregationTemporality, MeterProvider, MetricReader } from '@opentelemetry/sdk-metrics';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createCellProducer } from '../../instrumentation/process/metric-producer.ts';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { enterScope } from '../../src/current.ts';
import { mayRetry, retryBudget } from '../../src/retry/index.ts';
import { type ConfigOptions, defaultConfig, loadConfig } from '../../src/telemetry/config.ts';
import { attachMeter } from '../../src/telemetry/meter-backend.ts';
import type { Families } from '../../src/telemetry/metrics.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

class Reader extends MetricReader {
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

const BACK_ENDS = {
  'metric producer': (families: Families) => {
    const reader = new Reader({ metricProducers: [createCellProducer(families, '1')] });
    new MeterProvider({ readers: [reader] });
    return reader;
  },
  'meter of another SDK': (families: Families) => {
    const reader = new Reader({ aggregationTemporalitySelector: () => AggregationTemporality.CUMULATIVE });
    attachMeter(families, new MeterProvider({ readers: [reader] }), '1', (error) => {
      throw error;
    });
    return reader;
  },
};

const BUCKET = { model: 'token_bucket', ratio: 0.2, reservePerSecond: 1, ttlMs: 2_000 } as const;
const ASK = { dependency: 'stock', error: { status: 503 }, attempt: 1, maxAttempts: 3 };

let clock: VirtualClock;
let t: TestHooks | undefined;

function start(config: ConfigOptions = {}): TestHooks {
  if (t !== undefined) deactivateRecorder(t.recorder);
  clock = createVirtualClock();
  t = createTestHooks({ clock, config });
  activateRecorder(t.recorder);
  return t;
}

async function collected(reader: Reader): Promise<Record<string, unknown>> {
  const { resourceMetrics, errors } = await reader.collect();
  expect(errors).toEqual([]);
  return Object.fromEntries(
    resourceMetrics.scopeMetrics
      .flatMap(({ metrics }) => metrics)
      .filter(({ descriptor }) => descriptor.name.startsWith('retry_budget.'))
      .flatMap(({ descriptor, dataPoints }) =>
        dataPoints.map(({ attributes, value }) => [
          [descriptor.name, ...Object.values(attributes)].join(' '),
          value,
        ]),
      ),
  );
}

beforeEach(() => {
  enterScope(undefined);
});

afterEach(() => {
  if (t !== undefined) deactivateRecorder(t.recorder);
  t = undefined;
});

describe.each(Object.entries(BACK_ENDS))('metrics by the %s', (_, connect) => {
  test('every series is there at 0, and what changes with time is read when it is collected', async () => {
    const { recorder } = start({
      retryBudgets: { stock: { ...BUCKET, onEmpty: 'degrade' } },
      mode: 'enforce',
    });
    const reader = connect(recorder.families);
    const fresh = {
      'retry_budget.balance stock': 2,
      'retry_budget.capacity stock': 2,
      'retry_budget.floor stock': 2,
      'retry_budget.low_success stock': 0,
      'retry_budget.info stock requests original degrade': 1,
      'retry_budget.withdrawals stock granted': 0,
      'retry_budget.withdrawals stock refused': 0,
      'retry_budget.deposits stock original': 0,
      'retry_budget.deposits stock success': 0,
      'retry_budget.deposits stock refund': 0,
      'retry_budget.exhausted.seconds stock': 0,
      'retry_budget.balance_info stock own': 1,
      'retry_budget.dispositions stock original_error': 0,
      'retry_budget.dispositions stock managed_background': 0,
      'retry_budget.dispositions stock degrade': 0,
      'retry_budget.owed stock': 0,
    };
    expect(await collected(reader)).toEqual(fresh);
    for (let i = 0; i < 3; i++) mayRetry(ASK);
    clock.at = 500;
    const spent = {
      ...fresh,
      'retry_budget.balance stock': 0,
      'retry_budget.withdrawals stock granted': 2,
      'retry_budget.withdrawals stock refused': 1,
      'retry_budget.dispositions stock degrade': 1,
      'retry_budget.exhausted.seconds stock': 0.5,
    };
    expect(await collected(reader)).toEqual(spent);
    // Nothing happens but time: the withdrawals are forgotten, and the exhaustion is over.
    clock.at = 10_000;
    expect(await collected(reader)).toEqual({
      ...spent,
      'retry_budget.balance stock': 2,
      'retry_budget.exhausted.seconds stock': 2,
    });
  });
});

describe('the registry', () => {
  test('one object by its name, whoever asks', () => {
    start();
    const budget = retryBudget('stock', BUCKET);
    expect(retryBudget('stock')).toBe(budget);
    expect(retryBudget('stock', BUCKET)).toBe(budget);
    expect(() => retryBudget('price')).toThrow('there is no budget price, and no options');
  });

  test('without the package a budget of the file refuses nothing, and the service starts; with it, the file is right', () => {
    const budget = retryBudget('stock');
    expect(retryBudget('stock')).toBe(budget);
    for (let i = 0; i < 1_000; i++) expect(budget.tryWithdraw(0)).toBe(true);
    start({ retryBudgets: { stock: { model: 'in_flight_percent', percent: 20, minimum: 1 } } });
    expect(budget).toMatchObject({ model: 'in_flight_percent', floor: 1 });
    expect([budget.tryWithdraw(0), budget.tryWithdraw(0)]).toEqual([true, false]);
  });

  test('the file stands before the code', () => {
    start({ retryBudgets: { stock: { model: 'in_flight_percent', percent: 20, minimum: 3 } } });
    expect(retryBudget('stock', BUCKET)).toMatchObject({ model: 'in_flight_percent', floor: 3 });
  });

  test('one that is made before the package is started is taken over', () => {
    const budget = retryBudget('stock', BUCKET);
    expect(retryBudget('stock')).toBe(budget);
    const { value } = start();
    expect(retryBudget('stock')).toBe(budget);
    expect(mayRetry(ASK).paidBy).toBe('retry_budget');
    expect(value('retryWithdrawals', { dependency: 'stock', result: 'granted' })).toBe(1);
  });

  test('one that is made before the package is started is the one of the file afterwards', () => {
    const budget = retryBudget('stock', BUCKET);
    const { value } = start({
      retryBudgets: { stock: { model: 'in_flight_percent', percent: 0, minimum: 1 } },
    });
    expect(budget.model).toBe('in_flight_percent');
    expect([budget.tryWithdraw(0), retryBudget('stock').tryWithdraw(0)]).toEqual([true, false]);
    expect(value('retryWithdrawals', { dependency: 'stock', result: 'granted' })).toBe(1);
  });

  test.each<[unknown, unknown, string]>([
    [undefined, BUCKET, 'name must be a text, got undefined'],
    [Symbol('stock'), BUCKET, 'name must be a text, got Symbol(stock)'],
    ['stock', null, 'options must be an object, got null'],
    ['stock', { ...BUCKET, dependencies: 'stock' }, 'dependencies must be a list of names, got stock'],
    ['stock', { ...BUCKET, dependencies: [5] }, 'dependencies must be a list of names, got 5'],
  ])('what is no name is refused: %o %o', (name, options, message) => {
    start();
    // Plain JavaScript can give anything.
    const make = () => retryBudget(name as string, options as typeof BUCKET);
    expect(make).toThrow(new RangeError(`retryBudget: ${message}`));
  });

  test('keys that are left out, and those of every model, are no foreign ones', () => {
    start();
    const floor = undefined;
    const common = { dependencies: ['stock'], onEmpty: 'degrade', policyVersion: 'v1' } as const;
    expect(retryBudget('stock', { ...BUCKET, ...common, ...{ floor } }).onEmpty).toBe('degrade');
  });

  test.each([
    [{ ...BUCKET, ratio: 1.5 }, 'ratio must be in 0..1, got 1.5'],
    [{ ...BUCKET, ratio: Number.NaN }, 'ratio must be in 0..1, got NaN'],
    [{ ...BUCKET, reservePerSecond: -1 }, 'reservePerSecond must be in 0..1000000, got -1'],
    [{ ...BUCKET, ttlMs: 0 }, 'ttlMs must be in 1000..60000, got 0'],
    [{ ...BUCKET, capacity: 5 }, 'capacity is not used by the model token_bucket'],
    [{ ...BUCKET, ratoi: 0.1 }, 'ratoi is not used by the model token_bucket'],
    [
      { model: 'grpc_throttling', maxTokens: 10, tokenRatio: 0.1, floor: null } as unknown as typeof BUCKET,
      'floor must be declared where successes feed the budget, got null',
    ],
    [{ ...BUCKET, model: 'leaky' as 'token_bucket' }, 'model must be one of token_bucket, grpc_throttling'],
  ])('an impossible budget is refused with its bound: %o', (options, message) => {
    start();
    expect(() => retryBudget('stock', options)).toThrow(`retryBudget: stock: ${message}`);
    expect(() => retryBudget('stock')).toThrow('there is no budget stock');
  });
});

describe('the file', () => {
  const problems = (...lines: string[]): readonly string[] => {
    const text = ['version: 1', 'retry_budgets:', ...lines.map((line) => `  ${line}`)].join('\n');
    const result = loadConfig({ TIME_BUDGET_CONFIG: 'budget.yaml' }, () => text);
    return result.ok ? [] : result.problems;
  };

  test('a budget for one dependency, and one for several', () => {
    const text = `version: 1
retry_budgets:
  stock: { model: token_bucket, ratio: 0.2, reserve_per_second: 10, ttl_ms: 10000 }
  inner:
    dependencies: [price, tax, price]
    model: grpc_throttling
    max_tokens: 10
    token_ratio: 0.1
    floor: { attempts: 3, every_ms: 10000 }
    on_empty: degrade
    policy_version: r2
`;
    const result = loadConfig({ TIME_BUDGET_CONFIG: 'budget.yaml' }, () => text);
    expect(result.ok && result.config.retryBudgets).toEqual({
      stock: {
        name: 'stock',
        dependencies: ['stock'],
        options: { model: 'token_bucket', ratio: 0.2, reservePerSecond: 10, ttlMs: 10_000 },
      },
      inner: {
        name: 'inner',
        dependencies: ['price', 'tax'],
        options: {
          model: 'grpc_throttling',
          maxTokens: 10,
          tokenRatio: 0.1,
          floor: { attempts: 3, everyMs: 10_000 },
          onEmpty: 'degrade',
          policyVersion: 'r2',
        },
      },
    });
  });

  test.each([
    [
      'stock: { model: token_bucket, ratio: 1.01, reserve_per_second: 1, ttl_ms: 1000 }',
      'budget.yaml: retry_budgets.stock.ratio: 1.01 is not allowed; use a number from 0 to 1',
    ],
    [
      'stock: { model: token_bucket, ratio: 1, reserve_per_second: -0.1, ttl_ms: 1000 }',
      'budget.yaml: retry_budgets.stock.reserve_per_second: -0.1 is not allowed; use a number from 0 to 1000000',
    ],
    [
      'stock: { model: token_bucket, ratio: 1, reserve_per_second: 1, ttl_ms: 0 }',
      'budget.yaml: retry_budgets.stock.ttl_ms: 0 is not allowed; use a number from 1000 to 60000',
    ],
    [
      'stock: { model: token_bucket, ratio: .nan, reserve_per_second: 1, ttl_ms: 1000 }',
      'budget.yaml: retry_budgets.stock.ratio: NaN is not allowed; use a number from 0 to 1',
    ],
    [
      'stock: { model: in_flight_percent, percent: 20 }',
      'budget.yaml: retry_budgets.stock.model: in_flight_percent needs minimum',
    ],
    [
      'stock: { model: in_flight_percent, percent: 20, minimum: 3, ratio: 0.2 }',
      'budget.yaml: retry_budgets.stock.ratio: not used by the model in_flight_percent',
    ],
    [
      'stock: { model: fixed_quota, capacity: 5, attempt_cost: 10, success_amount: 1, floor: { attempts: 1, every_ms: 1000 } }',
      'budget.yaml: retry_budgets.stock.capacity: must be in 10..1000000, got 5',
    ],
    [
      'stock: { model: token_bucket, ratio: 0.2, reserve_per_second: 0, ttl_ms: 10000, feed: success }',
      'budget.yaml: retry_budgets.stock.reserve_per_second: must be >= 0.1 where successes feed the budget, got 0: ' +
        'it is the floor without a success, and has to pay for one attempt in every ttlMs',
    ],
  ])('%s', (line, problem) => {
    expect(problems(line)).toEqual([problem]);
  });

  test('a dependency has one budget, and a budget is a name that metrics must have room for', () => {
    const quick = '{ model: in_flight_percent, percent: 20, minimum: 3, dependencies: [stock] }';
    expect(problems(`a: ${quick}`, `b: ${quick}`)).toEqual([
      'budget.yaml: retry_budgets.b.dependencies: stock has the budget a already',
    ]);
    const retryBudgets = { stock: BUCKET, price: BUCKET };
    expect(() => defaultConfig({ retryBudgets, labels: { dependencies: 1 } })).toThrow('at least 2');
    expect(defaultConfig({ retryBudgets, labels: { dependencies: 2 } }).retryBudgets).toHaveProperty('price');
  });
});
