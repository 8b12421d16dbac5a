/** Alerts on load, queues, modes, breakers, broken contracts and the telemetry itself: at, under and over their limits. */
import { describe, test, vi } from 'vitest';
import {
  counter,
  expectAlerts,
  gauge,
  HOUR,
  HOURS_EVERY_S,
  hasPromtool,
  histogram,
  JOB,
  type SeriesSet,
  slope,
} from '../support/promtool.ts';

// Hours of rules take seconds of processor, and others may want it too.
vi.setConfig({ testTimeout: 180_000 });

describe.skipIf(!hasPromtool)('A-05: LoadSheddingAtOrdinaryLoad', () => {
  const SHED = 'LoadSheddingAtOrdinaryLoad job=shop';
  const load = (offered: string, shed: string): SeriesSet => ({
    [`time_budget_offered_total{${JOB},operation="pay"}`]: offered,
    [`time_budget_shed_total{${JOB},operation="pay",reason="concurrency"}`]: shed,
  });

  test('fires at ordinary load, is silent in a surge and at 1 %', () => {
    const shed = counter([3 * HOUR, 0], [HOUR, 2]);
    expectAlerts(
      load(counter([4 * HOUR, 10]), shed),
      { [3 * HOUR + 29]: [], [4 * HOUR - 20]: [SHED] },
      HOURS_EVERY_S,
    );
    expectAlerts(load(counter([3 * HOUR, 10], [HOUR, 30]), shed), { [4 * HOUR - 1]: [] }, HOURS_EVERY_S);
    expectAlerts(
      load(counter([3 * HOUR, 10], [HOUR, 10.8]), shed),
      { [4 * HOUR - 1]: [SHED] },
      HOURS_EVERY_S,
    );
    expectAlerts(
      load(counter([4 * HOUR, 10]), counter([4 * HOUR, 0.099])),
      { [4 * HOUR - 1]: [] },
      HOURS_EVERY_S,
    );
  });
});

describe.skipIf(!hasPromtool)('A-09, A-17: queues', () => {
  const QUEUE = 'job="shop",instance="a",queue="front"';

  test('the oldest at 80 % of its useful life is silent, over it fires; a queue without one is silent', () => {
    const aged = (oldest: number, life: number): SeriesSet => ({
      [`time_budget_queue_oldest_seconds{${QUEUE},priority="normal"}`]: gauge([20, oldest]),
      [`time_budget_queue_useful_life_seconds{${QUEUE}}`]: gauge([20, life]),
    });
    expectAlerts(aged(8, 10), { 19: [] });
    expectAlerts(aged(8.1, 10), { 1: [], 3: ['QueueAgeNearUsefulLife job=shop queue=front'] });
    expectAlerts(aged(8, 0), { 19: [] });
  });

  const queue = (depth: string, entered: number, left: number): SeriesSet => ({
    [`time_budget_queue_depth{${QUEUE}}`]: depth,
    [`time_budget_queue_entered_total{${QUEUE}}`]: counter([30, entered]),
    [`time_budget_queue_left_total{${QUEUE},result="started"}`]: counter([30, left]),
  });

  test('a backlog that grows fires; one that stands still or shrinks does not', () => {
    expectAlerts(queue(slope(30, 10, 60), 11, 10), {
      4: [],
      12: ['BacklogWillNotDrain job=shop queue=front'],
    });
    expectAlerts(queue(gauge([30, 500]), 10, 10), { 29: [] });
    expectAlerts(queue(slope(30, 5000, -60), 10, 11), { 29: [] });
    expectAlerts(queue(gauge([30, 0]), 10, 10), { 29: [] });
  });

  test('A-17: the fluid model says it before the depth does, and says nothing of an empty queue', () => {
    const model = (drains: number, depth: number) => ({
      ...queue(gauge([30, depth]), 10, 10),
      [`time_budget_model_drains{${QUEUE}}`]: gauge([30, drains]),
    });
    expectAlerts(model(0, 5), { 4: [], 6: ['BacklogWillNotDrain job=shop queue=front'] });
    expectAlerts(model(1, 5), { 29: [] });
    expectAlerts(model(0, 0), { 29: [] });
  });

  test('A-16: permits: 90 % held is silent, more fires', () => {
    const held = (used: number): SeriesSet => ({
      [`time_budget_concurrency_used{${JOB},dependency="stock"}`]: gauge([20, used]),
      [`time_budget_concurrency_limit{${JOB},dependency="stock"}`]: gauge([20, 100]),
    });
    expectAlerts(held(90), { 19: [] });
    expectAlerts(held(91), { 9: [], 11: ['ConcurrencyNearLimit job=shop dependency=stock'] });
  });
});

describe.skipIf(!hasPromtool)('A-10: degraded modes', () => {
  const mode = (values: string): SeriesSet => ({
    [`time_budget_degraded_active{${JOB},mode="no_prices",trigger="stock"}`]: values,
  });
  const TOO_LONG = 'DegradedModeTooLong job=shop mode=no_prices';

  test('on for an hour fires, 50 minutes and two halves do not', () => {
    expectAlerts(
      mode(gauge([10, 0], [90, 1], [10, 0])),
      { 69: [], 72: [TOO_LONG], 99: [TOO_LONG], 101: [] },
      HOURS_EVERY_S,
    );
    expectAlerts(mode(gauge([10, 0], [50, 1], [20, 0])), { 59: [], 79: [] }, HOURS_EVERY_S);
    expectAlerts(mode(gauge([45, 1], [5, 0], [45, 1])), { 44: [], 94: [] }, HOURS_EVERY_S);
  });

  test('L-27: one degraded answer where none is allowed pages at once, and only that alert', () => {
    const series = {
      [`time_budget_violations_total{${JOB},kind="degraded_non_degradable"}`]: '0x19 1x100',
    };
    expectAlerts(series, {
      9: [],
      11: ['DegradedNotAllowed job=shop'],
      25: ['DegradedNotAllowed job=shop'],
      35: [],
    });
  });
});

describe.skipIf(!hasPromtool)('A-15: breakers', () => {
  const CLOSED = `${JOB},dependency="stock"`;
  /** Sixty attempts in the minute of a close, each this long after it. */
  const closing = (seconds: number, perSecond: number): SeriesSet => {
    const phases = [
      [10, 0, seconds],
      [1, perSecond, seconds],
      [30, 0, seconds],
    ] as const;
    const buckets = histogram('time_budget_breaker_after_close_seconds', CLOSED, phases);
    const count = counter([10, 0], [1, perSecond], [30, 0]);
    return { ...buckets, [`time_budget_breaker_after_close_seconds_count{${CLOSED}}`]: count };
  };
  const WAVE = 'BreakerClosesIntoWave job=shop dependency=stock';

  test('half of the attempts within a second are a wave, spread ones and few ones are not', () => {
    expectAlerts(closing(0.2, 1), { 9: [], 13: [WAVE], 25: [WAVE], 39: [] });
    expectAlerts(closing(5, 1), { 13: [] });
    expectAlerts(closing(0.2, 0.2), { 13: [] });
  });

  test('probes of all instances are added up', () => {
    const probes = (perSecond: number): SeriesSet => ({
      'time_budget_breaker_probes_total{job="shop",instance="a",dependency="stock"}': counter([
        20,
        perSecond,
      ]),
      'time_budget_breaker_probes_total{job="shop",instance="b",dependency="stock"}': counter([
        20,
        perSecond,
      ]),
    });
    expectAlerts(probes(0.49), { 19: [] });
    expectAlerts(probes(0.51), { 19: ['BreakerProbesTooMany job=shop dependency=stock'] });
  });
});

describe.skipIf(!hasPromtool)('A-12, A-14: recovery', () => {
  test('an outcome unknown for a quarter of an hour', () => {
    const oldest = (seconds: number): SeriesSet => ({
      [`time_budget_unknown_oldest_seconds{${JOB},operation="pay"}`]: gauge([20, seconds], [10, 0]),
    });
    expectAlerts(oldest(900), { 19: [] });
    expectAlerts(oldest(901), { 4: [], 6: ['UnknownOutcomesOpen job=shop operation=pay'], 21: [] });
  });

  test('a replay that a signal has stopped for ten minutes', () => {
    const stopped = {
      [`time_budget_replay_stopped{${JOB},queue="late",stop="latency"}`]: gauge(
        [5, 1],
        [5, 0],
        [15, 1],
        [5, 0],
      ),
      [`time_budget_replay_stopped{${JOB},queue="late",stop="throttled"}`]: gauge([30, 0]),
    };
    expectAlerts(stopped, { 9: [], 19: [], 21: ['ReplayStopped job=shop queue=late'], 26: [] });
  });
});

describe.skipIf(!hasPromtool)('A-11: BudgetContractViolation', () => {
  const violations = (values: string): SeriesSet => ({
    [`time_budget_violations_total{${JOB},kind="reset"}`]: values,
  });

  test('the first ever is told where the series was there at 0, and the alert ends', () => {
    const series = violations('0x39 1x200');
    expectAlerts(series, { 19: [], 24: [], 26: ['BudgetContractViolation job=shop kind=reset'], 82: [] });
  });

  test('one that comes with its series is missed: why the closed lists are made at 0', () => {
    expectAlerts(violations('_x40 1x200'), { 26: [], 60: [] });
  });
});

describe.skipIf(!hasPromtool)('the telemetry itself', () => {
  const present = (job: string, values: string): SeriesSet => ({
    [`time_budget_policy_info{job="${job}",instance="a",policy_version="1"}`]: values,
  });

  test('only the job that vanished is told, and for an hour', () => {
    const series = {
      ...present('shop', gauge([3 * HOUR, 1])),
      ...present('mail', gauge([70, 1], [110, undefined])),
    };
    const MISSING = 'TimeBudgetTelemetryMissing job=mail';
    expectAlerts(series, { 69: [], 78: [], 90: [MISSING], 130: [MISSING], 140: [] }, HOURS_EVERY_S);
  });

  test('a process that was started anew and that nobody has asked yet is not missing', () => {
    const series = {
      ...present('shop', gauge([3 * HOUR, 1])),
      [`time_budget_offered_total{${JOB},operation="pay"}`]: counter([70, 1], [110, undefined]),
    };
    expectAlerts(series, { 69: [], 90: [], 130: [] }, HOURS_EVERY_S);
  });

  test('folded labels, the limit of the SDK, and faults of the package', () => {
    const jump = '0x39 3x200';
    const folded = { [`time_budget_label_overflow_total{${JOB},label="operation"}`]: jump };
    expectAlerts(folded, { 34: [], 37: ['TimeBudgetLabelOverflow job=shop label=operation'], 82: [] });
    const limit = { [`time_budget_offered_total{${JOB},otel_metric_overflow="true"}`]: counter([40, 1]) };
    expectAlerts(limit, { 14: [], 17: ['TimeBudgetLabelOverflow job=shop'] });
    const fault = { [`time_budget_internal_errors_total{${JOB}}`]: jump };
    expectAlerts(fault, { 34: [], 37: ['TimeBudgetInternalErrors job=shop'], 82: [] });
  });

  test('an empty database is silent', () => {
    expectAlerts({}, { 0: [], 30: [] });
  });
});
