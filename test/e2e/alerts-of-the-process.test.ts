/**
 * Alerts that hang on one process, live: for each, a service that gets into its situation and one that gets near it,
 * while a Prometheus looks at them with the rules at sixty times their speed (20m are 20 s).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { brokenTexts, firedAlerts, firingAlerts, untilSeen } from '../support/live-alerts.ts';
import { ask } from '../support/loopback.ts';
import { usePostgres } from '../support/postgres.ts';
import { isPrometheusInstalled, Prometheus } from '../support/prometheus.ts';
import { makeRules } from '../support/promtool.ts';
import { Service } from '../support/service.ts';

/** Durations are those of the rules before scaling: minutes here are seconds of the test. */
const SETTINGS = {
  scale: ['0.016666666666'],
  'scrape-interval': ['1m'],
  'evaluation-interval': ['1m'],
  'exhausted-recent-window': ['4m'],
  // A loop that is blocked answers no scrape either: long enough for two that come through between two blocks.
  'rate-window': ['20m'],
  'burn-fast-short-window': ['20m'],
  'missing-for': ['25m'],
  // Opening the connections is a wait as well, and for 10 s more than one in twenty.
  'pool-wait-for': ['20m'],
  // A wait is shown for 30 to 33 real seconds, so that a single one may hold for 13. A busy machine makes waits of a
  // second, and nothing but a block one of three.
  'loop-delay-for': ['24m'],
  'loop-delay-seconds': ['3'],
  // Longer than it takes to see that a replay has stopped.
  'replay-stopped-for': ['20m'],
  'fault-window': ['20m'],
  'fault-for': ['5m'],
};

const HEAP_MIB = 200;
const OPEN_FILES = 200;

interface Situation {
  readonly alert: string;
  /** How much of it fires and how much is near; what of is in `apps/process-alerts.mjs`. */
  readonly full: number;
  readonly near: number;
  /** Holds in Prometheus once the near miss was one. */
  readonly wasNear: string;
  /** The near miss is as much, and is over as soon as it was seen. */
  readonly isBrief?: boolean;
  readonly clients?: number;
}

const SITUATIONS: Readonly<Record<string, Situation>> = {
  pool: {
    alert: 'ConnectionPoolSaturated',
    full: 1,
    // As many as there are clients.
    near: 3,
    wasNear: 'db_client_connection_wait_time_seconds_count{job="pool-near"} > 100',
    clients: 3,
  },
  replay: {
    alert: 'ReplayStopped messages',
    full: 101,
    near: 101,
    wasNear: 'max_over_time(time_budget_replay_stopped{job="replay-near",stop="latency"}[600s]) == 1',
    isBrief: true,
  },
  faults: {
    alert: 'TimeBudgetInternalErrors',
    full: 1,
    near: 0,
    // Its highest total: what is less does not count, and is no fault.
    wasNear: 'time_budget_queue_entered_total{job="faults-near"} == 2',
  },
  loop: {
    alert: 'EventLoopSaturated',
    full: 1000,
    near: 1,
    wasNear: 'max_over_time(time_budget_loop_delay_seconds{job="loop-near"}[600s]) > 3',
  },
  heap: {
    alert: 'HeapNearLimit',
    full: 0.89 * HEAP_MIB,
    near: 0.78 * HEAP_MIB,
    wasNear:
      'min_over_time(time_budget_heap_used_bytes{job="heap-near"}[20s]) / time_budget_heap_limit_bytes > 0.75',
  },
  files: {
    alert: 'OpenFilesNearLimit',
    full: 0.88 * OPEN_FILES,
    near: 0.75 * OPEN_FILES,
    wasNear: 'time_budget_open_files{job="files-near"} / time_budget_open_files_limit > 0.7',
  },
};
const NAMES = Object.keys(SITUATIONS);
const JOBS = NAMES.flatMap((name) => [name, `${name}-near`]);

// Only Linux tells of open files.
const isPossible = isPrometheusInstalled() && process.platform === 'linux';

describe.skipIf(!isPossible)('alerts of a process', () => {
  const database = usePostgres();
  const services = new Map<string, Service>();
  let prometheus: Prometheus;
  let isOver = false;

  async function start(job: string): Promise<void> {
    const [part = ''] = job.split('-');
    const service = await Service.start('apps/process-alerts.mjs', {
      env: {
        PART: part,
        ...(part === 'pool' ? { DATABASE: JSON.stringify(database.connection) } : {}),
        ...(part === 'heap' ? { NODE_OPTIONS: `--max-old-space-size=${HEAP_MIB}` } : {}),
      },
      ...(part === 'files' ? { openFiles: OPEN_FILES } : {}),
    });
    services.set(job, service);
  }

  async function tell(job: string, path: string): Promise<void> {
    await ask(services.get(job)?.port ?? 0, { path });
  }

  /** One request after the other, until the test is over. */
  async function client(job: string): Promise<void> {
    while (!isOver) {
      await tell(job, '/').catch(() => undefined);
      await sleep(200);
    }
  }

  async function holds(expression: string): Promise<boolean> {
    return (await prometheus.query(expression)).length > 0;
  }

  /** The alert is told, by the one service. Then its situation ends. */
  async function untilFired(job: string, { alert, full }: Situation): Promise<void> {
    await tell(job, `/begin?${full}`);
    await untilSeen(
      () => `${job} ${alert}`,
      async () => (await firedAlerts(prometheus, 4)).includes(`${job} ${alert}`),
    );
    const alerts = await firingAlerts(prometheus, job);
    await tell(job, '/end');
    expect(alerts.length).toBeGreaterThan(0);
    expect(brokenTexts(alerts)).toEqual([]);
  }

  async function comeNear(job: string, { near, wasNear, isBrief = false }: Situation): Promise<void> {
    await tell(job, `/begin?${near}`);
    await untilSeen(
      () => wasNear,
      () => holds(wasNear),
    );
    if (isBrief) await tell(job, '/end');
  }

  beforeAll(async () => {
    await Promise.all(JOBS.map(start));
    prometheus = await Prometheus.start({
      pages: Object.fromEntries([...services].map(([job, { page }]) => [job, page])),
      scrapeInterval: '1s',
      rules: makeRules(SETTINGS),
    });
    for (const job of JOBS) {
      const { clients = 1 } = SITUATIONS[job.replace('-near', '')] ?? {};
      for (let i = 0; i < clients; i++) void client(job);
    }
    // Without the package, as with settings that are wrong, there would be no page.
    await untilSeen(
      () => 'a page of every service',
      () => holds(`count(min_over_time(time_budget_internal_errors_total[5s])) == ${JOBS.length}`),
    );
  }, 120_000);

  afterAll(async () => {
    isOver = true;
    await Promise.all([prometheus?.stop(), ...[...services.values()].map((service) => service.stop())]);
  });

  test('each fires by its own cause, with annotations that can be read, while others come near', async () => {
    const told = await Promise.allSettled(
      Object.entries(SITUATIONS).flatMap(([name, situation]) => [
        untilFired(name, situation),
        comeNear(`${name}-near`, situation),
      ]),
    );
    expect(told.flatMap((result) => (result.status === 'rejected' ? [String(result.reason)] : []))).toEqual(
      [],
    );
  }, 100_000);

  test('each ends by itself when its cause does', async () => {
    let left: string[] = [];
    await untilSeen(
      () => `still ${left.join(', ')}`,
      async () => (left = await firedAlerts(prometheus, 3)).length === 0,
    );
  }, 100_000);

  test('T-31: each has told its own alert and no other, and what was near has told none', async () => {
    const expected = Object.entries(SITUATIONS).map(([name, { alert }]) => `${name} ${alert}`);
    expect(await firedAlerts(prometheus, 600)).toEqual(expected.sort());
  });
});
