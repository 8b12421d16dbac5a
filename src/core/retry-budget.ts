/** What every retry budget is and does, and the arithmetic that all of them share. */
import {
  type DepositSource,
  EMPTY_BEHAVIOURS,
  type EmptyBehaviour,
  type RetryBudgetFeed,
  type RetryBudgetModel,
  type RetryBudgetUnit,
} from './terms.ts';

/**
 * A shared allowance of extra attempts: a second limit on top of the attempts that one operation may make. Amounts
 * are in the budget's unit. `now` is a monotonic clock in ms; a late reading, a step back and NaN do no harm
 * (see SteadyClock). Nothing here throws after the constructor, and nothing allocates.
 *
 * For each attempt its owner calls: `deposit` when an original is sent, and when an operation succeeded; `begin` and
 * `end` around every attempt; `fail` when it failed in a way that could be repeated (`mayRetry` does that);
 * `tryWithdraw` before a repeat (`mayRetry` too). A budget takes from this what its model counts.
 */
export interface RetryBudget {
  readonly model: RetryBudgetModel;
  readonly unit: RetryBudgetUnit;
  readonly feed: RetryBudgetFeed;
  readonly onEmpty: EmptyBehaviour;
  readonly policyVersion: string | undefined;
  /** Replayed from the outcomes of a library that keeps the real balance: it is shown, and never asked. */
  readonly isDerived: boolean;
  /** What a usual attempt costs. */
  readonly attemptCost: number;
  /** What is there without any original, success or attempt in flight; 0 where there is none. */
  readonly floor: number;

  /**
   * Pays in. `refund`: a withdrawal comes back, because its attempt was not made after all, or because it succeeded
   * where the model says so. `source` is the budget's feed when left out, `cost` the `attemptCost`: it is that of
   * the original or of the withdrawal. False where the budget is fed by something else, nothing is left to come back,
   * or the cost is no number in (0, MAX_COST].
   */
  deposit(now: number, source?: DepositSource, cost?: number): boolean;
  /** Pays for one repeat, in full or not at all. A cost that is no number in (0, MAX_COST] is refused. */
  tryWithdraw(now: number, cost?: number): boolean;
  /** An attempt failed at the dependency, in a way that could be repeated. */
  fail(now: number): void;
  /** An attempt is in flight: it waits for its connection, or is sent. */
  begin(now: number): void;
  /** It is no longer. `paid` is what was withdrawn for it, 0 for an original. */
  end(now: number, paid?: number): void;

  /** Most that could be withdrawn now; 0 and not less. */
  balance(now: number): number;
  /** What the balance would be had nothing been withdrawn. */
  capacity(now: number): number;
  /** How long the budget has been exhausted in all, in ms; ExhaustedTime defines it. Never falls. */
  exhaustedMs(now: number): number;
  /** True in a budget fed by successes while these no longer pay for one attempt, so that only the floor does. */
  isLowSuccess(now: number): boolean;
}

/** What does not change the arithmetic but belongs to the definition of a budget. */
export interface BudgetPolicy {
  /** `original_error` by default. */
  readonly onEmpty?: EmptyBehaviour | undefined;
  readonly policyVersion?: string | undefined;
}

/**
 * What a budget fed by successes still grants when there are none: at most `attempts` of the usual cost in every
 * `everyMs`. Without it such a budget would stay empty until something succeeded that nobody may try again.
 */
export interface LowSuccessFloor {
  readonly attempts: number;
  /** 1,000 to 60,000. */
  readonly everyMs: number;
}

/** A floor is declared, or the balance is another library's that has none. */
export type FloorPolicy =
  | { readonly floor: LowSuccessFloor; readonly isDerived?: false | undefined }
  | { readonly isDerived: true; readonly floor?: undefined };

/** Shortest and longest life of a deposit; Finagle's bounds, which tower and Linkerd took over. */
export const WINDOW_BOUNDS_MS: readonly [number, number] = [1_000, 60_000];
/** Most that a cost or a capacity may be, so that sums stay exact. */
export const MAX_COST = 1e6;

/** Amounts are whole millionths of the unit: a ratio of 0.1 has no exact double, and a hundred thousand has. */
const MILLIONTHS = 1e6;

/** A cost as an amount, rounded up; NaN unless it is a number in (0, MAX_COST]. */
export function amountOf(cost: number): number {
  if (!(cost > 0 && cost <= MAX_COST)) return Number.NaN;
  const nearest = Math.round(cost * MILLIONTHS);
  return nearest / MILLIONTHS < cost ? nearest + 1 : nearest;
}

/** A share in millionths, rounded down: a third of the originals is never a little more than a third. */
export function shareOf(ratio: number): number {
  const nearest = Math.round(ratio * MILLIONTHS);
  return nearest / MILLIONTHS > ratio ? nearest - 1 : nearest;
}

/** A share (of shareOf) of a cost as an amount, rounded down; NaN unless the cost is a number in (0, MAX_COST]. */
export function partOf(share: number, cost: number): number {
  if (!(cost > 0 && cost <= MAX_COST)) return Number.NaN;
  // In two parts, of which neither leaves the whole numbers that doubles hold.
  const amount = shareOf(cost);
  const rest = amount % MILLIONTHS;
  return share * ((amount - rest) / MILLIONTHS) + Math.floor((share * rest) / MILLIONTHS);
}

/** An amount in the unit again; what is owed shows as 0. */
export function costOf(amount: number): number {
  return Math.max(0, amount) / MILLIONTHS;
}

/** Throws RangeError that names the option, the bounds and the value. */
export function checkRange(option: string, value: number, least: number, most: number): void {
  if (typeof value === 'number' && value >= least && value <= most) return;
  throw new RangeError(`${option} must be in ${least}..${most}, got ${String(value)}`);
}

/** As checkRange, and refuses what is not a whole number. */
export function checkWhole(option: string, value: number, least: number, most: number): void {
  checkRange(option, value, least, most);
  if (!Number.isInteger(value)) throw new RangeError(`${option} must be a whole number, got ${value}`);
}

/** Throws RangeError that names the option, the list and the value. */
export function checkListed<T extends string>(option: string, value: T, list: readonly T[]): T {
  if (list.includes(value)) return value;
  throw new RangeError(`${option} must be one of ${list.join(', ')}, got ${String(value)}`);
}

/** The behaviour on empty of a policy, the default where it names none. Throws RangeError. */
export function emptyBehaviour(policy: BudgetPolicy): EmptyBehaviour {
  return checkListed('onEmpty', policy.onEmpty ?? 'original_error', EMPTY_BEHAVIOURS);
}

/** Units of the models that count what passes, not what is there at the same time. */
export const PASSING_UNITS: readonly Exclude<RetryBudgetUnit, 'concurrent_attempts'>[] = [
  'requests',
  'time',
  'weighted_cost',
];

/** The amount of a floor in every window of it; 0 for a derived balance. Throws RangeError. */
export function floorAmount(policy: FloorPolicy, attemptCost: number): number {
  if (policy.isDerived === true) return 0;
  // A caller in plain JavaScript can leave it out, and would get a budget that locks itself out.
  const floor: LowSuccessFloor | null | undefined = policy.floor;
  if (floor === undefined || floor === null) {
    throw new RangeError(`floor must be declared where successes feed the budget, got ${String(floor)}`);
  }
  checkWhole('floor.attempts', floor.attempts, 1, 1_000);
  checkRange('floor.everyMs', floor.everyMs, ...WINDOW_BOUNDS_MS);
  return floor.attempts * amountOf(attemptCost);
}
