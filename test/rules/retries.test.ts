/** Alerts on retry budgets and on what repeats do: at, under and over their limits (dashboards 5.4). */
import { describe, test, vi } from 'vitest';
import {
  counter,
  expectAlerts,
  gauge,
  HOURS_EVERY_S,
  hasPromtool,
  type Moments,
  type Phase,
  type SeriesSet,
} from '../support/promtool.ts';

// Hours of rules take seconds of processor, and others may want it too.
vi.setConfig({ testTimeout: 180_000 });

const BUDGET = 'job="shop",instance="a",dependency="stock"';

/** Repeats that asked the budget. */
function asked(granted: string, refused: string): SeriesSet {
  return {
    [`retry_budget_withdrawals_total{${BUDGET},result="granted"}`]: granted,
    [`retry_budget_withdrawals_total{${BUDGET},result="refused"}`]: refused,
  };
}

function attempts(originals: string, repeats: string): SeriesSet {
  const labels = 'job="shop",instance="a",operation="pay",dependency="stock"';
  return {
    [`time_budget_attempts_total{${labels},kind="original",owner="none"}`]: originals,
    [`time_budget_attempts_total{${labels},kind="reexecute",owner="service"}`]: repeats,
  };
}

function useful(values: string): SeriesSet {
  return { 'time_budget_outcomes_total{job="shop",instance="a",operation="pay",outcome="useful"}': values };
}

function expectOverHours(series: SeriesSet, moments: Moments): void {
  expectAlerts(series, moments, HOURS_EVERY_S);
}

const EXHAUSTED = 'RetryBudgetExhausted job=shop dependency=stock';

describe.skipIf(!hasPromtool)('A-01: RetryBudgetExhausted', () => {
  test('I9: at 0 % success, with nothing but refusals, it fires, and ends after the fault', () => {
    const series = asked(counter([60, 0]), counter([10, 0], [20, 2], [30, 0]));
    expectAlerts(series, { 9: [], 13: [], 16: [EXHAUSTED], 29: [EXHAUSTED], 42: [] });
  });

  test('exactly half refused is silent, a little more fires', () => {
    expectAlerts(asked(counter([30, 1]), counter([30, 1])), { 29: [] });
    expectAlerts(asked(counter([30, 1]), counter([30, 1.02])), { 29: [EXHAUSTED] });
  });

  test('0.1 refusals per second are too few, 0.11 are not', () => {
    expectAlerts(asked(counter([30, 0]), counter([30, 0.1])), { 29: [] });
    expectAlerts(asked(counter([30, 0]), counter([30, 0.11])), { 29: [EXHAUSTED] });
  });

  test('one minute of refusals is silent, at any moment after it', () => {
    const series = asked(counter([40, 0]), counter([10, 0], [1, 10], [29, 0]));
    const after = Object.fromEntries(Array.from({ length: 12 }, (_, i) => [10 + i, []]));
    expectAlerts(series, after);
  });

  test('N5: empty for 40 s in every 2 min over 20 min is one alert, which then ends', () => {
    // 30 s are as near as samples every 30 s come: one of four has refusals.
    const phases: Phase[] = [[10, 0]];
    for (let i = 0; i < 10; i++) phases.push([0.5, 4], [1.5, 0]);
    const series = asked(counter([60, 0]), counter(...phases, [30, 0]));
    const during = Object.fromEntries(Array.from({ length: 14 }, (_, i) => [16 + i, [EXHAUSTED]]));
    expectAlerts(series, { ...during, 14: [], 42: [], 50: [] });
  });

  test('the first refusal ever is seen where the series was there at 0', () => {
    const born = asked(counter([60, 0]), counter([20, 0], [20, 1], [20, 0]));
    expectAlerts(born, { 19: [], 27: [EXHAUSTED] });
  });

  test('a burst that comes with its series is not seen: why every series is made at 0', () => {
    const burst = '_x20 600x20';
    expectAlerts(asked(counter([20, 0]), burst), { 12: [], 16: [], 19: [] });
    const jump = '0x19 600x20';
    expectAlerts({ ...asked(counter([20, 0]), jump) }, { 12: [] });
  });

  test('where nothing is asked nothing is told, and no NaN either', () => {
    expectAlerts(asked(counter([60, 0]), counter([60, 0])), { 10: [], 59: [] });
    expectAlerts({}, { 10: [] });
  });
});

describe.skipIf(!hasPromtool)('RetryBudgetDraining', () => {
  const DRAINING = 'RetryBudgetDraining job=shop dependency=stock';
  const balance = (left: number, granted: number): SeriesSet => ({
    [`retry_budget_balance{${BUDGET}}`]: gauge([20, left]),
    [`retry_budget_capacity{${BUDGET}}`]: gauge([20, 100]),
    ...asked(counter([20, granted]), counter([20, 0])),
  });

  test('a quarter is silent, less fires, and without repeats it is silent', () => {
    expectAlerts(balance(25, 1), { 19: [] });
    expectAlerts(balance(24, 1), { 4: [], 19: [DRAINING] });
    expectAlerts(balance(24, 0.1), { 19: [] });
  });

  test('the lowest instance counts, and a budget without capacity is no NaN', () => {
    const other = BUDGET.replace('"a"', '"b"');
    const full = {
      [`retry_budget_balance{${other}}`]: gauge([20, 90]),
      [`retry_budget_capacity{${other}}`]: gauge([20, 100]),
    };
    expectAlerts({ ...balance(10, 1), ...full }, { 19: [DRAINING] });
    const none = { ...balance(0, 1), [`retry_budget_capacity{${BUDGET}}`]: gauge([20, 0]) };
    expectAlerts(none, { 19: [] });
  });
});

describe.skipIf(!hasPromtool)('R-24: RetryBudgetLowSuccess', () => {
  const LOW = 'RetryBudgetLowSuccess job=shop dependency=stock';
  const state = (low: string, granted: string): SeriesSet => ({
    [`retry_budget_low_success{${BUDGET}}`]: low,
    ...asked(granted, counter([60, 0])),
  });

  test('fires while only the floor pays and repeats ask, and ends with it', () => {
    const series = state(gauge([10, 0], [30, 1], [20, 0]), counter([60, 0.2]));
    expectAlerts(series, { 9: [], 19: [], 21: [LOW], 39: [LOW], 41: [] });
  });

  test('silent without repeats, and with as many as are too few', () => {
    expectAlerts(state(gauge([60, 1]), counter([60, 0])), { 59: [] });
    expectAlerts(state(gauge([60, 1]), counter([60, 0.1])), { 59: [] });
  });

  test('an idle instance without success does not speak for a busy one', () => {
    const other = BUDGET.replace('"a"', '"b"');
    const idle = {
      [`retry_budget_low_success{${other}}`]: gauge([60, 1]),
      [`retry_budget_withdrawals_total{${other},result="granted"}`]: counter([60, 0]),
    };
    expectAlerts({ ...state(gauge([60, 0]), counter([60, 2])), ...idle }, { 59: [] });
  });
});

describe.skipIf(!hasPromtool)('A-02: RetryBudgetWithoutEffect', () => {
  const WITHOUT_EFFECT = 'RetryBudgetWithoutEffect job=shop dependency=stock';
  // Refused and granted alike, so that the budget is not told as exhausted.
  const refusing = asked(counter([30, 1], [60, 3]), counter([30, 0], [60, 3]));

  test('fires where refusals leave the arrivals as they were', () => {
    const series = { ...refusing, ...attempts(counter([90, 10]), counter([90, 5])) };
    expectAlerts(series, { 29: [], 44: [], 50: [WITHOUT_EFFECT], 89: [WITHOUT_EFFECT] });
  });

  test('silent where the budget has an effect', () => {
    const series = { ...refusing, ...attempts(counter([90, 10]), counter([30, 5], [60, 1])) };
    expectAlerts(series, { 44: [], 60: [], 89: [] });
  });

  test('1.2 attempts per original are silent, more fire', () => {
    expectAlerts({ ...refusing, ...attempts(counter([90, 10]), counter([90, 1.9])) }, { 89: [] });
    expectAlerts(
      { ...refusing, ...attempts(counter([90, 10]), counter([90, 2.1])) },
      { 89: [WITHOUT_EFFECT] },
    );
  });
});

describe.skipIf(!hasPromtool)('A-03: RetryAmplification', () => {
  const AMPLIFIED = 'RetryAmplification job=shop dependency=stock';
  const storm = attempts(counter([150, 10]), counter([90, 1], [60, 20]));

  test('more attempts alone are silent', () => {
    expectOverHours({ ...storm, ...useful(counter([150, 10])) }, { 110: [], 149: [] });
  });

  test('with useful work a fifth below that of an hour ago it fires; just at it not', () => {
    expectOverHours({ ...storm, ...useful(counter([90, 10], [60, 8.1])) }, { 120: [], 149: [] });
    expectOverHours({ ...storm, ...useful(counter([90, 10], [60, 7.9])) }, { 95: [], 110: [AMPLIFIED] });
    expectOverHours({ ...storm, ...useful(counter([90, 10], [60, 0])) }, { 110: [AMPLIFIED] });
  });

  test('a few requests in an hour are no base for a page', () => {
    const few = (perSecond: number) => ({
      ...attempts(counter([150, perSecond]), counter([150, perSecond])),
      ...useful(counter([90, perSecond], [60, 0])),
    });
    expectOverHours(few(0.049), { 110: [], 149: [] });
    expectOverHours(few(0.051), { 110: [AMPLIFIED] });
  });

  test('falling useful work alone is silent, and 1.5 attempts are', () => {
    const calm = attempts(counter([150, 10]), counter([150, 1]));
    expectOverHours({ ...calm, ...useful(counter([90, 10], [60, 1])) }, { 110: [], 149: [] });
    const half = attempts(counter([150, 10]), counter([150, 4.9]));
    expectOverHours({ ...half, ...useful(counter([90, 10], [60, 1])) }, { 110: [] });
    const more = attempts(counter([150, 10]), counter([150, 5.1]));
    expectOverHours({ ...more, ...useful(counter([90, 10], [60, 1])) }, { 110: [AMPLIFIED] });
  });
});
