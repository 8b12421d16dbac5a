/** A share of the originals, or of the successes, of the last seconds may be repeated; a reserve comes on top. */
import { ExhaustedTime } from './exhausted-time.ts';
import {
  amountOf,
  type BudgetPolicy,
  checkListed,
  checkRange,
  costOf,
  emptyBehaviour,
  MAX_COST,
  PASSING_UNITS,
  partOf,
  type RetryBudget,
  shareOf,
  WINDOW_BOUNDS_MS,
} from './retry-budget.ts';
import { SteadyClock } from './steady-clock.ts';
import type { DepositSource, EmptyBehaviour, RetryBudgetUnit } from './terms.ts';
import { WindowBucket } from './window-bucket.ts';

export interface TokenBucketOptions extends BudgetPolicy {
  /** Share of what is deposited that may be withdrawn, 0 to 1. */
  readonly ratio: number;
  /** Granted on top per second, on the average of a `ttlMs`; all of it may be taken at once. In the unit. */
  readonly reservePerSecond: number;
  /** Life of a deposit, 1,000 to 60,000; it falls short of it by less than 5 %. */
  readonly ttlMs: number;
  /** `original` by default. With `success` the reserve is the floor, and must pay for an attempt in every ttl. */
  readonly feed?: 'original' | 'success' | undefined;
  /** `requests` by default. An original of `time` is deposited when it has ended, with the ms that it took. */
  readonly unit?: Exclude<RetryBudgetUnit, 'concurrent_attempts'> | undefined;
  /** Cost of a usual attempt, 1 by default; give it where the unit is not requests. */
  readonly attemptCost?: number | undefined;
}

/**
 * Finagle's model (com.twitter.finagle.service.RetryBudget; its defaults are 20 %, 10 per second, 10 s), which
 * Linkerd and tower took over. In every window no more is withdrawn than ratio x deposits + reserve. Differences:
 * amounts are exact to a millionth (tower makes 0.75 a 1, tower-rs/tower#857), slots keep to the clock (Finagle's
 * fall behind by what a call comes too late), and a ratio over 1 is refused.
 */
export class TokenBucketBudget implements RetryBudget {
  readonly model = 'token_bucket';
  readonly unit: RetryBudgetUnit;
  readonly feed: 'original' | 'success';
  readonly onEmpty: EmptyBehaviour;
  readonly policyVersion: string | undefined;
  readonly isDerived = false;
  readonly attemptCost: number;
  readonly floor: number;

  readonly #share: number;
  /** What an original of the usual cost brings. */
  readonly #usualPart: number;
  readonly #attempt: number;
  readonly #bucket: WindowBucket;
  readonly #clock = new SteadyClock();
  readonly #exhausted = new ExhaustedTime();

  /** Throws RangeError for an option out of its bounds. */
  constructor(options: TokenBucketOptions) {
    const { ratio, reservePerSecond, ttlMs } = options;
    checkRange('ratio', ratio, 0, 1);
    checkRange('reservePerSecond', reservePerSecond, 0, MAX_COST);
    checkRange('ttlMs', ttlMs, ...WINDOW_BOUNDS_MS);
    this.attemptCost = options.attemptCost ?? 1;
    checkRange('attemptCost', this.attemptCost, 1e-6, MAX_COST);
    this.unit = checkListed('unit', options.unit ?? 'requests', PASSING_UNITS);
    this.feed = checkListed('feed', options.feed ?? 'original', ['original', 'success']);
    this.onEmpty = emptyBehaviour(options);
    this.policyVersion = options.policyVersion;
    this.#share = shareOf(ratio);
    this.#usualPart = partOf(this.#share, this.attemptCost);
    this.#attempt = amountOf(this.attemptCost);
    // Multiplied before it is divided: 0.1 x 3,000 ms is whole, and 0.1 x 3 s is not.
    const reserve = shareOf((reservePerSecond * ttlMs) / 1_000);
    this.floor = costOf(reserve);
    if (this.feed === 'success' && reserve < this.#attempt) {
      const least = (this.attemptCost * 1_000) / ttlMs;
      throw new RangeError(
        `reservePerSecond must be >= ${least} where successes feed the budget, got ${reservePerSecond}: ` +
          'it is the floor without a success, and has to pay for one attempt in every ttlMs',
      );
    }
    this.#bucket = new WindowBucket(reserve, ttlMs);
    this.#watch(0);
  }

  deposit(now: number, source: DepositSource = this.feed, cost: number = this.attemptCost): boolean {
    if (source !== this.feed && source !== 'refund') return false;
    const amount = source === 'refund' ? amountOf(cost) : this.#partOf(cost);
    if (!(amount > 0)) return false;
    const at = this.#goOn(now);
    const isKept = source !== 'refund' || this.#bucket.giveBack(amount) < amount;
    if (source !== 'refund') this.#bucket.deposit(amount);
    this.#watch(at);
    return isKept;
  }

  tryWithdraw(now: number, cost: number = this.attemptCost): boolean {
    const amount = cost === this.attemptCost ? this.#attempt : amountOf(cost);
    if (!(amount > 0)) return false;
    const at = this.#goOn(now);
    const isGranted = this.#bucket.tryWithdraw(amount);
    if (isGranted) this.#watch(at);
    else this.#exhausted.refuse(at);
    return isGranted;
  }

  /** Not counted here, nor are `begin` and `end`. */
  fail(): void {}

  begin(): void {}

  end(): void {}

  balance(now: number): number {
    this.#goOn(now);
    return costOf(this.#bucket.left);
  }

  capacity(now: number): number {
    this.#goOn(now);
    return costOf(this.#bucket.reserve + this.#bucket.deposited);
  }

  exhaustedMs(now: number): number {
    return this.#exhausted.read(this.#goOn(now));
  }

  isLowSuccess(now: number): boolean {
    this.#goOn(now);
    return this.feed === 'success' && this.#bucket.deposited < this.#attempt;
  }

  #partOf(cost: number): number {
    return cost === this.attemptCost ? this.#usualPart : partOf(this.#share, cost);
  }

  #goOn(now: number): number {
    const at = this.#clock.read(now);
    while (this.#bucket.step(at)) this.#watch(this.#bucket.steppedAt);
    return at;
  }

  #watch(at: number): void {
    this.#exhausted.watch(this.#bucket.left >= this.#attempt, at);
  }
}
