/**
 * The retry budgets of this process, fed by the calls that are seen anyway, and the repeats that were let through
 * and have not been made yet. Which budget a call belongs to is asked by the name of its dependency, not by its label,
 * which may be folded.
 */
import type { CallEnding } from './call-recorder.ts';
import { isErrorStatus } from './core/attempt-failure.ts';
import { Call, type CallTarget, type NamedTarget } from './core/call.ts';
import { MAX_COST } from './core/retry-budget.ts';
import { NO_DEPENDENCY, REFUSAL_REASONS } from './core/terms.ts';
import { awaitedOf, takeEarly } from './early-budgets.ts';
import { LiveRetryBudget } from './live-retry-budget.ts';
import type { PendingRepeat, RepeatFacts } from './pending-repeat.ts';
import type { Recorder } from './recorder.ts';
import type { CallRecord, RequestRecord, Scope } from './records.ts';

/** Repeats of work outside a request that are waited for; the oldest is taken for given up. */
const MAX_OUTSIDE = 1_000;
/** Longest delay of a repeat behind its backoff; later it is taken for given up. Only outside a request. */
const GIVEN_UP_MS = 60_000;

export class RetryRecorder {
  readonly #recorder: Recorder;
  readonly #byName = new Map<string, LiveRetryBudget>();
  readonly #byDependency = new Map<string, LiveRetryBudget>();
  readonly #outside: PendingRepeat[] = [];
  readonly #prepared = new Set<string>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
    for (const { name, dependencies, options } of Object.values(recorder.config.retryBudgets)) {
      this.add(new LiveRetryBudget(name, dependencies, options));
    }
    for (const budget of takeEarly()) {
      const known = this.add(budget);
      if (known !== budget) budget.standInFor(known);
    }
  }

  get(name: string): LiveRetryBudget | undefined {
    return this.#byName.get(name);
  }

  /** `name` of a dependency, not folded. */
  of(name: string): LiveRetryBudget | undefined {
    return this.#byDependency.get(name);
  }

  /** The budget that holds: the first of its name stays. A dependency keeps the budget that it has. */
  add(budget: LiveRetryBudget): LiveRetryBudget {
    const known = this.#byName.get(budget.name);
    if (known !== undefined) return known;
    const { series, families } = this.#recorder;
    if (this.#byName.size === 0) this.#refreshAtCollection();
    this.#byName.set(budget.name, budget);
    awaitedOf(budget.name)?.standInFor(budget);
    budget.connect(families, series.dependencies.fold(budget.name));
    for (const dependency of budget.dependencies) {
      this.prepare(dependency);
      if (!this.#byDependency.has(dependency)) this.#byDependency.set(dependency, budget);
    }
    return budget;
  }

  /** Makes the series of refused repeats at 0, before there is one. */
  prepare(dependency: string): void {
    if (this.#prepared.has(dependency)) return;
    const { series, families } = this.#recorder;
    const label = series.dependencies.fold(dependency);
    this.#prepared.add(dependency);
    for (const reason of REFUSAL_REASONS) families.refused.cell(label, 'repeat', reason);
  }

  /** A call to the dependency of this name was made: it is in flight, and the wait before it is over. */
  begin(call: CallRecord, name: string, now: number): void {
    if (this.#byDependency.size > 0) call.retryBudget = this.#byDependency.get(name);
    const request = call.scope?.request;
    if (request?.repeats !== undefined) {
      const pending = request.repeats.find((one) => isRepeatOf(one, call.dependency, call.retryBudget));
      if (pending !== undefined) this.endWait(pending, request, now);
    }
    const fallback = call.scope?.mark?.fallback;
    if (fallback?.dependency === call.dependency) fallback.sharesDependency = true;
    call.retryBudget?.begin(now);
  }

  /** It is really sent: an original pays in, a repeat was paid for when it was let through. Only once. */
  sent(call: CallRecord, now: number): void {
    if (call.repeatPaid !== undefined) return;
    const pending = this.#take(call, now);
    if (pending !== undefined) this.#recorder.calls.attempts.declare(call, pending);
    call.repeatPaid = pending?.paid ?? 0;
    const budget = call.retryBudget;
    call.paysIn = pending === undefined && call.attempt === 1;
    if (budget === undefined || !call.paysIn || budget.feed !== 'original') return;
    // What an attempt took is known when it has ended.
    if (budget.unit !== 'time') budget.deposit(now, 'original');
  }

  end(call: CallRecord, ending: CallEnding, now: number): void {
    // Refused connections are never sent, and a statement is not told of: they count when they end.
    if (call.teaches) this.sent(call, now);
    const budget = call.retryBudget;
    if (budget === undefined) return;
    const paid = call.repeatPaid ?? 0;
    budget.end(now, paid);
    if (call.repeatPaid === undefined) return;
    const tookMs = Math.min(MAX_COST, Math.max(0, now - call.startedAt));
    const cost = budget.unit === 'time' ? tookMs : undefined;
    if (call.paysIn && cost !== undefined && budget.feed === 'original')
      budget.deposit(now, 'original', cost);
    if (budget.feed !== 'success' || ending !== 'answered' || isErrorStatus(call.status)) return;
    // The quota of the AWS SDKs: a repeat that succeeds earns its cost back, and nothing else.
    if (budget.model === 'fixed_quota' && paid > 0) budget.deposit(now, 'refund', paid);
    else budget.deposit(now, 'success', cost);
  }

  /** A repeat was let through. */
  expect(
    scope: Scope | undefined,
    target: NamedTarget,
    paid: number,
    backoffMs: number,
    now: number,
    facts: RepeatFacts,
  ): PendingRepeat {
    const request = scope?.request;
    const dueAt = now + backoffMs;
    const budget = this.#byDependency.get(target.name);
    const isOpen = scope !== undefined && !scope.detached && request?.endedAt === undefined;
    const wait = isOpen && backoffMs > 0 ? this.beginWait(scope, target, now) : undefined;
    const pending: PendingRepeat = { dependency: target.dependency, budget, paid, dueAt, wait, ...facts };
    if (request === undefined || request.endedAt !== undefined) this.#expectOutside(pending, now);
    else if (request.repeats === undefined) request.repeats = [pending];
    else request.repeats.push(pending);
    return pending;
  }

  /** It will not be made after all. False where its call has taken it up already. */
  giveUp(pending: PendingRepeat, scope: Scope | undefined, now: number): boolean {
    const request = scope?.request;
    const list = request?.repeats ?? [];
    if (!remove(list, pending) && !remove(this.#outside, pending)) return false;
    if (request !== undefined) this.endWait(pending, request, now);
    this.#refund(pending, now);
    return true;
  }

  /** A breaker has stopped an attempt: if it was a repeat, what was paid for it comes back. */
  blocked(scope: Scope | undefined, { name, dependency }: NamedTarget, now: number): void {
    const request = scope?.request;
    const list = request === undefined || request.endedAt !== undefined ? this.#outside : request.repeats;
    // One that still waits is another. A timer may fire a millisecond early.
    const budget = this.#byDependency.get(name);
    const pending = list?.find((one) => isRepeatOf(one, dependency, budget) && one.dueAt <= now + 1);
    if (pending !== undefined) this.giveUp(pending, scope, now);
  }

  /** The request is about to end: what it waits for will not be made any more. */
  release(request: RequestRecord, now: number): void {
    for (const pending of request.repeats ?? []) {
      this.endWait(pending, request, now);
      this.#refund(pending, now);
    }
    request.repeats = undefined;
  }

  /** A wait that is a term of the ledger. */
  beginWait(scope: Scope, target: CallTarget, now: number): Call {
    const wait = new Call(target, now, scope.deadlineAt, false);
    scope.request.begin(wait, now, this.#recorder.clock.idleMs(now));
    wait.enter('backoff', now);
    return wait;
  }

  /** What came after it was due was no wait any more. */
  endWait({ wait, dueAt }: Pick<PendingRepeat, 'wait' | 'dueAt'>, request: RequestRecord, now: number): void {
    const endedAt = Math.min(now, dueAt);
    if (wait?.end(endedAt) !== true) return;
    request.end(now, this.#recorder.clock.idleMs(now));
    const { callPhase, postCancelSeconds, postCancelItems } = this.#recorder.families;
    const { dependency, workKind, startedAt } = wait;
    const lateMs = endedAt - Math.max(startedAt, request.uselessAt());
    if (lateMs > 0) {
      postCancelSeconds.cell(dependency, workKind, 'no').add(lateMs / 1_000);
      postCancelItems.cell(dependency, workKind, now < dueAt ? 'stopped' : 'completed').add(1);
    }
    if (dependency !== NO_DEPENDENCY) callPhase.cell(dependency, 'backoff').recordMs(endedAt - startedAt);
  }

  #take(call: CallRecord, now: number): PendingRepeat | undefined {
    const request = call.scope?.request;
    const list = request === undefined || request.endedAt !== undefined ? this.#outside : request.repeats;
    if (list === undefined || list.length === 0) return undefined;
    if (list === this.#outside) this.#sweep(now);
    const index = list.findIndex((one) => isRepeatOf(one, call.dependency, call.retryBudget));
    return index < 0 ? undefined : list.splice(index, 1)[0];
  }

  #expectOutside(pending: PendingRepeat, now: number): void {
    this.#sweep(now);
    if (this.#outside.length >= MAX_OUTSIDE) {
      const oldest = this.#outside.shift();
      if (oldest !== undefined) this.#refund(oldest, now);
    }
    this.#outside.push(pending);
  }

  #sweep(now: number): void {
    for (let oldest = this.#outside[0]; oldest !== undefined; oldest = this.#outside[0]) {
      if (now < oldest.dueAt + GIVEN_UP_MS) return;
      this.#outside.shift();
      this.#refund(oldest, now);
    }
  }

  #refund({ budget, paid }: PendingRepeat, now: number): void {
    if (paid > 0) budget?.deposit(now, 'refund', paid);
  }

  #refreshAtCollection(): void {
    const { families, clock } = this.#recorder;
    const refresh = () => {
      const now = clock.now();
      for (const budget of this.#byName.values()) budget.refresh(now);
    };
    for (const family of [
      families.retryBalance,
      families.retryCapacity,
      families.retryLowSuccess,
      families.retryExhausted,
    ]) {
      family.refresh = refresh;
    }
  }
}

/** Beyond the cap several dependencies have one label; what was paid from a budget is for the calls that feed it. */
function isRepeatOf(
  pending: PendingRepeat,
  dependency: string,
  budget: LiveRetryBudget | undefined,
): boolean {
  if (pending.dependency !== dependency) return false;
  return pending.budget === undefined || pending.budget === budget;
}

function remove(list: PendingRepeat[], pending: PendingRepeat): boolean {
  const index = list.indexOf(pending);
  if (index >= 0) list.splice(index, 1);
  return index >= 0;
}
