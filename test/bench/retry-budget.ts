/**
 * What paying into and out of a retry budget costs: each model of ours beside counters that work as those of tower
 * and cockatiel do, each in a process of its own. Part of `npm run bench`; alone with `node test/bench/retry-budget.ts`.
 * Compare within one run only.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { InFlightPercentBudget } from '../../src/core/retry-budget-envoy.ts';
import { GrpcThrottlingBudget } from '../../src/core/retry-budget-grpc.ts';
import { AWS_QUOTA, FixedQuotaBudget } from '../../src/core/retry-budget-quota.ts';
import { TokenBucketBudget } from '../../src/core/retry-budget-token-bucket.ts';
import { LiveRetryBudget } from '../../src/live-retry-budget.ts';
import { createFamilies } from '../../src/telemetry/metrics.ts';
import { type Spread, spread } from './statistics.ts';

export interface BudgetAmounts {
  readonly repeats: number;
  readonly operations: number;
}

/** One deposit with one withdrawal. */
export interface BudgetCost {
  readonly name: string;
  readonly ns: Spread;
  readonly bytes: Spread;
  /** The first withdrawal after ten hours in which nothing happened. */
  readonly afterNightUs: Spread;
}

const ALONE: BudgetAmounts = { repeats: 11, operations: 1_000_000 };
const WARM_UPS = 3;
/** 10,000 operations per second, so that slots turn as they would under load. */
const STEP_MS = 0.1;
const NIGHT_MS = 10 * 3_600_000;

interface Counter {
  deposit(now: number): unknown;
  tryWithdraw(now: number): unknown;
}

/** Ten slots in a ring, summed up at every withdrawal, and walked slot by slot after a pause, as in tower. */
class SlotCounter implements Counter {
  readonly #slots = new Array<number>(10).fill(0);
  #index = 0;
  #since = 0;
  #writer = 0;

  deposit(now: number): void {
    this.#expire(now);
    this.#writer += 1;
  }

  tryWithdraw(now: number): boolean {
    this.#expire(now);
    let sum = this.#writer + 500;
    for (const slot of this.#slots) sum += slot;
    if (sum < 5) return false;
    this.#writer -= 5;
    return true;
  }

  #expire(now: number): void {
    let passed = now - this.#since;
    if (passed < 1_000) return;
    this.#slots[this.#index] = this.#writer;
    this.#writer = 0;
    this.#index = (this.#index + 1) % 10;
    for (; passed > 1_000; passed -= 1_000) {
      this.#slots[this.#index] = 0;
      this.#index = (this.#index + 1) % 10;
    }
    this.#since = now;
  }
}

interface SampleWindow {
  readonly startedAt: number;
  successes: number;
  failures: number;
}

/** Windows of counts in an array that is pushed and shifted, as in cockatiel's sampling breaker. */
class SamplingCounter implements Counter {
  readonly #windows: SampleWindow[] = [];
  #successes = 0;
  #failures = 0;

  deposit(now: number): void {
    this.#successes++;
    this.#current(now).successes++;
  }

  tryWithdraw(now: number): boolean {
    this.#failures++;
    this.#current(now).failures++;
    return this.#failures < this.#successes * 0.2;
  }

  #current(now: number): SampleWindow {
    for (let oldest = this.#windows[0]; oldest !== undefined && now - oldest.startedAt >= 10_000; ) {
      this.#windows.shift();
      this.#successes -= oldest.successes;
      this.#failures -= oldest.failures;
      oldest = this.#windows[0];
    }
    const last = this.#windows[this.#windows.length - 1];
    if (last !== undefined && now - last.startedAt < 1_000) return last;
    const started = { startedAt: now, successes: 0, failures: 0 };
    this.#windows.push(started);
    return started;
  }
}

/** As a service has it: with its metrics. */
function liveBudget(): LiveRetryBudget {
  const options = { model: 'token_bucket', ratio: 0.2, reservePerSecond: 10, ttlMs: 10_000 } as const;
  const budget = new LiveRetryBudget('stock', ['stock'], options);
  budget.connect(createFamilies(), 'stock');
  return budget;
}

const floor = { attempts: 5, everyMs: 10_000 };
const COUNTERS: Readonly<Record<string, () => Counter>> = {
  'token bucket': () => new TokenBucketBudget({ ratio: 0.2, reservePerSecond: 10, ttlMs: 10_000 }),
  'token bucket, live': liveBudget,
  'gRPC throttling': () => new GrpcThrottlingBudget({ maxTokens: 10, tokenRatio: 0.1, floor }),
  'percent in flight': () => new InFlightPercentBudget({ percent: 20, minimum: 3 }),
  'fixed quota': () => new FixedQuotaBudget({ ...AWS_QUOTA, floor }),
  'as tower counts': () => new SlotCounter(),
  'as cockatiel counts': () => new SamplingCounter(),
};

/** Nanoseconds per operation, from `startAt` on. */
function time(counter: Counter, operations: number, startAt: number): number {
  const startedAt = performance.now();
  for (let i = 0; i < operations; i++) {
    counter.deposit(startAt + i * STEP_MS);
    counter.tryWithdraw(startAt + i * STEP_MS);
  }
  return ((performance.now() - startedAt) * 1e6) / operations;
}

/** Bytes allocated per operation; whole instants, because V8 puts a fraction that is handed over on the heap. */
function weigh(counter: Counter, operations: number, startAt: number): number {
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < operations; i++) {
    counter.deposit(startAt + Math.trunc(i / 10));
    counter.tryWithdraw(startAt + Math.trunc(i / 10));
  }
  return (process.memoryUsage().heapUsed - before) / operations;
}

function nightUs(counter: Counter, startAt: number): number {
  const startedAt = performance.now();
  counter.tryWithdraw(startAt + NIGHT_MS);
  return (performance.now() - startedAt) * 1e3;
}

function measure(name: string, make: () => Counter, { repeats, operations }: BudgetAmounts): BudgetCost {
  const counter = make();
  // The clock starts at a fraction, so that every time that is kept is one.
  counter.deposit(0.5);
  const ns: number[] = [];
  const bytes: number[] = [];
  const nights: number[] = [];
  let now = 1;
  for (let i = 0; i < repeats + WARM_UPS; i++) {
    const took = time(counter, operations, now);
    const weighed = weigh(counter, operations, now + operations * STEP_MS);
    now += 2 * operations * STEP_MS;
    const night = nightUs(counter, now);
    now += NIGHT_MS;
    if (i < WARM_UPS) continue;
    ns.push(took);
    bytes.push(weighed);
    nights.push(night);
  }
  return { name, ns: spread(ns), bytes: spread(bytes), afterNightUs: spread(nights) };
}

/** Room for all that one run can allocate, so that no collection comes in between. */
const FLAGS = ['--min-semi-space-size=128', '--max-semi-space-size=128'];
const FILE = fileURLToPath(import.meta.url);

/**
 * Each in its own process: with one shape of counter the calls are compiled as they are where one budget is used.
 */
export async function measureBudgets(amounts: BudgetAmounts): Promise<BudgetCost[]> {
  const costs: BudgetCost[] = [];
  for (const name of Object.keys(COUNTERS)) {
    const args = [...FLAGS, FILE, name, JSON.stringify(amounts)];
    const { stdout } = await promisify(execFile)(process.execPath, args);
    // What the process below has printed.
    costs.push(JSON.parse(stdout) as BudgetCost);
  }
  return costs;
}

const [, script, chosen, amounts] = process.argv;
if (script === FILE) {
  const make = chosen === undefined ? undefined : COUNTERS[chosen];
  if (chosen !== undefined && make !== undefined && amounts !== undefined) {
    // As it was given above.
    console.log(JSON.stringify(measure(chosen, make, JSON.parse(amounts) as BudgetAmounts)));
  } else console.table((await measureBudgets(ALONE)).map(({ name, ns }) => ({ name, ns: ns.median })));
}
