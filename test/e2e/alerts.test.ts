/**
 * The alerts, live: five services get into the situations that the alerts are about, and near them, while a Prometheus
 * looks at them with the rules at sixty times their speed (5m are 5 s). Each job tells exactly its alerts and no other.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Job } from '../support/alert-stage.ts';
import { brokenTexts, firedAlerts, firingAlerts, untilSeen } from '../support/live-alerts.ts';
import { isPrometheusInstalled, Prometheus } from '../support/prometheus.ts';
import { makeRules } from '../support/promtool.ts';

/** Durations are those of the rules before scaling: minutes here are seconds of the test. */
const SETTINGS = {
  scale: ['0.016666666666'],
  'scrape-interval': ['1m'],
  'evaluation-interval': ['1m'],
  // Eight scrapes: some are late on a busy machine.
  'rate-window': ['8m'],
  'burn-fast-short-window': ['8m'],
  'burn-medium-short-window': ['15m'],
  // Tickets after hours are for the rule tests.
  'burn-slow-for': ['5h'],
  'burn-slowest-for': ['5h'],
  'exhausted-recent-window': ['4m'],
  'exhausted-for': ['10m'],
  'draining-for': ['12m'],
  'without-effect-for': ['8m'],
  // The load of this test is not as even as that of a service.
  'without-effect-share': ['0.5'],
  'amplification-offset': ['25m'],
  'amplification-for': ['8m'],
  'local-spend-for': ['15m'],
  'slow-offset': ['15m'],
  // The machine may be busy, and then everything takes a second: what is slow here is slower than that.
  'slow-factor': ['3'],
  'slow-least-seconds': ['2'],
  'without-deadline-for': ['15m'],
  'shed-offset': ['20m'],
  // Longer than what still waits of a surge that is over.
  'shed-for': ['18m'],
  'shed-ordinary': ['1.5'],
  'degraded-for': ['15m'],
  'degraded-not-allowed-keep': ['5m'],
  // Real seconds are not scaled: the ten after a close must be in the window, and over before it is told.
  'wave-seconds': ['4'],
  'wave-window': ['20m'],
  'wave-for': ['12m'],
  'wave-keep': ['5m'],
  'violation-window': ['15m'],
  'violation-for': ['3m'],
  // Real seconds are not scaled.
  'unknown-seconds': ['8'],
  // A wait is shown for 30 real seconds, and a busy machine makes some of a second: alerts-of-the-process.test.ts has it.
  without: ['EventLoopSaturated'],
  'missing-offset': ['20m'],
  'missing-for': ['5m'],
  'fault-window': ['15m'],
  'fault-for': ['3m'],
};
/** Longer than any window that looks at what was before. */
const ORDINARY_MS = 40_000;

/** More than anything here takes. */
const WAY = 30_000;

/** Alerts by job; of labels, those that tell which. */
const EXPECTED = {
  slow: ['DependencySlow stock'],
  impatient: ['CallerBudgetUnrealistic kiosk'],
  retries: [
    'LoadSheddingAtOrdinaryLoad',
    'RetryBudgetDraining watched',
    'RetryBudgetExhausted dead',
    'RetryBudgetLowSuccess dead',
    'RetryBudgetWithoutEffect watched',
  ],
  storm: ['RetryAmplification stock', 'TimeBudgetBurn GET /loop/:name'],
  mixed: [
    'BacklogWillNotDrain front',
    'BreakerClosesIntoWave fragile',
    'BreakerProbesTooMany wavering',
    'BudgetContractViolation reset',
    'CallsWithoutDeadline open',
    'ConcurrencyNearLimit front',
    'DegradedModeTooLong stale',
    'DegradedNotAllowed',
    'LocalSpendDominates GET /thinks/:ms',
    'PostCancelWork handler none',
    'PostCancelWork http ledger',
    'QueueAgeNearUsefulLife front',
    'TimeBudgetLabelOverflow caller',
    'UnknownOutcomesOpen GET /commits/:name/:key',
    'WastedExecution ledger',
  ],
};
const NAMES = ['slow', 'impatient', 'retries', 'storm', 'mixed'] as const;

const up = () => 200;
const down = () => 503;

describe.skipIf(!isPrometheusInstalled())('alerts of running services', () => {
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-alert-services-'));
  let prometheus: Prometheus;
  let jobs: Jobs;
  let exhausted: string | undefined;

  type Jobs = Awaited<ReturnType<typeof startJobs>>;

  async function startJobs() {
    const bucket = { model: 'token_bucket', ttl_ms: 10_000, reserve_per_second: 0 };
    const [slow, impatient, retries, storm, mixed] = await Promise.all([
      Job.start(['stock'], folder),
      Job.start(['stock'], folder),
      Job.start(['dead', 'blip', 'fine', 'watched'], folder, {
        config: {
          mode: 'enforce',
          dependencies: { watched: { mode: 'observe' } },
          retry_budgets: {
            // Fed by success, of which there will be none.
            dead: { ...bucket, ratio: 0.02, feed: 'success', ttl_ms: 20_000, reserve_per_second: 0.05 },
            blip: { ...bucket, ratio: 0.001 },
            fine: { ...bucket, ratio: 1 },
            watched: { ...bucket, ratio: 0.2 },
          },
        },
      }),
      Job.start(['stock'], folder),
      Job.start(['stock', 'vault', 'ledger', 'quick', 'open', 'fragile', 'wavering'], folder, {
        config: { mode: 'enforce', labels: { callers: 3 } },
        gate: '2 1000 8000',
      }),
    ]);
    return { slow, impatient, retries, storm, mixed };
  }

  function ordinary(): void {
    const { slow, impatient, retries, storm, mixed } = jobs;
    slow.traffic(15, { path: '/plain/stock', budgetMs: WAY });
    impatient.dependencies.stock.delayMs = 3000;
    impatient.traffic(24, { path: '/plain/stock', budgetMs: WAY });
    for (const name of ['dead', 'blip', 'fine', 'watched'] as const) {
      retries.traffic(name === 'watched' ? 10 : 5, { path: `/guarded/${name}`, budgetMs: WAY });
    }
    // Near misses: one in ten is tried again, and the budget has more than that.
    retries.dependencies.fine.status = (ordinal) => (ordinal % 10 === 0 ? 503 : 200);
    storm.traffic(10, { path: '/loop/stock', budgetMs: WAY });
    mixed.traffic(5, { path: '/plain/stock', budgetMs: WAY });
    mixed.dependencies.vault.delayMs = 400;
    mixed.traffic(0.5, { path: '/gated', budgetMs: 60_000 });
    // A tenth of the budget before the first call, and work for nobody that is little.
    mixed.traffic(2, { path: '/glances/500', budgetMs: 10_000 });
    mixed.dependencies.quick.delayMs = 4500;
    mixed.traffic(0.4, { path: '/plain/quick', budgetMs: WAY, leaveAfterMs: 4000 });
    mixed.traffic(5, { path: '/breaker/wavering', budgetMs: WAY });
    // A breaker that closes while few are waiting. Without that the series would come with the wave, and be missed.
    void closeBreaker(5);
  }

  /** By job: what begins its situations, and gives what ends them. */
  const FAULTS: { readonly [J in keyof Jobs]: (job: Jobs[J]) => (() => void)[] } = {
    slow({ dependencies: { stock } }) {
      stock.delayMs = 5000;
      return [() => (stock.delayMs = 120)];
    },
    // One request in twenty-five: so few that the objective is not in danger.
    impatient: (job) => [job.traffic(1, { path: '/plain/stock', budgetMs: 2000, caller: 'kiosk' })],
    retries(job) {
      const { dead, watched, blip } = job.dependencies;
      dead.status = down;
      watched.status = (ordinal) => (ordinal % 20 < 7 ? 503 : 200);
      blip.status = down;
      setTimeout(() => (blip.status = up), 1000);
      const end = job.traffic(1, { path: '/limited?status=429', budgetMs: WAY });
      return [end, () => (dead.status = up), () => (watched.status = up)];
    },
    storm({ dependencies: { stock } }) {
      stock.status = down;
      return [() => (stock.status = up)];
    },
    mixed(job) {
      const { ledger, wavering } = job.dependencies;
      ledger.delayMs = 10_000;
      wavering.status = down;
      void job.ask({ path: '/modes/stale/enter' });
      void job.ask({ path: '/modes/brief/enter' }).then(() => job.ask({ path: '/modes/brief/exit' }));
      void job.ask({ path: '/pay', budgetMs: WAY });
      void job.ask({ path: '/commits/unknown/a', budgetMs: WAY });
      void job.ask({ path: '/glances/1', budgetMs: 10_000, headers: { 'x-request-timeout-ms': '20000' } });
      for (const caller of ['one', 'two', 'three', 'four']) {
        void job.ask({ path: '/glances/1', budgetMs: WAY, caller });
      }
      void closeBreaker(60);
      return [
        job.traffic(15, { path: '/gated', budgetMs: 60_000 }),
        job.traffic(2, { path: '/thinks/6000', budgetMs: 10_000 }),
        job.traffic(2, { path: '/plain/ledger', budgetMs: 7000, leaveAfterMs: 4000 }),
        job.traffic(2, { path: '/plain/open?limit=none' }),
        () => (wavering.status = up),
        () => void job.ask({ path: '/modes/stale/exit' }),
        () => void job.ask({ path: '/commits/found/a', budgetMs: WAY }),
      ];
    },
  };

  /** Three failures open the breaker, one success closes it, and then so many come back at once. */
  async function closeBreaker(waiting: number): Promise<void> {
    const { mixed } = jobs;
    const ask = () => mixed.ask({ path: '/breaker/fragile', budgetMs: WAY });
    mixed.dependencies.fragile.status = () => 503;
    for (let i = 0; i < 3; i++) await ask();
    mixed.dependencies.fragile.status = () => 200;
    await sleep(300);
    await ask();
    await Promise.all(Array.from({ length: waiting }, ask));
  }

  /** A situation ends as soon as it has been told, so that nothing else comes of it. */
  async function untilTold<J extends keyof Jobs>(job: J): Promise<void> {
    const ends = FAULTS[job](jobs[job]);
    const wanted = EXPECTED[job].map((alert) => `${job} ${alert}`);
    let missing = wanted;
    await untilSeen(
      () => `no ${missing.join(', ')}`,
      async () => {
        const seen = new Set(await firedAlerts(prometheus, 600));
        missing = wanted.filter((alert) => !seen.has(alert));
        return missing.length === 0;
      },
    );
    const alerts = await firingAlerts(prometheus, job);
    for (const end of ends) end();
    exhausted ??= alerts.find(({ name }) => name === 'RetryBudgetExhausted')?.texts.description;
    expect(alerts.length).toBeGreaterThan(0);
    expect(brokenTexts(alerts)).toEqual([]);
  }

  beforeAll(async () => {
    jobs = await startJobs();
    const pages = Object.entries(jobs).map(([job, { service }]) => [job, service.page]);
    prometheus = await Prometheus.start({
      pages: Object.fromEntries(pages),
      scrapeInterval: '1s',
      rules: makeRules(SETTINGS),
    });
    ordinary();
    await sleep(ORDINARY_MS);
  }, 120_000);

  afterAll(async () => {
    await Promise.all([prometheus?.stop(), ...Object.values(jobs ?? {}).map((job) => job.stop())]);
    rmSync(folder, { recursive: true, force: true });
  });

  test('ordinary operation, repeats and clients that leave among it, fires nothing', async () => {
    expect(await firedAlerts(prometheus, 600)).toEqual([]);
  });

  test('each situation fires its alerts, with annotations that can be read', async () => {
    const told = await Promise.allSettled(NAMES.map(untilTold));
    expect(told.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))).toEqual(
      [],
    );
    // What a refusal means depends on the budget, so the message has it.
    expect(exhausted).toMatch(
      /^\d.*% of the repeats .* Unit requests, fed by success, on empty original_error\. Policy \w{8}\.$/,
    );
  }, 90_000);

  test('each ends by itself when the situation does', async () => {
    let left: string[] = [];
    await untilSeen(
      () => `still ${left.join(', ')}`,
      async () => (left = await firedAlerts(prometheus, 4)).length === 0,
    );
  }, 90_000);

  test.each(NAMES)('T-31, A-01: %s has told exactly its own alerts', async (job) => {
    const own = (await firedAlerts(prometheus, 600)).filter((alert) => alert.startsWith(`${job} `));
    expect(own).toEqual(EXPECTED[job].map((alert) => `${job} ${alert}`));
  });

  test('a service that is gone is told, and no other', async () => {
    await jobs.storm.service.stop();
    await untilSeen(
      () => 'no TimeBudgetTelemetryMissing',
      async () => (await firedAlerts(prometheus, 4)).includes('storm TimeBudgetTelemetryMissing'),
    );
    expect(await firedAlerts(prometheus, 4)).toEqual(['storm TimeBudgetTelemetryMissing']);
  }, 90_000);
});
