/** A fixed stock that repeats use up and successes fill again. */
import { ExhaustedTime } from './exhausted-time.ts';
import {
  amountOf,
  type BudgetPolicy,
  checkListed,
  checkRange,
  costOf,
  emptyBehaviour,
  type FloorPolicy,
  floorAmount,
  MAX_COST,
  PASSING_UNITS,
  type RetryBudget,
} from './retry-budget.ts';
import { SteadyClock } from './steady-clock.ts';
import type { DepositSource, EmptyBehaviour, RetryBudgetUnit } from './terms.ts';
import { WindowBucket } from './window-bucket.ts';

export type FixedQuotaOptions = BudgetPolicy &
  FloorPolicy & {
    /** The stock at the start and at the most; at least the cost of an attempt. */
    readonly capacity: number;
    /** Cost of a usual repeat; others are given to `tryWithdraw`. */
    readonly attemptCost: number;
    /** What the success of an original brings. */
    readonly successAmount: number;
    readonly unit?: Exclude<RetryBudgetUnit, 'concurrent_attempts'> | undefined;
  };

/**
 * Retry quota of the AWS SDKs (@smithy/util-retry, constants.ts): 500 in stock, a repeat after a transient failure
 * costs 10, after throttling 5, a success at the first attempt brings 1, and a repeat that succeeds brings back what
 * it cost.
 */
export const AWS_QUOTA = { capacity: 500, attemptCost: 10, throttledCost: 5, successAmount: 1 } as const;
/** The same with AWS_NEW_RETRIES_2026 (aws/aws-sdk-js-v3#8037): 14 after a transient failure. */
export const AWS_QUOTA_2026 = { ...AWS_QUOTA, attemptCost: 14 } as const;

/**
 * The model of the AWS SDKs, plus the floor that they do not have: it pays what the stock does not cover. When a
 * repeat has succeeded, its cost is deposited as `refund` and no `success`. A refund goes to the floor first where
 * that has paid within its window.
 */
export class FixedQuotaBudget implements RetryBudget {
  readonly model = 'fixed_quota';
  readonly unit: RetryBudgetUnit;
  readonly feed = 'success';
  readonly onEmpty: EmptyBehaviour;
  readonly policyVersion: string | undefined;
  readonly isDerived: boolean;
  readonly attemptCost: number;
  readonly floor: number;

  readonly #capacity: number;
  readonly #attempt: number;
  readonly #perSuccess: number;
  #stock: number;
  readonly #floor: WindowBucket;
  readonly #clock = new SteadyClock();
  readonly #exhausted = new ExhaustedTime();

  /** Throws RangeError for an option out of its bounds. */
  constructor(options: FixedQuotaOptions) {
    const { capacity, attemptCost, successAmount } = options;
    checkRange('attemptCost', attemptCost, 1e-6, MAX_COST);
    checkRange('capacity', capacity, attemptCost, MAX_COST);
    checkRange('successAmount', successAmount, 1e-6, capacity);
    this.unit = checkListed('unit', options.unit ?? 'weighted_cost', PASSING_UNITS);
    this.onEmpty = emptyBehaviour(options);
    this.policyVersion = options.policyVersion;
    this.isDerived = options.isDerived === true;
    this.attemptCost = attemptCost;
    this.#capacity = amountOf(capacity);
    this.#attempt = amountOf(attemptCost);
    this.#perSuccess = amountOf(successAmount);
    this.#stock = this.#capacity;
    const reserve = floorAmount(options, attemptCost);
    this.floor = costOf(reserve);
    this.#floor = new WindowBucket(reserve, options.floor?.everyMs ?? 1_000);
    this.#watch(0);
  }

  /** `cost` matters for a refund only: every success brings the same. */
  deposit(now: number, source: DepositSource = 'success', cost: number = this.attemptCost): boolean {
    const amount = source === 'success' ? this.#perSuccess : amountOf(cost);
    if (source === 'original' || !(amount > 0)) return false;
    const at = this.#goOn(now);
    const rest = source === 'refund' ? this.#floor.giveBack(amount) : amount;
    this.#stock = Math.min(this.#capacity, this.#stock + rest);
    this.#watch(at);
    return true;
  }

  tryWithdraw(now: number, cost: number = this.attemptCost): boolean {
    const amount = cost === this.attemptCost ? this.#attempt : amountOf(cost);
    if (!(amount > 0)) return false;
    const at = this.#goOn(now);
    const fromStock = Math.min(amount, this.#stock);
    const isGranted = this.#floor.tryWithdraw(amount - fromStock);
    if (isGranted) {
      this.#stock -= fromStock;
      this.#watch(at);
    } else {
      this.#exhausted.refuse(at);
    }
    return isGranted;
  }

  /** Not counted here, nor are `begin` and `end`. */
  fail(): void {}

  begin(): void {}

  end(): void {}

  balance(now: number): number {
    this.#goOn(now);
    return costOf(this.#stock + this.#floor.left);
  }

  capacity(): number {
    return costOf(this.#capacity + this.#floor.reserve);
  }

  exhaustedMs(now: number): number {
    return this.#exhausted.read(this.#goOn(now));
  }

  isLowSuccess(now: number): boolean {
    this.#goOn(now);
    return this.#stock < this.#attempt;
  }

  #goOn(now: number): number {
    const at = this.#clock.read(now);
    while (this.#floor.step(at)) this.#watch(this.#floor.steppedAt);
    return at;
  }

  #watch(at: number): void {
    this.#exhausted.watch(this.#stock + this.#floor.left >= this.#attempt, at);
  }
}
