/** A share of the attempts in flight may be repeats. */
import { ExhaustedTime } from './exhausted-time.ts';
import {
  amountOf,
  type BudgetPolicy,
  checkRange,
  checkWhole,
  costOf,
  emptyBehaviour,
  MAX_COST,
  type RetryBudget,
  shareOf,
} from './retry-budget.ts';
import { SteadyClock } from './steady-clock.ts';
import type { DepositSource, EmptyBehaviour } from './terms.ts';

export interface InFlightPercentOptions extends BudgetPolicy {
  /** Percent of what is active and pending, 0 to 100; Envoy's default is 20. */
  readonly percent: number;
  /** Repeats that are allowed with nothing in flight, a whole number; Envoy's default is 3. */
  readonly minimum: number;
}

const PLACE = 1;
/** shareOf is in millionths, and a percent is a hundredth. */
const PERCENT_SHARES = 1e8;

/**
 * Envoy's retry_budget of a cluster: at the same time max(minimum, floor(percent x (active + pending))) repeats, of
 * which each takes a place from its withdrawal until it has ended, its backoff included. An attempt that has ended
 * is no longer in flight when its repeat is asked for (envoyproxy/envoy#30205), so that with few in flight 100
 * percent still refuses some. Percent times count is reckoned in whole numbers, so that 29 % of 100 is 29.
 */
export class InFlightPercentBudget implements RetryBudget {
  readonly model = 'in_flight_percent';
  readonly unit = 'concurrent_attempts';
  readonly feed = 'in_flight';
  readonly onEmpty: EmptyBehaviour;
  readonly policyVersion: string | undefined;
  readonly isDerived = false;
  readonly attemptCost = PLACE;
  readonly floor: number;

  readonly #share: number;
  readonly #minimum: number;
  readonly #place = amountOf(PLACE);
  #inFlight = 0;
  #taken = 0;
  readonly #clock = new SteadyClock();
  readonly #exhausted = new ExhaustedTime();

  /** Throws RangeError for an option out of its bounds. */
  constructor(options: InFlightPercentOptions) {
    checkRange('percent', options.percent, 0, 100);
    checkWhole('minimum', options.minimum, 0, MAX_COST);
    this.onEmpty = emptyBehaviour(options);
    this.policyVersion = options.policyVersion;
    this.floor = options.minimum;
    this.#share = shareOf(options.percent);
    this.#minimum = options.minimum * this.#place;
    this.#watch(0);
  }

  /** Only `refund` counts: the repeat was not begun after all. */
  deposit(now: number, source?: DepositSource, cost: number = PLACE): boolean {
    const amount = amountOf(cost);
    if (source !== 'refund' || !(amount > 0) || this.#taken === 0) return false;
    this.#giveBack(amount, this.#clock.read(now));
    return true;
  }

  tryWithdraw(now: number, cost: number = PLACE): boolean {
    const amount = amountOf(cost);
    if (!(amount > 0)) return false;
    const at = this.#clock.read(now);
    if (!(amount <= this.#allowed - this.#taken)) {
      this.#exhausted.refuse(at);
      return false;
    }
    this.#taken += amount;
    this.#watch(at);
    return true;
  }

  /** Not counted here. */
  fail(): void {}

  begin(now: number): void {
    this.#inFlight++;
    this.#watch(this.#clock.read(now));
  }

  end(now: number, paid = 0): void {
    if (this.#inFlight > 0) this.#inFlight--;
    const amount = amountOf(paid);
    this.#giveBack(Number.isNaN(amount) ? 0 : amount, this.#clock.read(now));
  }

  balance(): number {
    return costOf(this.#allowed - this.#taken);
  }

  capacity(): number {
    return costOf(this.#allowed);
  }

  exhaustedMs(now: number): number {
    return this.#exhausted.read(this.#clock.read(now));
  }

  isLowSuccess(): boolean {
    return false;
  }

  get #allowed(): number {
    const shares = this.#share * this.#inFlight;
    return Math.max(this.#minimum, ((shares - (shares % PERCENT_SHARES)) / PERCENT_SHARES) * this.#place);
  }

  #giveBack(amount: number, at: number): void {
    this.#taken = Math.max(0, this.#taken - amount);
    this.#watch(at);
  }

  #watch(at: number): void {
    this.#exhausted.watch(this.#allowed - this.#taken >= this.#place, at);
  }
}
