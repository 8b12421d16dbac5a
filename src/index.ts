/**
 * The public API, for services that want more than the flag gives. Every function is safe to call anywhere:
 * outside a request, and where the package was not started, there is no budget and nothing is recorded.
 */
import { diag } from '@opentelemetry/api';
import { activeRecorder } from './active.ts';
import {
  ATTEMPT_OWNERS,
  type AttemptOwner,
  type CancelSource,
  DUPLICATE_ABILITIES,
  type DuplicateAbility,
  NO_OPERATION,
  PRIORITIES,
  type Priority,
  SHED_REASONS,
  type ShedReason,
  type Verdict,
  WORKLOADS,
  type Workload,
} from './core/terms.ts';
import { currentScope, runInScope } from './current.ts';
import { RequestRecord, type Scope } from './records.ts';
import { releaseSignal, signalOf } from './scope-signal.ts';
import { EVENT } from './telemetry/names.ts';
import { textOf } from './text-of.ts';
import { whenSettled } from './when-settled.ts';

export {
  CANCEL_SOURCES,
  type CancelSource,
  DUPLICATE_ABILITIES,
  type DuplicateAbility,
  EXPIRY_CAUSES,
  type ExpiryCause,
  OUTCOMES,
  type Outcome,
  PHASES,
  type Phase,
  PRIORITIES,
  type Priority,
  SHED_REASONS,
  type ShedReason,
  VERDICTS,
  type Verdict,
  WORKLOADS,
  type Workload,
} from './core/terms.ts';
export { BudgetError } from './records.ts';

/** What is known of the budget that the running code works under. */
export interface CurrentBudget {
  /** Milliseconds left, negative when over; undefined where the request has no limit. */
  readonly remainingMs: number | undefined;
  /** As the caller sent it. */
  readonly receivedMs: number | undefined;
  /** After the entry policy. */
  readonly effectiveMs: number | undefined;
  readonly verdict: Verdict;
  readonly caller: string;
  readonly priority: Priority;
  readonly operation: string | undefined;
  /** Who ended the request early, if somebody has. */
  readonly cancelSource: CancelSource | undefined;
}

function now(): number {
  return performance.now();
}

/** The budget of the request that this code belongs to; undefined outside a request. */
export function current(): CurrentBudget | undefined {
  const scope = currentScope();
  if (scope === undefined) return undefined;
  const { receivedMs, effectiveMs, verdict, caller, priority, operation, cancelSource } = scope.request;
  return {
    remainingMs: left(scope),
    receivedMs,
    effectiveMs,
    verdict,
    caller,
    priority,
    operation,
    cancelSource,
  };
}

/** Milliseconds left, negative when over; undefined without a limit. Read it late: it ages. */
export function remainingMs(): number | undefined {
  const scope = currentScope();
  return scope === undefined ? undefined : left(scope);
}

function left(scope: Scope): number | undefined {
  return scope.deadlineAt === Infinity ? undefined : scope.deadlineAt - now();
}

/**
 * Fires when the time is up or the request is cancelled; its reason is a BudgetError that says which. It is
 * made on the first call and the same afterwards. undefined outside a request.
 */
export function signal(): AbortSignal | undefined {
  const scope = currentScope();
  return scope === undefined ? undefined : signalOf(scope, now);
}

export interface WorkOptions {
  /** Name of the work in metrics, where it is not part of a request. From a short, fixed list. */
  readonly operation?: string;
  /** What kind of load it is, where it is not part of a request. `live` when left out. */
  readonly workload?: Workload;
}

/**
 * Runs work under at most `ms` milliseconds, never more than what is left already. Outside a request it is a
 * request of its own (a job, a message), recorded with its outcome. Throws RangeError for a negative or
 * missing number, before the work starts: a budget that nobody can name is the caller's error. Options that are none
 * say nothing.
 */
export function withBudget<T>(ms: number, work: () => T, options: WorkOptions = {}): T {
  if (typeof ms !== 'number' || !(ms >= 0))
    throw new RangeError(`withBudget: ms must be a number >= 0, got ${textOf(ms)}`);
  const outer = currentScope();
  if (outer === undefined) return runRoot(ms, work, options ?? {});
  const scope: Scope = {
    request: outer.request,
    deadlineAt: Math.min(outer.deadlineAt, now() + ms),
    detached: outer.detached,
    mark: outer.mark,
  };
  return whenSettled(
    () => runInScope(scope, work),
    () => releaseSignal(scope),
  );
}

function runRoot<T>(ms: number, work: () => T, options: WorkOptions): T {
  const recorder = activeRecorder();
  const startedAt = now();
  const request = new RequestRecord({
    arrivedAt: startedAt,
    startedAt,
    idleMs: recorder?.clock.idleMs(startedAt) ?? 0,
    receivedMs: ms === Infinity ? undefined : ms,
    effectiveMs: ms === Infinity ? undefined : ms,
    source: 'api',
    verdict: 'accepted',
    caller: 'unknown',
    priority: 'unset',
    fromInstrumented: false,
  });
  request.handling(startedAt);
  if (options.operation !== undefined)
    request.operation = recorder?.series.operations.fold(options.operation);
  if (options.workload !== undefined && isListed('workload', options.workload, WORKLOADS))
    request.workload = options.workload;
  return whenSettled(
    () => runInScope(request, work),
    (failed) => {
      recorder?.finish(request, { completed: true, status: failed ? 500 : undefined }, now());
      releaseSignal(request);
    },
  );
}

/**
 * Runs work that is meant to outlive the request: no deadline, no signal of the request, and its time is
 * counted as detached, not as work for nobody.
 */
export function detach<T>(work: () => T): T {
  const scope = currentScope();
  if (scope === undefined) return work();
  return runInScope({ request: scope.request, deadlineAt: Infinity, detached: true, mark: scope.mark }, work);
}

/**
 * For loops that cannot take a signal: true when the work has become useless, because the request was
 * cancelled or its time is up. The look and its delay after the signal are noted on the request's span.
 */
export function checkpoint(): boolean {
  const scope = currentScope();
  if (scope === undefined || scope.detached) return false;
  const at = now();
  const uselessAt = Math.min(scope.request.uselessAt(), scope.deadlineAt);
  if (at < uselessAt) return false;
  scope.request.span?.addEvent(EVENT.checkpoint, { 'time_budget.lag_ms': Math.round(at - uselessAt) });
  return true;
}

/**
 * Names the caller, for entries that know it from authentication. From a short list; the excess is `other`. What is no
 * text is ignored.
 */
export function setCaller(name: string): void {
  const request = currentScope()?.request;
  if (request === undefined || typeof name !== 'string') return;
  request.caller = activeRecorder()?.series.callers.fold(name) ?? name;
}

/** Sets the priority of the request, once the service knows that it may. An unknown word is ignored. */
export function setPriority(priority: Priority): void {
  if (!isListed('priority', priority, PRIORITIES)) return;
  const request = currentScope()?.request;
  if (request !== undefined) request.priority = priority;
}

/**
 * Says that the request is refused for lack of room, by a limiter of the service's own: its outcome is `shed`, whatever
 * it is answered, and it is not counted as admitted. The answer is the service's. An unknown reason is ignored.
 */
export function shed(reason: ShedReason): void {
  if (!isListed('reason', reason, SHED_REASONS)) return;
  const request = currentScope()?.request;
  if (request !== undefined && request.endedAt === undefined) request.disposition = { kind: 'shed', reason };
}

/**
 * Says what kind of load the request is, before its first call; later it holds for its end and its further calls
 * only. An unknown word is ignored.
 */
export function setWorkload(workload: Workload): void {
  if (!isListed('workload', workload, WORKLOADS)) return;
  const request = currentScope()?.request;
  if (request !== undefined) request.workload = workload;
}

/**
 * Says that the request is a repeat, whose sender cannot say it: `user` for a retry button, for instance. Its calls
 * tell their peers. `attempt` is its ordinal, 1 = original; 2 when left out. Before the first call of the request.
 */
export function setRepeated(owner: Exclude<AttemptOwner, 'none' | 'unknown'>, attempt = 2): void {
  const owners: readonly AttemptOwner[] = ATTEMPT_OWNERS;
  if (!isListed('owner', owner, owners.slice(owners.indexOf('unknown') + 1))) return;
  if (typeof attempt !== 'number' || !(attempt >= 2)) return;
  const request = currentScope()?.request;
  if (request !== undefined) activeRecorder()?.workloads.repeat(request, owner, attempt);
}

/**
 * The service has had this request or message before. `recognised`: it knows so; `prevented`: there was no second
 * effect; `returned`: the sender got what the first one led to. Name all that hold, once per request. These are three
 * abilities, and a service that has the first may lack the others.
 */
export function recordDuplicate(...abilities: readonly DuplicateAbility[]): void {
  const operation = currentScope()?.request.operation ?? NO_OPERATION;
  for (const ability of abilities) {
    if (!isListed('ability', ability, DUPLICATE_ABILITIES)) continue;
    activeRecorder()?.families.duplicates.cell(operation, ability).add(1);
  }
}

function isListed<T extends string>(what: string, value: T, list: readonly T[]): boolean {
  if (list.includes(value)) return true;
  diag.warn(`otel-time-budget: ${what} must be one of ${list.join(', ')}, got ${textOf(value)}`);
  return false;
}
