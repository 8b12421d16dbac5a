/**
 * T-27, T-20, I18: the retry storm. The dependency of an order-status service becomes slow for a while; its client
 * library repeats, the service above it has a policy of its own, and the page a button. It is played twice under the
 * same original demand: without retry budgets, and with one at each of the two services that call. A user has none.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { type Comparison, compare } from '../support/experiment.ts';
import type { Metrics } from '../support/service.ts';
import {
  AFTER_FROM,
  FAULT_FROM,
  FAULT_UNTIL,
  ORIGINALS,
  type Pages,
  playStorm,
  type StormFigures,
} from '../support/storm.ts';

/** A tenth of the originals, and six on top for as long as the test runs. */
const RATIO = 0.1;
const RESERVE = 6;
const TTL_MS = 60_000;
/** Attempts of the library, of the service and of the user. */
const ATTEMPTS = { library: 3, service: 2, user: 2 };
const WORST = ATTEMPTS.library * ATTEMPTS.service * ATTEMPTS.user;

function budgetFor(dependency: string): string {
  const perSecond = (RESERVE * 1_000) / TTL_MS;
  return `retry_budgets: { ${dependency}: { model: token_bucket, ratio: ${RATIO}, reserve_per_second: ${perSecond}, ttl_ms: ${TTL_MS} } }`;
}

let storm: Comparison<StormFigures>;

beforeAll(async () => {
  const open = await playStorm('storm-open', {});
  const bounded = await playStorm('storm-bounded', {
    page: budgetFor('status'),
    status: budgetFor('stock'),
  });
  storm = compare(open, bounded);
}, 120_000);

const arrivals = (metrics: Metrics) => metrics.value('time_budget_offered_total');
const originals = (metrics: Metrics) => arrivals(metrics) - metrics.value('time_budget_retried_total');
const useful = (metrics: Metrics) => metrics.value('time_budget_outcomes_total', { outcome: 'useful' });
const repeats = (metrics: Metrics, labels = {}) =>
  metrics.value('time_budget_attempts_total', { kind: 'resend', ...labels }) +
  metrics.value('time_budget_attempts_total', { kind: 'reexecute', ...labels });
const sent = (metrics: Metrics) =>
  metrics.value('time_budget_attempts_total') -
  metrics.value('time_budget_attempts_total', { kind: 'reconnect' });
const withdrawals = (metrics: Metrics, result: string) =>
  metrics.value('retry_budget_withdrawals_total', { result });

type Mark = Exclude<keyof StormFigures, 'pressed' | 'succeeded' | 'scheduleMs'>;

/** What was added between two marks. */
function between(run: StormFigures, from: Mark, until: Mark, figure: (pages: Pages) => number): number {
  return figure(run[until]) - figure(run[from]);
}

/** Attempts at the dependency per original that the page took, between two marks. */
function attemptsPerOriginal(run: StormFigures, from: Mark, until: Mark): number {
  const attempts = between(run, from, until, ({ stock }) => arrivals(stock));
  return attempts / between(run, from, until, ({ page }) => originals(page));
}

describe.each(['without', 'with'] as const)('%s a retry budget', (which) => {
  test('originals stay flat: each part of the schedule has its own, and no tier takes repeats for demand', () => {
    const run = storm[which];
    expect(originals(run.end.page)).toBe(ORIGINALS);
    // A request that is broken off before it is out was never seen below; a stalled machine has some.
    for (const tier of ['status', 'stock'] as const) {
      expect(originals(run.end[tier]), tier).toBeLessThanOrEqual(ORIGINALS);
      expect(originals(run.end[tier]), tier).toBeGreaterThanOrEqual(0.95 * ORIGINALS);
    }
    const parts: readonly [Mark, Mark, number][] = [
      ['start', 'faultFrom', FAULT_FROM],
      ['faultFrom', 'faultUntil', FAULT_UNTIL - FAULT_FROM],
      ['faultUntil', 'afterFrom', AFTER_FROM - FAULT_UNTIL],
      ['afterFrom', 'end', ORIGINALS - AFTER_FROM],
    ];
    for (const [from, until, planned] of parts) {
      const measured = between(run, from, until, ({ page }) => originals(page));
      expect(Math.abs(measured - planned), `${from} until ${until}`).toBeLessThanOrEqual(0.25 * planned);
    }
  });

  test('before the fault one original is one attempt, and useful', () => {
    expect(attemptsPerOriginal(storm[which], 'start', 'faultFrom')).toBeLessThanOrEqual(1.1);
    const before = between(storm[which], 'start', 'faultFrom', ({ page }) => useful(page));
    const ended = ({ page }: Pages) => page.value('time_budget_outcomes_total');
    // The last few are still in flight.
    expect(before).toBeGreaterThanOrEqual(0.6 * FAULT_FROM);
    expect(before).toBeGreaterThanOrEqual(0.9 * between(storm[which], 'start', 'faultFrom', ended));
  });

  test('each repeat is its owner’s: the user’s at the page, the service’s from there, the library’s from the status service', () => {
    const { end, pressed } = storm[which];
    expect(pressed).toBeGreaterThan(0);
    expect(end.page.value('time_budget_arrival_repeats_total', { owner: 'user' })).toBe(pressed);
    expect(end.page.value('time_budget_retried_total')).toBe(pressed);
    expect(end.page.value('time_budget_workload_admitted_total', { workload: 'retry' })).toBe(pressed);
    expect(repeats(end.page)).toBeGreaterThan(0);
    expect(repeats(end.page, { owner: 'service' })).toBe(repeats(end.page));
    expect(repeats(end.status)).toBeGreaterThan(0);
    expect(repeats(end.status, { owner: 'got' })).toBe(repeats(end.status));
  });

  test('what a tier says that it sent is what the next one says that it got', () => {
    const { page, status, stock } = storm[which].end;
    expect(arrivals(page)).toBe(ORIGINALS + storm[which].pressed);
    for (const [above, below] of [[page, status] as const, [status, stock] as const]) {
      expect(arrivals(below)).toBeLessThanOrEqual(sent(above));
      expect(arrivals(below)).toBeGreaterThanOrEqual(0.98 * sent(above));
    }
  });

  test('useful operations are counted once, at the page, and as the users saw them', () => {
    expect(useful(storm[which].end.page)).toBe(storm[which].succeeded);
  });

  test('while the dependency is slow requests stay longer in flight', () => {
    const inFlight = (pages: Pages) => pages.page.value('time_budget_executing');
    expect(inFlight(storm[which].faultUntil)).toBeGreaterThanOrEqual(inFlight(storm[which].faultFrom) + 4);
  });
});

describe('without a retry budget', () => {
  test('attempts rise to many times the originals, within the product of what its owners may make', () => {
    expect(arrivals(storm.without.end.stock)).toBeLessThanOrEqual(WORST * ORIGINALS);
    expect(arrivals(storm.without.end.stock)).toBeGreaterThanOrEqual(5 * ORIGINALS);
    expect(attemptsPerOriginal(storm.without, 'faultUntil', 'afterUntil')).toBeGreaterThanOrEqual(2.5);
  });

  test('useful work does not come back when the dependency is quick again: the repeats keep it down', () => {
    const after = between(storm.without, 'afterFrom', 'end', ({ page }) => useful(page));
    expect(after).toBeLessThanOrEqual(0.25 * (ORIGINALS - AFTER_FROM));
  });

  test('M-37: nearly all that the dependency is asked to do is repeats', () => {
    const { stock } = storm.without.end;
    const retried = stock.value('time_budget_workload_admitted_total', { workload: 'retry' });
    expect(retried / stock.value('time_budget_workload_admitted_total')).toBeGreaterThanOrEqual(0.7);
  });

  test('there is no budget to speak of', () => {
    for (const metrics of Object.values(storm.without.end)) {
      expect(metrics.samples.filter(({ name }) => name.startsWith('retry_budget_'))).toEqual([]);
    }
  });
});

describe('with a retry budget', () => {
  test.each(['page', 'status'] as const)(
    'T-20: %s: granted <= ratio x originals + reserve, and no repeat without a token',
    (tier) => {
      const metrics = storm.with.end[tier];
      const deposits = metrics.value('retry_budget_deposits_total', { source: 'original' });
      expect(deposits).toBeGreaterThanOrEqual(ORIGINALS);
      expect(withdrawals(metrics, 'granted')).toBeGreaterThan(0);
      expect(withdrawals(metrics, 'granted')).toBeLessThanOrEqual(RATIO * deposits + RESERVE);
      expect(repeats(metrics)).toBeLessThanOrEqual(withdrawals(metrics, 'granted'));
      expect(withdrawals(metrics, 'refused')).toBeGreaterThan(0);
    },
  );

  test('R-22: so what arrives at the dependency is bounded, by arithmetic, from what arrives at the page', () => {
    const once = arrivals(storm.with.end.page) * (1 + RATIO) + RESERVE;
    expect(arrivals(storm.with.end.stock)).toBeLessThanOrEqual(once * (1 + RATIO) + RESERVE);
  });

  test('useful work comes back after the fault', () => {
    const after = between(storm.with, 'afterFrom', 'end', ({ page }) => useful(page));
    expect(after).toBeGreaterThanOrEqual(0.8 * (ORIGINALS - AFTER_FROM));
    expect(attemptsPerOriginal(storm.with, 'afterFrom', 'end')).toBeLessThanOrEqual(2.5);
  });
});

describe('side by side', () => {
  test('equal original demand: the same schedule, kept in both runs', () => {
    for (const run of [storm.without, storm.with]) {
      expect(originals(run.end.page)).toBe(ORIGINALS);
      expect(run.scheduleMs).toBeLessThanOrEqual(1.25 * storm.without.scheduleMs);
      expect(run.scheduleMs).toBeGreaterThanOrEqual(0.8 * storm.without.scheduleMs);
    }
  });

  test('fewer attempts, more useful work', () => {
    expect(3 * arrivals(storm.with.end.stock)).toBeLessThanOrEqual(arrivals(storm.without.end.stock));
    expect(useful(storm.with.end.page)).toBeGreaterThanOrEqual(1.5 * useful(storm.without.end.page));
  });
});
