/** cockatiel 3 and 4: what its circuit breaker does. Blocked attempts and probes have no event, so `execute` is followed. */
import type { BreakerState } from '../core/terms.ts';
import { currentScope } from '../current.ts';
import { complainOnce, isObject } from './adapter.ts';
import { WatchedBreaker } from './breaker.ts';
import { isStoppedByBreaker } from './failure.ts';

interface Breaker {
  readonly state: number;
  onStateChange(listener: (state: number) => void): unknown;
}

/** By cockatiel's CircuitState. One that is isolated by hand lets nothing through either. */
const STATES: readonly BreakerState[] = ['closed', 'open', 'half_open', 'open'];

const watched = new WeakSet<object>();
/** Attempts on their way: those that waited for a probe are given to `execute` again, by the breaker itself. */
const underWay = new WeakSet<object>();

/**
 * `const breaker = watchCockatielBreaker('stock', circuitBreaker(handleAll, options))`; gives back the breaker, which
 * does what it did. Its state, its changes, what it blocks and its probes are told as `time_budget.breaker.*`, and a
 * repeat that it blocks costs no token of a retry budget. For breakers that live as long as the process.
 */
export function watchCockatielBreaker<B extends Breaker>(dependency: string, breaker: B): B {
  const inner: unknown = isObject(breaker) ? Reflect.get(breaker, 'execute') : undefined;
  const state = typeof inner === 'function' ? STATES[breaker.state] : undefined;
  if (typeof inner !== 'function' || state === undefined || typeof breaker.onStateChange !== 'function') {
    complainOnce(
      'cockatiel',
      'its circuit breaker has no execute, state and onStateChange',
      'it is not seen',
    );
    return breaker;
  }
  if (watched.has(breaker)) return breaker;
  watched.add(breaker);
  const watch = new WatchedBreaker(dependency, state);
  breaker.onStateChange((next) => watch.changed(STATES[next] ?? 'open'));

  const execute = (work: unknown, ...rest: unknown[]): unknown => {
    if (typeof work !== 'function' || underWay.has(work)) return inner.call(breaker, work, ...rest);
    const scope = currentScope();
    let isLetThrough = false;
    const attempt = (...args: unknown[]): unknown => {
      isLetThrough = true;
      return watch.run(() => work(...args));
    };
    underWay.add(attempt);
    const result: unknown = inner.call(breaker, attempt, ...rest);
    // Before the caller's own reaction, which may ask for the next repeat. A breaker inside the work has its own.
    if (result instanceof Promise) {
      result.then(undefined, (error: unknown) => {
        if (!isLetThrough && isStoppedByBreaker(error)) watch.blocked(scope);
      });
    }
    return result;
  };
  Reflect.set(breaker, 'execute', execute);
  return breaker;
}
