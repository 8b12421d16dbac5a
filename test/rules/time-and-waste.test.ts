/** Alerts on where the time goes and on work for nobody: at, under and over their limits (dashboards 5.4). */
import { describe, test, vi } from 'vitest';
import {
  counter,
  expectAlerts,
  HOUR,
  HOURS_EVERY_S,
  hasPromtool,
  histogram,
  JOB,
  type SeriesSet,
} from '../support/promtool.ts';

// Hours of rules take seconds of processor, and others may want it too.
vi.setConfig({ testTimeout: 180_000 });

describe.skipIf(!hasPromtool)('A-04: WastedExecution', () => {
  const WASTED = 'WastedExecution job=shop dependency=stock';
  const busy = (all: string, late: string): SeriesSet => ({
    [`time_budget_execution_seconds_total{${JOB},dependency="stock"}`]: all,
    [`time_budget_execution_late_seconds_total{${JOB},dependency="stock"}`]: late,
  });

  test('a tenth after the deadline is silent, more fires, and ends with it', () => {
    expectAlerts(busy(counter([30, 2]), counter([30, 0.199])), { 29: [] });
    expectAlerts(busy(counter([60, 2]), counter([30, 0.21], [30, 0])), {
      9: [],
      12: [WASTED],
      29: [WASTED],
      34: [],
    });
  });

  test('100 % of a tiny service is silent', () => {
    expectAlerts(busy(counter([30, 0.49]), counter([30, 0.49])), { 29: [] });
    expectAlerts(busy(counter([30, 0.51]), counter([30, 0.51])), { 29: [WASTED] });
  });

  test('N3: a dependency that is not called is no NaN', () => {
    expectAlerts(busy(counter([30, 0]), counter([30, 0])), { 29: [] });
  });
});

describe.skipIf(!hasPromtool)('PostCancelWork', () => {
  const seconds = (intended: string, perSecond: number): SeriesSet => ({
    [`time_budget_post_cancel_seconds_total{${JOB},dependency="stock",kind="http",intended="${intended}"}`]:
      counter([30, perSecond]),
  });

  test('one piece on average is silent, more fires; what is intended never does', () => {
    expectAlerts(seconds('no', 0.99), { 29: [] });
    expectAlerts(seconds('no', 1.01), { 14: [], 22: ['PostCancelWork job=shop dependency=stock kind=http'] });
    expectAlerts(seconds('yes', 50), { 29: [] });
  });
});

describe.skipIf(!hasPromtool)('A-06: LocalSpendDominates', () => {
  const LOCAL = 'LocalSpendDominates job=shop operation=pay';
  const bounds = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];
  const spend = (share: number, perSecond: number): SeriesSet => ({
    ...histogram('time_budget_local_spend_ratio', `${JOB},operation="pay"`, [[60, perSecond, share]], bounds),
    [`time_budget_offered_total{${JOB},operation="pay"}`]: counter([60, perSecond]),
  });

  test('a median in the bucket up to a half is silent, in the next it fires, and in few requests not', () => {
    expectAlerts(spend(0.5, 5), { 59: [] });
    expectAlerts(spend(0.55, 5), { 29: [], 34: [LOCAL] });
    expectAlerts(spend(0.55, 0.1), { 59: [] });
  });
});

const SLOW = 'DependencySlow job=shop dependency=stock';
const UNREALISTIC = 'CallerBudgetUnrealistic job=shop caller=web';

/** Ten calls per second, by what they take, over minutes. */
function calls(...phases: readonly (readonly [minutes: number, seconds: number])[]): SeriesSet {
  const minutes = phases.reduce((sum, [length]) => sum + length, 0);
  return {
    ...histogram(
      'time_budget_call_duration_seconds',
      `${JOB},dependency="stock"`,
      phases.map(([length, seconds]) => [length, 10, seconds]),
    ),
    [`time_budget_calls_total{${JOB},caller="web",dependency="stock",binding_term="own_timeout"}`]: counter([
      minutes,
      10,
    ]),
  };
}

/** Ten requests per second, of which so many come with too little time. */
function callers(...phases: readonly (readonly [minutes: number, insufficient: number])[]): SeriesSet {
  const minutes = phases.reduce((sum, [length]) => sum + length, 0);
  const labels = `${JOB},caller="web",operation="pay"`;
  return {
    [`time_budget_offered_total{${labels}}`]: counter([minutes, 10]),
    [`time_budget_insufficient_total{${labels}}`]: counter(...phases),
  };
}

describe.skipIf(!hasPromtool)('T-31: the verdict pair', () => {
  test('A-08: a slow dependency alone, and its end', () => {
    const series = { ...calls([3 * HOUR, 0.2], [40, 0.4], [20, 0.2]), ...callers([4 * HOUR, 0]) };
    expectAlerts(series, {
      [3 * HOUR - 1]: [],
      [3 * HOUR + 9]: [],
      [3 * HOUR + 16]: [SLOW],
      [3 * HOUR + 39]: [SLOW],
      [3 * HOUR + 50]: [],
    });
  });

  test('A-07: an unrealistic caller alone, and its end', () => {
    const series = { ...calls([4 * HOUR, 0.2]), ...callers([2 * HOUR, 0], [HOUR, 4], [HOUR, 0]) };
    expectAlerts(
      series,
      {
        [2 * HOUR - 1]: [],
        [2 * HOUR + 14]: [],
        [2 * HOUR + 20]: [UNREALISTIC],
        [3 * HOUR - 1]: [UNREALISTIC],
        [3 * HOUR + 5]: [],
      },
      HOURS_EVERY_S,
    );
  });

  test('both at once: the dependency is told, and the caller once it is fast again', () => {
    const series = {
      ...calls([3 * HOUR, 0.2], [40, 0.4], [50, 0.2]),
      ...callers([3 * HOUR, 0], [90, 4]),
    };
    expectAlerts(series, { [3 * HOUR + 39]: [SLOW], [3 * HOUR + 75]: [UNREALISTIC] }, HOURS_EVERY_S);
  });

  test('a fifth of the requests is silent, more fires; few requests are silent', () => {
    const series = (insufficient: number) => ({
      ...calls([2 * HOUR, 0.2]),
      ...callers([2 * HOUR, insufficient]),
    });
    expectAlerts(series(1.99), { [2 * HOUR - 1]: [] }, HOURS_EVERY_S);
    expectAlerts(series(2.01), { [2 * HOUR - 1]: [UNREALISTIC] }, HOURS_EVERY_S);
    const labels = `${JOB},caller="web",operation="pay"`;
    const few = {
      [`time_budget_offered_total{${labels}}`]: counter([HOUR, 0.1]),
      [`time_budget_insufficient_total{${labels}}`]: counter([HOUR, 0.1]),
    };
    expectAlerts(few, { [HOUR - 1]: [] });
  });

  test('a fast dependency that gets slower within 50 ms is silent, and so is one without a day of its own', () => {
    expectAlerts(calls([3 * HOUR, 0.004], [40, 0.04]), { [3 * HOUR + 39]: [] }, HOURS_EVERY_S);
    expectAlerts(calls([40, 0.4]), { 39: [] });
  });

  test('nights without a call do not hide what is usual', () => {
    const night = histogram('time_budget_call_duration_seconds', `${JOB},dependency="stock"`, [
      [2 * HOUR, 10, 0.2],
      [8 * HOUR, 0, 0.2],
      [2 * HOUR, 10, 0.2],
      [40, 10, 0.4],
    ]);
    const series = {
      ...night,
      [`time_budget_calls_total{${JOB},caller="web",dependency="stock",binding_term="own_timeout"}`]: counter(
        [13 * HOUR, 10],
      ),
    };
    expectAlerts(series, { [12 * HOUR - 1]: [], [12 * HOUR + 30]: [SLOW] }, HOURS_EVERY_S);
  });
});

describe.skipIf(!hasPromtool)('A-16, A-18: pools, and calls without a limit', () => {
  test('a pool in which one in twenty waits longer than 100 ms', () => {
    const labels = `${JOB},db_client_connection_pool_name="orders"`;
    const name = 'db_client_connection_wait_time_seconds';
    const wait = (seconds: number, perSecond = 5) => ({
      ...histogram(name, labels, [[20, perSecond, seconds]]),
      [`${name}_count{${labels}}`]: counter([20, perSecond]),
    });
    expectAlerts(wait(0.09), { 19: [] });
    expectAlerts(wait(0.2), { 4: [], 19: ['ConnectionPoolSaturated job=shop'] });
    // One that opens a connection for each of a few requests is no full pool.
    expectAlerts(wait(0.2, 0.09), { 19: [] });
  });

  test('calls that nothing limits: 5 % are silent, more are a ticket after an hour', () => {
    const series = (none: number) => ({
      [`time_budget_calls_total{${JOB},caller="web",dependency="stock",binding_term="none"}`]: counter([
        90,
        none,
      ]),
      [`time_budget_calls_total{${JOB},caller="web",dependency="stock",binding_term="own_timeout"}`]: counter(
        [90, 10 - none],
      ),
    });
    expectAlerts(series(0.49), { 89: [] });
    expectAlerts(series(0.51), { 59: [], 64: ['CallsWithoutDeadline job=shop dependency=stock'] });
  });
});
