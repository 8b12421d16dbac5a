/** A bucket whose deposits and withdrawals are forgotten when a window of time has passed over them. */

/** Share of the window that a deposit may fall short of its life: 5 %. */
export const SLOTS = 20;
/** Sums stay whole numbers below 2^53, where doubles are exact. */
const FULL = 2 ** 52;

/**
 * What is left is reserve + deposits - withdrawals of the window, in whole amounts. In every stretch of SLOTS
 * slots no more is withdrawn than the reserve and what was deposited in that stretch. Deposits and withdrawals are
 * forgotten together, when the SLOTS-th slot after theirs begins: less than one slot before their window is over.
 * A withdrawal may outlive the deposit it was paid from; what is left is then negative until it is forgotten too.
 */
export class WindowBucket {
  readonly reserve: number;
  readonly #windowMs: number;
  readonly #deposits = new Float64Array(SLOTS);
  readonly #withdrawals = new Float64Array(SLOTS);
  #head = 0;
  /** Number of slots before the present one; ends are reckoned from it, because adding up would drift. */
  #passed = 0;
  #headEndsAt: number;
  #deposited = 0;
  #withdrawn = 0;
  #steppedAt = 0;

  constructor(reserve: number, windowMs: number) {
    this.reserve = reserve;
    this.#windowMs = windowMs;
    this.#headEndsAt = windowMs / SLOTS;
  }

  get left(): number {
    return this.reserve + this.#deposited - this.#withdrawn;
  }

  get deposited(): number {
    return this.#deposited;
  }

  /** The instant of the last `step` that was taken. */
  get steppedAt(): number {
    return this.#steppedAt;
  }

  /**
   * Goes one slot on if the present one has ended at `at` and something is left that can be forgotten. Called until
   * it says false, SLOTS times at the most: after an idle night it does not walk through the night.
   */
  step(at: number): boolean {
    if (at < this.#headEndsAt) return false;
    if (this.#deposited === 0 && this.#withdrawn === 0) {
      this.#goTo(Math.floor((at * SLOTS) / this.#windowMs));
      return false;
    }
    const head = this.#head + 1 === SLOTS ? 0 : this.#head + 1;
    this.#deposited -= this.#deposits[head] ?? 0;
    this.#withdrawn -= this.#withdrawals[head] ?? 0;
    this.#deposits[head] = 0;
    this.#withdrawals[head] = 0;
    this.#head = head;
    this.#steppedAt = this.#headEndsAt;
    this.#goTo(this.#passed + 1);
    return true;
  }

  deposit(amount: number): void {
    const taken = Math.min(amount, FULL - this.#deposited);
    this.#deposits[this.#head] = (this.#deposits[this.#head] ?? 0) + taken;
    this.#deposited += taken;
  }

  /** Withdraws all of it or nothing. */
  tryWithdraw(amount: number): boolean {
    if (!(amount <= this.left)) return false;
    this.#withdrawals[this.#head] = (this.#withdrawals[this.#head] ?? 0) + amount;
    this.#withdrawn += amount;
    return true;
  }

  /** Undoes withdrawals, the newest first. Returns what it could not undo because it is forgotten already. */
  giveBack(amount: number): number {
    let rest = amount;
    for (let i = 0; i < SLOTS && rest > 0 && this.#withdrawn > 0; i++) {
      const slot = (this.#head - i + SLOTS) % SLOTS;
      const undone = Math.min(rest, this.#withdrawals[slot] ?? 0);
      this.#withdrawals[slot] = (this.#withdrawals[slot] ?? 0) - undone;
      this.#withdrawn -= undone;
      rest -= undone;
    }
    return rest;
  }

  #goTo(slot: number): void {
    this.#passed = slot;
    this.#headEndsAt = ((slot + 1) * this.#windowMs) / SLOTS;
  }
}
