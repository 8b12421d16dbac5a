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
const RANKS: Readonly<Record<Priority, 0 | 1 | 2>> = { critical: 0, normal: 1, unset: 1, low: 2 };

export class WaitQueue<T extends Waiting> {
  readonly #size: number;
  /** In the order of service. */
  readonly #lines = [new Line<T>(), new Line<T>(), new Line<T>()] as const;
  readonly #places = new Map<T, Place<T>>();

  /** `size` 0 = nobody waits. */
  constructor(size: number) {
    this.#size = size;
  }

  get depth(): number {
    return this.#places.size;
  }

  /**
   * Takes a place. Where none is free, the last of a lower class gives its own up: that one is handed back. False:
   * there is no place.
   */
  push(item: T): T | boolean {
    const rank = RANKS[item.priority];
    let replaced: T | undefined;
    if (this.depth >= this.#size) {
      replaced = this.#lines.findLast((line, of) => of > rank && line.last !== undefined)?.last?.item;
      if (replaced === undefined) return false;
      this.remove(replaced);
    }
    this.#places.set(item, this.#lines[rank].push(item));
    return replaced ?? true;
  }

  /** The next one to serve. */
  shift(): T | undefined {
    const next = this.#lines.find((line) => line.first !== undefined)?.first?.item;
    if (next !== undefined) this.remove(next);
    return next;
  }

  /** False where it is not in here. */
  remove(item: T): boolean {
    const place = this.#places.get(item);
    if (place === undefined) return false;
    this.#lines[RANKS[item.priority]].remove(place);
    return this.#places.delete(item);
  }

  /** Takes out what is due, `now` included. */
  takeDue(now: number): T[] {
    const due: T[] = [];
    for (const line of this.#lines) {
      for (const item of line.items()) if (now >= item.dueAt) due.push(item);
    }
    for (const item of due) this.remove(item);
    return due;
  }

  /** When the next one is due; Infinity where nothing waits for anything. */
  nextDueAt(): number {
    let at = Infinity;
    for (const { dueAt } of this.#places.keys()) at = Math.min(at, dueAt);
    return at;
  }

  /** Arrival of the one of this class that waits longest; undefined where none waits. */
  oldestAt(priority: Priority): number | undefined {
    for (const item of this.#lines[RANKS[priority]].items()) {
      if (item.priority === priority) return item.enteredAt;
    }
    return undefined;
  }
}

interface Place<T> {
  readonly item: T;
  before: Place<T> | undefined;
  after: Place<T> | undefined;
}

/**
 * Those of one rank. Linked, so that coming and going cost the same however many wait: in an array of 100,000 every
 * place that is given up moves all that come after it.
 */
class Line<T> {
  first: Place<T> | undefined;
  last: Place<T> | undefined;

  push(item: T): Place<T> {
    const place: Place<T> = { item, before: this.last, after: undefined };
    if (this.last === undefined) this.first = place;
    else this.last.after = place;
    this.last = place;
    return place;
  }

  remove({ before, after }: Place<T>): void {
    if (before === undefined) this.first = after;
    else before.after = after;
    if (after === undefined) this.last = before;
    else after.before = before;
  }

  *items(): Generator<T> {
    for (let place = this.first; place !== undefined; place = place.after) yield place.item;
  }
}
