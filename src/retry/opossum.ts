/** opossum 8 to 10: what its circuit breaker does, by its events and the action that it runs. */
import { currentScope } from '../current.ts';
import { complainOnce, isObject } from './adapter.ts';
import { WatchedBreaker } from './breaker.ts';

interface Breaker {
  readonly opened: boolean;
  readonly halfOpen: boolean;
  on(event: string, listener: () => void): unknown;
}

const watched = new WeakSet<object>();

/**
 * `const breaker = watchOpossumBreaker('stock', new CircuitBreaker(action, options))`; gives back the breaker, which
 * does what it did. Told is the same as of `watchCockatielBreaker`. Its fallback: `watchFallback`.
 */
export function watchOpossumBreaker<B extends Breaker>(dependency: string, breaker: B): B {
  const action: unknown = isObject(breaker) ? Reflect.get(breaker, 'action') : undefined;
  if (typeof action !== 'function' || typeof breaker.on !== 'function') {
    complainOnce('opossum', 'its circuit breaker has no action and no events', 'it is not seen');
    return breaker;
  }
  if (watched.has(breaker)) return breaker;
  watched.add(breaker);
  const state = breaker.opened ? 'open' : breaker.halfOpen ? 'half_open' : 'closed';
  const watch = new WatchedBreaker(dependency, state);
  breaker.on('open', () => watch.changed('open'));
  breaker.on('halfOpen', () => watch.changed('half_open'));
  breaker.on('close', () => watch.changed('closed'));
  breaker.on('reject', () => watch.blocked(currentScope()));
  breaker.on('shutdown', () => watch.gone());
  // Its event `fire` comes before the cache and the state have decided whether the action runs.
  Reflect.set(breaker, 'action', function (this: unknown, ...args: unknown[]): unknown {
    return watch.run(() => action.apply(this, args));
  });
  return breaker;
}
