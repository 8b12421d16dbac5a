/** Runs work whose calls something is said of, in a scope that is otherwise the same. */
import { currentScope, runInScope } from './current.ts';
import type { Mark, Scope } from './records.ts';
import { releaseSignal } from './scope-signal.ts';
import { whenSettled } from './when-settled.ts';

/** Inside another mark both hold. Outside a request there is nothing to hold it, and the work just runs. */
export function runMarked<T>(mark: Mark, work: () => T): T {
  const outer = currentScope();
  if (outer === undefined) return work();
  const { request, deadlineAt, detached } = outer;
  const scope: Scope = { request, deadlineAt, detached, mark: { ...outer.mark, ...mark } };
  return whenSettled(
    () => runInScope(scope, work),
    () => releaseSignal(scope),
  );
}
