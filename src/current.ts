/**
 * The state of the request that the running code belongs to. A store of our own, so that nothing here depends
 * on the SDK, the sampler, the propagators or the order of imports.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Scope } from './records.ts';

const storage = new AsyncLocalStorage<Scope | undefined>();

export function currentScope(): Scope | undefined {
  return storage.getStore();
}

/**
 * Makes `scope` the current one for the rest of this tick and all that follows from it. Entry hooks call it
 * with undefined as well: a kept-alive connection still has the store of the request before.
 */
export function enterScope(scope: Scope | undefined): void {
  storage.enterWith(scope);
}

export function runInScope<T>(scope: Scope | undefined, work: () => T): T {
  return storage.run(scope, work);
}
