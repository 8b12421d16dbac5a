/** The record of one request: the budget it came with, its calls, who cancelled it, how it ended. */
import type { Call } from './call.ts';
import { type Expiry, Ledger } from './ledger.ts';
import type {
  BudgetSource,
  CancelSource,
  Outcome,
  Priority,
  RefusalReason,
  ShedReason,
  Verdict,
} from './terms.ts';

/** Ended calls kept for the critical path before they are folded into sums: bounds the memory of a request. */
const MAX_BATCH = 256;

export interface Arrival {
  /** When the request reached this process, as well as it can be known; before `startedAt`. */
  readonly arrivedAt: number;
  /** When this process saw it. */
  readonly startedAt: number;
  /** Loop idle time at `startedAt` (milliseconds since process start). */
  readonly idleMs: number;
  readonly receivedMs: number | undefined;
  readonly effectiveMs: number | undefined;
  readonly source: BudgetSource | undefined;
  readonly verdict: Verdict;
  readonly caller: string;
  readonly priority: Priority;
  /** The sender told its own remaining time in our header, so it is one of ours and not a public client. */
  readonly fromInstrumented: boolean;
}

/** What the service, or a queue in it, has said of a request. `mode` is the name of a degraded mode. */
export type Disposition =
  /** Nobody knows whether its work took effect; the key stays in the process. */
  | { readonly kind: 'unknown'; readonly key: string }
  | { readonly kind: 'waiting' }
  | { readonly kind: 'shed'; readonly reason: ShedReason }
  | { readonly kind: 'refused'; readonly reason: RefusalReason }
  | { readonly kind: 'degraded'; readonly mode: string };

export class TimeBudget {
  readonly arrivedAt: number;
  readonly startedAt: number;
  readonly receivedMs: number | undefined;
  readonly fromInstrumented: boolean;
  effectiveMs: number | undefined;
  source: BudgetSource | undefined;
  verdict: Verdict;
  /** arrival + effective budget; Infinity where there is none. */
  deadlineAt: number;
  readonly ledger: Ledger;
  caller: string;
  priority: Priority;
  operation: string | undefined;
  handlerAt: number | undefined;
  respondingAt: number | undefined;
  firstCallAt: number | undefined;
  cancelledAt: number | undefined;
  cancelSource: CancelSource | undefined;
  endedAt: number | undefined;
  handlerEndedAt: number | undefined;
  outcome: Outcome | undefined;
  /** undefined where nobody has said anything, which is the rule. */
  disposition: Disposition | undefined;
  /** Calls in progress that belong to the request (detached ones do not). */
  openCalls = 0;
  #isHandlerOwn = false;
  #batch: Call[] | undefined;
  #resolvedUntil: number;
  #idleMs: number;

  constructor(arrival: Arrival) {
    this.arrivedAt = arrival.arrivedAt;
    this.startedAt = arrival.startedAt;
    this.receivedMs = arrival.receivedMs;
    this.effectiveMs = arrival.effectiveMs;
    this.source = arrival.source;
    this.verdict = arrival.verdict;
    this.caller = arrival.caller;
    this.priority = arrival.priority;
    this.fromInstrumented = arrival.fromInstrumented;
    this.deadlineAt = arrival.effectiveMs === undefined ? Infinity : arrival.arrivedAt + arrival.effectiveMs;
    this.ledger = new Ledger(this.deadlineAt);
    this.ledger.ownBusyMs = arrival.startedAt - arrival.arrivedAt;
    this.#resolvedUntil = arrival.arrivedAt;
    this.#idleMs = arrival.idleMs;
  }

  /** The entry policy of the operation, once it is known, may differ from the service's. */
  decide(effectiveMs: number | undefined, source: BudgetSource | undefined, verdict: Verdict): void {
    this.effectiveMs = effectiveMs;
    this.source = source;
    this.verdict = verdict;
    this.deadlineAt = effectiveMs === undefined ? Infinity : this.arrivedAt + effectiveMs;
    this.ledger.deadlineAt = this.deadlineAt;
  }

  remainingMs(now: number): number | undefined {
    return this.deadlineAt === Infinity ? undefined : this.deadlineAt - now;
  }

  /**
   * From when on nobody has use for the work: the cancel or the deadline, whichever came first. Infinity once
   * the request has been answered before either: what runs on then was answered for, not abandoned.
   */
  uselessAt(): number {
    const at = Math.min(this.cancelledAt ?? Infinity, this.deadlineAt);
    return this.endedAt !== undefined && this.endedAt < at ? Infinity : at;
  }

  /** The service's own code has the request; what came before was queue. Only the first one counts. */
  handling(now: number): void {
    this.handlerAt ??= now;
  }

  /**
   * A framework tells that the operation's own handler starts only now: the way there through its middleware
   * was queue as well. Only the first one counts.
   */
  rehandle(now: number): void {
    if (this.#isHandlerOwn) return;
    this.#isHandlerOwn = true;
    this.handlerAt = now;
    this.ledger.requeue();
  }

  /** It waited in a queue of the service's own until now. */
  waited(now: number): void {
    if (this.#isHandlerOwn) return;
    this.handlerAt = now;
    this.ledger.requeue();
  }

  /** The reply is complete and is being flushed. */
  responding(now: number): void {
    this.respondingAt ??= now;
  }

  /** Records who ended the request early; false when an earlier source is kept. */
  cancel(source: CancelSource, now: number): boolean {
    if (this.cancelSource !== undefined || this.endedAt !== undefined) return false;
    this.cancelSource = source;
    this.cancelledAt = now;
    return true;
  }

  /** A call begins. `idleMs` is the loop's idle time, to tell busy from waiting in the time before. */
  begin(call: Call, now: number, idleMs: number): void {
    this.firstCallAt ??= now;
    if (this.openCalls === 0) {
      this.#resolveOwn(now, idleMs);
    } else if (this.#batch !== undefined && this.#batch.length >= MAX_BATCH) {
      this.#resolveCalls(now);
      this.#batch = this.#batch.filter((open) => open.endedAt === undefined);
    }
    this.openCalls++;
    // A literal of one holds one; pushing on an empty array would reserve seventeen.
    if (this.#batch === undefined) this.#batch = [call];
    else this.#batch.push(call);
  }

  /** A call of this request has ended (its own `end` came before). */
  end(now: number, idleMs: number): void {
    this.openCalls--;
    if (this.openCalls > 0 || this.endedAt !== undefined) return;
    this.#resolveCalls(now);
    this.#batch = undefined;
    this.#idleMs = idleMs;
  }

  /** Closes the ledger. What is still in progress goes on as work after the end. */
  close(now: number, idleMs: number, outcome: Outcome): void {
    if (this.openCalls === 0) this.#resolveOwn(now, idleMs);
    else this.#resolveCalls(now);
    // The caller gave up within the tolerance of its deadline: the phase it gave up in is the expiry's.
    if (outcome === 'expired') this.ledger.expiry ??= this.#inProgress();
    this.#batch = undefined;
    this.endedAt = now;
    this.outcome = outcome;
  }

  #inProgress(): Expiry {
    const call = this.#batch?.find((one) => one.endedAt === undefined);
    if (call?.phase !== undefined) return { phase: call.phase, call };
    if (this.handlerAt === undefined) return { phase: 'queue', call: undefined };
    return { phase: this.respondingAt === undefined ? 'local' : 'response', call: undefined };
  }

  /** Queue, local and loop time that went by busy: what blocking cost this request. */
  loopBlockedMs(): number {
    return this.ledger.ownBusyMs + this.ledger.eventLoopMs;
  }

  spentBeforeFirstCallMs(): number | undefined {
    return this.firstCallAt === undefined ? undefined : this.firstCallAt - this.arrivedAt;
  }

  #resolveOwn(now: number, idleMs: number): void {
    const from = this.#resolvedUntil;
    const handlerAt = this.handlerAt ?? Infinity;
    const respondingAt = this.respondingAt ?? Infinity;
    this.ledger.addOwn('queue', from, Math.min(now, handlerAt));
    this.ledger.addOwn('local', Math.max(from, handlerAt), Math.min(now, respondingAt));
    this.ledger.addOwn('response', Math.max(from, respondingAt, handlerAt), now);
    const seenFrom = Math.max(from, this.startedAt);
    const busyMs = now - seenFrom - (idleMs - this.#idleMs);
    if (busyMs > 0) this.ledger.ownBusyMs += Math.min(busyMs, now - seenFrom);
    this.#resolvedUntil = now;
    this.#idleMs = idleMs;
  }

  #resolveCalls(now: number): void {
    if (this.#batch !== undefined) this.ledger.addCalls(this.#batch, this.#resolvedUntil, now);
    this.#resolvedUntil = now;
  }
}
