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

/** Calls kept before they are folded into the ledger, where none of them is in progress: then nothing is lost by it. */
const FOLD_ENDED_AT = 32;
/**
 * Where some are: it bounds the memory of a request, and the search for the call that was waited for, and takes the
 * ones in progress for what the request waits for.
 */
const FOLD_AT = 256;

const NO_CALLS: readonly Call[] = Object.freeze([]);

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
  /** Queue and local time in which this process was busy, ms. */
  ownBusyMs: number;
  #isHandlerOwn = false;
  #ledger: Ledger | undefined;
  /** In progress, or ended and not in the ledger yet. */
  #calls: Call[] | undefined;
  #foldAt = FOLD_AT;
  #ledgerUntil: number;
  /** Since when some call has been in progress, or none. */
  #since: number;
  /** Loop idle time at `#since`. */
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
    this.ownBusyMs = arrival.startedAt - arrival.arrivedAt;
    this.#ledgerUntil = arrival.arrivedAt;
    this.#since = arrival.arrivedAt;
    this.#idleMs = arrival.idleMs;
  }

  /**
   * Where the time went until the end, or until a call last began or ended. Made when it is asked for: of a request
   * that ends in time and has no span nobody asks.
   */
  get ledger(): Ledger {
    return this.#fold(this.endedAt ?? this.#since);
  }

  /** The entry policy of the operation, once it is known, may differ from the service's. */
  decide(effectiveMs: number | undefined, source: BudgetSource | undefined, verdict: Verdict): void {
    this.effectiveMs = effectiveMs;
    this.source = source;
    this.verdict = verdict;
    this.deadlineAt = effectiveMs === undefined ? Infinity : this.arrivedAt + effectiveMs;
    if (this.#ledger !== undefined) this.#ledger.deadlineAt = this.deadlineAt;
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
    this.#ledger?.requeue();
  }

  /** It waited in a queue of the service's own until now. */
  waited(now: number): void {
    if (this.#isHandlerOwn || this.endedAt !== undefined) return;
    this.handlerAt = now;
    this.#ledger?.requeue();
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
      this.#endOwn(now, idleMs);
      if (this.#calls !== undefined && this.#calls.length >= FOLD_ENDED_AT) this.#fold(now);
    }
    this.openCalls++;
    // A literal of one holds one; pushing on an empty array would reserve seventeen.
    if (this.#calls === undefined) this.#calls = [call];
    else if (this.#calls.push(call) > this.#foldAt) this.#fold(now);
  }

  /** A call of this request has ended (its own `end` came before). */
  end(now: number, idleMs: number): void {
    this.openCalls--;
    if (this.openCalls > 0 || this.endedAt !== undefined) return;
    this.#since = now;
    this.#idleMs = idleMs;
  }

  /** What is still in progress goes on as work after the end. */
  close(now: number, idleMs: number, outcome: Outcome): void {
    if (this.openCalls === 0) this.#endOwn(now, idleMs);
    // The caller gave up within the tolerance of its deadline: the phase it gave up in is the expiry's.
    const inProgress = outcome === 'expired' ? this.#inProgress() : undefined;
    this.endedAt = now;
    this.outcome = outcome;
    if (inProgress !== undefined) this.ledger.expiry ??= inProgress;
  }

  /** Lets go of the calls: from here on the ledger is what it was when it was last asked for, or nothing if never. */
  forgetCalls(): void {
    if (this.#ledger !== undefined) this.#fold(this.endedAt ?? this.#since);
    this.#calls = undefined;
  }

  #inProgress(): Expiry {
    const call = this.#calls?.find((one) => one.endedAt === undefined);
    if (call?.phase !== undefined) return { phase: call.phase, call };
    if (this.handlerAt === undefined) return { phase: 'queue', call: undefined };
    return { phase: this.respondingAt === undefined ? 'local' : 'response', call: undefined };
  }

  /** Queue, local and loop time that went by busy: what blocking cost this request. */
  loopBlockedMs(): number {
    return this.ownBusyMs + this.ledger.eventLoopMs;
  }

  spentBeforeFirstCallMs(): number | undefined {
    return this.firstCallAt === undefined ? undefined : this.firstCallAt - this.arrivedAt;
  }

  /** The time in which no call was in progress is over. */
  #endOwn(now: number, idleMs: number): void {
    const seenFrom = Math.max(this.#since, this.startedAt);
    const busyMs = now - seenFrom - (idleMs - this.#idleMs);
    if (busyMs > 0) this.ownBusyMs += Math.min(busyMs, now - seenFrom);
    this.#since = now;
    this.#idleMs = idleMs;
  }

  #fold(until: number): Ledger {
    this.#ledger ??= new Ledger(this.deadlineAt);
    if (until <= this.#ledgerUntil) return this.#ledger;
    const calls = this.#calls ?? NO_CALLS;
    this.#ledger.shareOut(calls, this.#ledgerUntil, until, this);
    this.#ledgerUntil = until;
    this.#calls = calls.filter((call) => call.endedAt === undefined || call.endedAt > until);
    // Calls that stay open are not looked through again for each one that begins.
    this.#foldAt = Math.max(FOLD_AT, 2 * this.#calls.length);
    return this.#ledger;
  }
}
