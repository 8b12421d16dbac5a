/**
 * What waits for a permit: of the highest class first, in each class in the order of arrival. Bounded in size, and
 * everything in it has an instant after which it is not worth starting.
 */
import type { Priority } from './terms.ts';

export interface Waiting {
  readonly priority: Priority;
  readonly enteredAt: number;
  /** From here on it is not started any more; Infinity for never. */
  readonly dueAt: number;
}

/** What nobody has set ranks with `normal`: a class must be asked for, and by somebody who may. */
const RANKS: Readonly<Record<Priority, number>> = { critical: 0, normal: 1, unset: 1, low: 2 };

export class WaitQueue<T extends Waiting> {
  readonly #size: number;
  /** In the order of service. */
  readonly #items: T[] = [];

  /** `size` 0 = nobody waits. */
  constructor(size: number) {
    this.#size = size;
  }

  get depth(): number {
    return this.#items.length;
  }

  /**
   * Takes a place. Where none is free, the last of a lower class gives its own up: that one is handed back. False:
   * there is no place.
   */
  push(item: T): T | boolean {
    const rank = RANKS[item.priority];
    let replaced: T | undefined;
    if (this.#items.length >= this.#size) {
      const last = this.#items.at(-1);
      if (last === undefined || RANKS[last.priority] <= rank) return false;
      replaced = this.#items.pop();
    }
    let at = this.#items.length;
    while (at > 0 && RANKS[(this.#items[at - 1] ?? item).priority] > rank) at--;
    this.#items.splice(at, 0, item);
    return replaced ?? true;
  }

  /** The next one to serve. */
  shift(): T | undefined {
    return this.#items.shift();
  }

  /** False where it is not in here. */
  remove(item: T): boolean {
    const at = this.#items.indexOf(item);
    if (at >= 0) this.#items.splice(at, 1);
    return at >= 0;
  }

  /** Takes out what is due, `now` included. */
  takeDue(now: number): T[] {
    const due: T[] = [];
    let kept = 0;
    for (const item of this.#items) {
      if (now >= item.dueAt) due.push(item);
      else this.#items[kept++] = item;
    }
    this.#items.length = kept;
    return due;
  }

  /** When the next one is due; Infinity where nothing waits for anything. */
  nextDueAt(): number {
    let at = Infinity;
    for (const { dueAt } of this.#items) at = Math.min(at, dueAt);
    return at;
  }

  /** Arrival of the one of this class that waits longest; undefined where none waits. */
  oldestAt(priority: Priority): number | undefined {
    return this.#items.find((item) => item.priority === priority)?.enteredAt;
  }
}
