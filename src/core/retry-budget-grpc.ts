/** Repeats stop while failures outweigh successes. */
import { ExhaustedTime } from './exhausted-time.ts';
import {
  amountOf,
  type BudgetPolicy,
  checkRange,
  costOf,
  emptyBehaviour,
  type FloorPolicy,
  floorAmount,
  type RetryBudget,
} from './retry-budget.ts';
import { SteadyClock } from './steady-clock.ts';
import type { DepositSource, EmptyBehaviour } from './terms.ts';
import { WindowBucket } from './window-bucket.ts';

export type GrpcThrottlingOptions = BudgetPolicy &
  FloorPolicy & {
    /** Tokens at the start and at the most, 0.001 to 1,000. */
    readonly maxTokens: number;
    /** Tokens that a success brings, 0.001 to 1; up to 1,000 in a derived balance, as gRPC has it. */
    readonly tokenRatio: number;
  };

const ATTEMPT_COST = 1;

/**
 * gRPC's retryThrottling (gRFC A6): a failure that could be repeated takes a token, a success brings `tokenRatio`,
 * and repeats are made only with more than half of `maxTokens`. Three decimals count, as in gRPC. A repeat itself
 * takes nothing, so this limits nothing unless `fail` is called before `tryWithdraw`; `mayRetry` does. gRPC knows no
 * floor, and without a success it never repeats again: here one is declared, save for a derived balance.
 * The balance is what is above half, and what is left of the floor.
 */
export class GrpcThrottlingBudget implements RetryBudget {
  readonly model = 'grpc_throttling';
  readonly unit = 'requests';
  readonly feed = 'success';
  readonly onEmpty: EmptyBehaviour;
  readonly policyVersion: string | undefined;
  readonly isDerived: boolean;
  readonly attemptCost = ATTEMPT_COST;
  readonly floor: number;

  readonly #max: number;
  readonly #perSuccess: number;
  readonly #one = amountOf(ATTEMPT_COST);
  #tokens: number;
  readonly #floor: WindowBucket;
  readonly #clock = new SteadyClock();
  readonly #exhausted = new ExhaustedTime();

  /** Throws RangeError for an option out of its bounds. */
  constructor(options: GrpcThrottlingOptions) {
    const { maxTokens, tokenRatio } = options;
    this.isDerived = options.isDerived === true;
    checkRange('maxTokens', maxTokens, 0.001, 1_000);
    checkRange('tokenRatio', tokenRatio, 0.001, this.isDerived ? 1_000 : 1);
    this.onEmpty = emptyBehaviour(options);
    this.policyVersion = options.policyVersion;
    this.#max = amountOf(Number(maxTokens.toFixed(3)));
    this.#perSuccess = amountOf(Number(tokenRatio.toFixed(3)));
    this.#tokens = this.#max;
    const reserve = floorAmount(options, ATTEMPT_COST);
    this.floor = costOf(reserve);
    this.#floor = new WindowBucket(reserve, options.floor?.everyMs ?? 1_000);
    this.#watch(0);
  }

  deposit(now: number, source: DepositSource = 'success'): boolean {
    if (source === 'original') return false;
    const at = this.#goOn(now);
    // Only the floor has anything to give back: with tokens above half a repeat costs none.
    const isKept = source === 'success' || this.#floor.giveBack(this.#one) < this.#one;
    if (source === 'success') this.#tokens = Math.min(this.#max, this.#tokens + this.#perSuccess);
    this.#watch(at);
    return isKept;
  }

  tryWithdraw(now: number, cost: number = ATTEMPT_COST): boolean {
    if (!(amountOf(cost) > 0)) return false;
    const at = this.#goOn(now);
    const isGranted = this.#aboveHalf > 0 || this.#floor.tryWithdraw(this.#one);
    if (isGranted) this.#watch(at);
    else this.#exhausted.refuse(at);
    return isGranted;
  }

  fail(now: number): void {
    const at = this.#goOn(now);
    this.#tokens = Math.max(0, this.#tokens - this.#one);
    this.#watch(at);
  }

  /** Not counted here, nor is `end`. */
  begin(): void {}

  end(): void {}

  balance(now: number): number {
    this.#goOn(now);
    return costOf(Math.max(0, this.#aboveHalf) + this.#floor.left);
  }

  capacity(): number {
    return costOf(this.#max / 2 + this.#floor.reserve);
  }

  exhaustedMs(now: number): number {
    return this.#exhausted.read(this.#goOn(now));
  }

  isLowSuccess(now: number): boolean {
    this.#goOn(now);
    return this.#aboveHalf <= 0;
  }

  get #aboveHalf(): number {
    return this.#tokens - this.#max / 2;
  }

  #goOn(now: number): number {
    const at = this.#clock.read(now);
    while (this.#floor.step(at)) this.#watch(this.#floor.steppedAt);
    return at;
  }

  #watch(at: number): void {
    this.#exhausted.watch(this.#aboveHalf > 0 || this.#floor.left >= this.#one, at);
  }
}
