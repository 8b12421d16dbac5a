/**
 * Runs `after`, which must not throw, once the work has ended, by return, throw or promise; hands back what the work gave.
 * Only a plain promise comes back as another one that settles alike: whoever drops that still brings up Node's
 * `unhandledRejection`, as without us, which our own look at the first one would have silenced.
 */
export function whenSettled<T>(work: () => T, after: (failed: boolean, error?: unknown) => void): T {
  let result: T;
  try {
    result = work();
  } catch (error) {
    after(true, error);
    throw error;
  }
  if (!isThenable(result)) {
    after(false);
    return result;
  }
  if (isPlainPromise(result)) {
    const settled = result.then(
      (value) => {
        after(false);
        return value;
      },
      (error: unknown) => {
        after(true, error);
        throw error;
      },
    );
    return settled as T; // A promise of the same, in place of a promise that has nothing of its own.
  }
  result.then(
    () => after(false),
    (error: unknown) => after(true, error),
  );
  return result;
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}

/** Neither a subclass nor one with methods put on it, as got's. */
function isPlainPromise(value: object): boolean {
  return Object.getPrototypeOf(value) === Promise.prototype && Object.keys(value).length === 0;
}
