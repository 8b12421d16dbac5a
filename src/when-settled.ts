/** Runs `after`, which must not throw, once the work has ended, by return, throw or promise; hands back what the work gave. */
export function whenSettled<T>(work: () => T, after: (failed: boolean) => void): T {
  let result: T;
  try {
    result = work();
  } catch (error) {
    after(true);
    throw error;
  }
  if (!isThenable(result)) {
    after(false);
    return result;
  }
  result.then(
    () => after(false),
    () => after(true),
  );
  return result;
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === 'object' && value !== null && 'then' in value && typeof value.then === 'function';
}
