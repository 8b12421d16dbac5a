/** A retry budget that counts: what is paid in and out of it becomes metrics, whoever does it. */
import { createRetryBudget, type RetryBudgetOptions } from './core/create-retry-budget.ts';
import type { RetryBudget } from './core/retry-budget.ts';
import {
  type BalanceSource,
  type DepositSource,
  EMPTY_BEHAVIOURS,
  type EmptyBehaviour,
} from './core/terms.ts';
import type { Families, NumberCell } from './telemetry/metrics.ts';

interface Cells {
  readonly balance: NumberCell;
  readonly capacity: NumberCell;
  readonly lowSuccess: NumberCell;
  readonly exhausted: NumberCell;
  readonly granted: NumberCell;
  readonly refused: NumberCell;
  readonly deposits: Readonly<Record<DepositSource, NumberCell>>;
  readonly owed: NumberCell;
  readonly dispositions: Readonly<Record<EmptyBehaviour, NumberCell>>;
}

export class LiveRetryBudget implements RetryBudget {
  readonly name: string;
  readonly dependencies: readonly string[];
  #budget: RetryBudget;
  readonly #readBalance: (() => number) | undefined;
  #cells: Cells | undefined;

  /**
   * `readBalance` where a library keeps the balance and says it. Throws RangeError for an option out of its bounds.
   */
  constructor(
    name: string,
    dependencies: readonly string[],
    options: RetryBudgetOptions,
    readBalance?: () => number,
  ) {
    this.name = name;
    this.dependencies = dependencies;
    this.#budget = createRetryBudget(options);
    this.#readBalance = readBalance;
  }

  /** Whoever holds this one has the other, which counts, from now on. */
  standInFor(other: RetryBudget): void {
    this.#budget = other;
  }

  /** Makes every series of this budget at 0. `label` is its name, folded. */
  connect(families: Families, label: string): void {
    const deposit = (source: DepositSource) => families.retryDeposits.cell(label, source);
    const dispose = (behaviour: EmptyBehaviour) => families.retryDispositions.cell(label, behaviour);
    this.#cells = {
      balance: families.retryBalance.cell(label),
      capacity: families.retryCapacity.cell(label),
      lowSuccess: families.retryLowSuccess.cell(label),
      exhausted: families.retryExhausted.cell(label),
      granted: families.retryWithdrawals.cell(label, 'granted'),
      refused: families.retryWithdrawals.cell(label, 'refused'),
      owed: families.retryOwed.cell(label),
      dispositions: {
        original_error: dispose(EMPTY_BEHAVIOURS[0]),
        managed_background: dispose(EMPTY_BEHAVIOURS[1]),
        degrade: dispose(EMPTY_BEHAVIOURS[2]),
      },
      deposits: { original: deposit('original'), success: deposit('success'), refund: deposit('refund') },
    };
    families.retryFloor.cell(label).value = this.floor;
    const source: BalanceSource =
      this.#readBalance !== undefined ? 'read' : this.isDerived ? 'derived' : 'own';
    families.retryBalanceInfo.cell(label, source).value = 1;
    families.retryBudgetInfo.cell(label, this.unit, this.feed, this.onEmpty).value = 1;
  }

  /** Brings up to date what changes with time. */
  refresh(now: number): void {
    const cells = this.#cells;
    if (cells === undefined) return;
    cells.balance.value = this.balance(now);
    cells.capacity.value = this.capacity(now);
    cells.lowSuccess.value = this.isLowSuccess(now) ? 1 : 0;
    cells.exhausted.value = this.exhaustedMs(now) / 1_000;
  }

  get model() {
    return this.#budget.model;
  }
  get unit() {
    return this.#budget.unit;
  }
  get feed() {
    return this.#budget.feed;
  }
  get onEmpty() {
    return this.#budget.onEmpty;
  }
  get policyVersion() {
    return this.#budget.policyVersion;
  }
  get isDerived() {
    return this.#budget.isDerived;
  }
  get attemptCost() {
    return this.#budget.attemptCost;
  }
  get floor() {
    return this.#budget.floor;
  }

  deposit(now: number, source?: DepositSource, cost?: number): boolean {
    if (!this.#budget.deposit(now, source, cost)) return false;
    const from = source ?? this.#budget.feed;
    if (from !== 'in_flight') this.#cells?.deposits[from].add(1);
    return true;
  }

  tryWithdraw(now: number, cost?: number): boolean {
    const isGranted = this.#budget.tryWithdraw(now, cost);
    this.#cells?.[isGranted ? 'granted' : 'refused'].add(1);
    return isGranted;
  }

  /** A repeat was refused because it is empty, and this becomes of its operation. */
  dispose(behaviour: EmptyBehaviour): void {
    this.#cells?.dispositions[behaviour].add(1);
  }

  /** So many more repeats are owed by the background of the service; negative when they are settled. */
  owe(count: number): void {
    this.#cells?.owed.add(count);
  }

  fail(now: number): void {
    this.#budget.fail(now);
  }

  begin(now: number): void {
    this.#budget.begin(now);
  }

  end(now: number, paid?: number): void {
    this.#budget.end(now, paid);
  }

  balance(now: number): number {
    return this.#readBalance?.() ?? this.#budget.balance(now);
  }

  capacity(now: number): number {
    return this.#budget.capacity(now);
  }

  exhaustedMs(now: number): number {
    return this.#budget.exhaustedMs(now);
  }

  isLowSuccess(now: number): boolean {
    return this.#budget.isLowSuccess(now);
  }
}
