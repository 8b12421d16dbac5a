/** Operations of which nobody knows whether they took effect, until somebody finds out. Bounded in number. */

/** Most that are kept track of at a time: about 2 MB. */
export const MAX_OPEN = 10_000;
/** Longest key, in characters. */
export const MAX_KEY_LENGTH = 256;

export interface OpenUnknown<T> {
  readonly operation: string;
  readonly sinceAt: number;
  /** Whatever leads back to where it became unknown. */
  readonly origin: T;
}

/** What is open of one operation. */
export interface OpenOf {
  readonly count: number;
  readonly oldestAt: number;
}

export class OpenUnknowns<T> {
  /** In the order in which they became unknown. */
  readonly #byKey = new Map<string, OpenUnknown<T>>();

  get size(): number {
    return this.#byKey.size;
  }

  /**
   * `known`: it is open already, and as old as it was. `full`: there is no room for it, or its key is empty or too
   * long; those that are open stay, because the oldest are the ones that matter.
   */
  add(key: string, unknown: OpenUnknown<T>): 'added' | 'known' | 'full' {
    if (this.#byKey.has(key)) return 'known';
    if (key === '' || key.length > MAX_KEY_LENGTH || this.#byKey.size >= MAX_OPEN) return 'full';
    this.#byKey.set(key, unknown);
    return 'added';
  }

  /** Its outcome is known now; undefined where it is not open. */
  take(key: string): OpenUnknown<T> | undefined {
    const unknown = this.#byKey.get(key);
    this.#byKey.delete(key);
    return unknown;
  }

  /** By operation; those without any are left out. */
  open(): Map<string, OpenOf> {
    const open = new Map<string, { count: number; oldestAt: number }>();
    for (const { operation, sinceAt } of this.#byKey.values()) {
      const known = open.get(operation);
      if (known === undefined) open.set(operation, { count: 1, oldestAt: sinceAt });
      else known.count++;
    }
    return open;
  }
}
