/** The alert on requests that do not end usefully: at, under and over its limits (dashboards 5.4). */
import { describe, expect, test, vi } from 'vitest';
import {
  counter,
  hasPromtool,
  type Moments,
  type Phase,
  restarted,
  type SeriesSet,
  wrongAlerts,
  wrongSamples,
} from '../support/promtool.ts';

// Hours of rules take seconds of processor, and others may want it too.
vi.setConfig({ testTimeout: 180_000 });

/** Requests of one operation by their outcome. */
function requests(useful: string, expired: string, operation = 'pay') {
  const labels = (outcome: string) =>
    `time_budget_outcomes_total{job="shop",instance="a",operation="${operation}",outcome="${outcome}"}`;
  return { [labels('useful')]: useful, [labels('expired')]: expired };
}

/** Ten per second, of which these shares are expired. */
function tenPerSecond(...phases: readonly Phase[]) {
  const part = (of: (share: number) => number) =>
    counter(...phases.map(([minutes, share]): Phase => [minutes, share === undefined ? share : of(share)]));
  return requests(
    part((share) => 10 * (1 - share)),
    part((share) => 10 * share),
  );
}

const FAST = 'TimeBudgetBurn job=shop operation=pay window=1h';
const MEDIUM = 'TimeBudgetBurn job=shop operation=pay window=6h';
const SLOW = 'TimeBudgetBurn job=shop operation=pay window=1d';
const SLOWEST = 'TimeBudgetBurn job=shop operation=pay window=3d';
const HOUR = 60;
const DAY = 24 * HOUR;
/** Runs every minute, or every five, in place of every half: hours and days of them take long. */
const HOURS = 60;
const DAYS = 300;

describe.skipIf(!hasPromtool)('TimeBudgetBurn', () => {
  const hours = (series: SeriesSet, moments: Moments) =>
    expect(wrongAlerts(series, moments, HOURS)).toBe(undefined);
  const days = (series: SeriesSet, moments: Moments) =>
    expect(wrongAlerts(series, moments, DAYS)).toBe(undefined);

  test('healthy: half of what may fail, over three days', () => {
    days(tenPerSecond([3 * DAY, 0.005]), { [HOUR]: [], [DAY]: [], [3 * DAY - 5]: [] });
  });

  test('a total failure pages within 14 minutes and ends within 8 after it', () => {
    const series = tenPerSecond([7 * HOUR, 0], [30, 1], [HOUR, 0]);
    hours(series, {
      [7 * HOUR + 9]: [],
      [7 * HOUR + 14]: [FAST],
      [7 * HOUR + 29]: [FAST],
      [7 * HOUR + 38]: [],
    });
  });

  test('30 % of failures page within 35 minutes', () => {
    const series = tenPerSecond([7 * HOUR, 0], [HOUR, 0.3], [15, 0]);
    hours(series, { [7 * HOUR + 27]: [], [7 * HOUR + 35]: [FAST], [8 * HOUR + 8]: [] });
  });

  test('14 % for an hour is under 14.4 times 1 %, 15 % is over it', () => {
    hours(tenPerSecond([7 * HOUR, 0], [75, 0.14]), { [8 * HOUR + 14]: [] });
    hours(tenPerSecond([7 * HOUR, 0], [75, 0.15]), { [8 * HOUR + 14]: [FAST] });
  });

  test('6 times pages over six hours: 5 % is silent, 7 % fires', () => {
    days(tenPerSecond([DAY, 0], [8 * HOUR, 0.05]), { [DAY + 7 * HOUR]: [] });
    days(tenPerSecond([DAY, 0], [8 * HOUR, 0.07]), { [DAY + 7 * HOUR]: [MEDIUM] });
  });

  test('3 times is a ticket after a day, once is one after three: 0.9 % is silent', () => {
    days(tenPerSecond([3 * DAY, 0], [DAY + 4 * HOUR, 0.035]), { [4 * DAY + 2 * HOUR]: [SLOW, SLOWEST] });
    days(tenPerSecond([4 * DAY, 0.009]), { [4 * DAY - 5]: [] });
    days(tenPerSecond([4 * DAY, 0.011]), { [4 * DAY - 5]: [SLOWEST] });
  });

  test('low traffic: one failure among eight requests is silent, and so are 69 failures; 80 fire', () => {
    const failures = (perHour: number) =>
      requests(counter([8 * HOUR, 0]), counter([7 * HOUR, 0], [HOUR, perHour / 3600]));
    const few = requests(counter([8 * HOUR, 7 / 3600]), counter([8 * HOUR, 1 / 3600]));
    hours(few, { [HOUR]: [], [8 * HOUR - 1]: [] });
    hours(failures(69), { [8 * HOUR - 1]: [] });
    hours(failures(80), { [8 * HOUR - 1]: [FAST] });
  });

  test('N3: no requests for 30 minutes, or none at all any more: no alert, and no NaN', () => {
    hours(tenPerSecond([2 * HOUR, 0], [35, undefined]), { [2 * HOUR + 30]: [] });
    const flat = requests(counter([2 * HOUR, 10], [HOUR, 0]), counter([3 * HOUR, 0]));
    hours(flat, { [2 * HOUR + 30]: [] });
    const ratio = { expr: 'operation:time_budget_unuseful:ratio_rate5m', eval_time: '150m', exp_samples: [] };
    expect(wrongSamples(flat, [ratio])).toBe(undefined);
  });

  test('a process that starts again makes no alert, and ends none', () => {
    const healthy = requests(restarted([[7 * HOUR, 10]], [[HOUR, 10]]), counter([8 * HOUR, 0]));
    hours(healthy, { [7 * HOUR + 1]: [], [7 * HOUR + 10]: [] });
    const failing = requests(
      restarted(
        [
          [7 * HOUR, 10],
          [20, 0],
        ],
        [[40, 0]],
      ),
      restarted(
        [
          [7 * HOUR, 0],
          [20, 10],
        ],
        [[40, 10]],
      ),
    );
    hours(failing, { [7 * HOUR + 19]: [FAST], [7 * HOUR + 22]: [FAST], [7 * HOUR + 29]: [FAST] });
  });

  test('A-19: what was refused or shed on purpose is no failure', () => {
    const shed = Object.fromEntries(
      ['shed', 'refused', 'useful'].map((outcome) => [
        `time_budget_outcomes_total{job="shop",instance="a",operation="pay",outcome="${outcome}"}`,
        counter([3 * HOUR, 5]),
      ]),
    );
    hours(shed, { [3 * HOUR - 1]: [] });
  });
});
