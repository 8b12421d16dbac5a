import { types } from 'node:util';

/**
 * Runs `after`, which must not throw, once the work has ended, by return, throw or promise; hands back what the work gave.
 * Only a plain promise comes back as another one that settles alike: whoever drops that still brings up Node's
 * `unhandledRejection`, as without us, which our own look at the first one would have silenced. What is no promise may
 * begin its work with each `then`, as queries of knex and drizzle do: there the caller's own `then` is looked at.
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
  if (types.isPromise(result)) {
    result.then(
      () => after(false),
      (error: unknown) => after(true, error),
    );
  } else if (!watchThen(result, after)) {
    after(false);
  }
  return result;
}

/** Looks at the first `then` that somebody calls, and is gone after it. False where nothing can be put on the object. */
function watchThen(
  thenable: PromiseLike<unknown>,
  after: (failed: boolean, error?: unknown) => void,
): boolean {
  let isTold = false;
  let own: PropertyDescriptor | undefined;
  const tell = (failed: boolean, error?: unknown) => {
    if (isTold) return;
    isTold = true;
    after(failed, error);
  };
  const takeBack = () => {
    if (own === undefined) Reflect.deleteProperty(thenable, THEN);
    else Reflect.defineProperty(thenable, THEN, own);
  };
  // Read once: where it cannot be taken back, ours would call itself.
  const watch = (then: PromiseLike<unknown>['then']): PropertyDescriptor => ({
    configurable: true,
    writable: true,
    enumerable: false,
    value(this: unknown, onFulfilled: unknown, onRejected: unknown, ...rest: unknown[]): unknown {
      takeBack();
      try {
        return Reflect.apply(then, this, [
          (value: unknown) => {
            tell(false);
            return typeof onFulfilled === 'function' ? onFulfilled(value) : value;
          },
          (error: unknown) => {
            tell(true, error);
            if (typeof onRejected === 'function') return onRejected(error);
            throw error;
          },
          ...rest,
        ]);
      } catch (error) {
        tell(true, error);
        throw error;
      }
    },
  });
  try {
    own = Reflect.getOwnPropertyDescriptor(thenable, THEN);
    return Reflect.defineProperty(thenable, THEN, watch(thenable.then));
  } catch {
    return false; // A proxy may refuse.
  }
}

const THEN = 'then';

/** What has a `then` that cannot be read is none: an `await` of it fails, and is the caller's. */
export function isThenable(value: unknown): value is PromiseLike<unknown> {
  if (typeof value !== 'object' || value === null) return false;
  try {
    return THEN in value && typeof value.then === 'function';
  } catch {
    return false;
  }
}

/** Neither a subclass nor one with methods put on it, as got's. */
function isPlainPromise(value: object): boolean {
  return Object.getPrototypeOf(value) === Promise.prototype && Object.keys(value).length === 0;
}
