/**
 * Where the time of one request went, so that it adds up: every instant between arrival and end belongs to
 * exactly one term. Parallel calls are counted once, along the critical path: walking back from the end, the
 * call that ended last is what the request waited for; before its start, the one that ended last before.
 */
import { type Call, phaseIndex } from './call.ts';
import { PHASES, type Phase } from './terms.ts';

/** A dependency's part: milliseconds by phase index, and the longest time it took over one call. */
export interface LedgerTerm {
  readonly dependency: string;
  readonly phaseMs: number[];
  slowestMs: number;
}

/** When the handler started and when the reply was complete, as far as they have come. */
export interface OwnInstants {
  readonly handlerAt: number | undefined;
  readonly respondingAt: number | undefined;
}

export interface Expiry {
  readonly phase: Phase;
  /** The call in progress when time ran out; undefined where none was. */
  readonly call: Call | undefined;
}

const NO_TERMS: readonly LedgerTerm[] = Object.freeze([]);
/** Made of doubles: a copy of whole numbers would have to change over at its first sum, and take twice the memory. */
const NO_TIME: readonly number[] = Array.from(new Float64Array(PHASES.length));
const EVENT_LOOP = phaseIndex('event_loop');

export class Ledger {
  queueMs = 0;
  localMs = 0;
  responseMs = 0;
  eventLoopMs = 0;
  terms: readonly LedgerTerm[] = NO_TERMS;
  expiry: Expiry | undefined;
  deadlineAt: number;

  constructor(deadlineAt: number) {
    this.deadlineAt = deadlineAt;
  }

  /** What has been taken for local work so far turns out to have been the way to the handler. */
  requeue(): void {
    this.queueMs += this.localMs;
    this.localMs = 0;
    if (this.expiry?.phase === 'local') this.expiry = { phase: 'queue', call: undefined };
  }

  /**
   * Shares out [fromAt, toAt]. `calls`: all that were in progress in it. Time without one is queue before the handler,
   * response after the reply was complete, and local in between.
   */
  shareOut(calls: readonly Call[], fromAt: number, toAt: number, own: OwnInstants): void {
    for (const call of calls) this.#noteSlowest(call, toAt);
    let until = toAt;
    while (until > fromAt) {
      const call = waitedFor(calls, until);
      if (call === undefined) {
        this.#addOwn(fromAt, until, own);
        return;
      }
      const end = Math.min(call.endedAt ?? until, until);
      if (end < until) this.#addOwn(Math.max(end, fromAt), until, own);
      const start = Math.max(call.startedAt, fromAt);
      if (end > start) this.#addCall(call, start, end, own);
      until = Math.min(start, end);
    }
  }

  /** All terms but what was left; equals the time between arrival and end. */
  totalMs(): number {
    let total = this.queueMs + this.localMs + this.responseMs + this.eventLoopMs;
    for (const term of this.terms) for (const ms of term.phaseMs) total += ms;
    return total;
  }

  #addOwn(
    fromAt: number,
    toAt: number,
    { handlerAt = Infinity, respondingAt = Infinity }: OwnInstants,
  ): void {
    this.responseMs += this.#ownPart(Math.max(fromAt, respondingAt, handlerAt), toAt, 'response');
    this.localMs += this.#ownPart(Math.max(fromAt, handlerAt), Math.min(toAt, respondingAt), 'local');
    this.queueMs += this.#ownPart(fromAt, Math.min(toAt, handlerAt), 'queue');
  }

  #ownPart(fromAt: number, toAt: number, phase: Phase): number {
    if (toAt <= fromAt) return 0;
    this.#expireIn(fromAt, toAt, phase, undefined);
    return toAt - fromAt;
  }

  #addCall(call: Call, fromAt: number, toAt: number, own: OwnInstants): void {
    const term = this.#term(call.dependency);
    let until = Math.min(toAt, call.endedAt ?? toAt);
    for (let i = call.stretches - 1; i >= 0 && until > fromAt; i--) {
      const start = Math.max(call.stretchStartsAt(i), fromAt);
      if (start >= until) continue;
      const phase = call.stretchPhase(i);
      if (phase === EVENT_LOOP) this.eventLoopMs += until - start;
      else term.phaseMs[phase] = (term.phaseMs[phase] ?? 0) + until - start;
      this.#expireIn(start, until, PHASES[phase] ?? 'request', call);
      until = start;
    }
    // A call that has not said its phase yet, or says it late, is the process's own work until then.
    this.#addOwn(fromAt, until, own);
  }

  #noteSlowest(call: Call, at: number): void {
    const ms = call.servedMs(at);
    const term = this.#term(call.dependency);
    if (ms > term.slowestMs) term.slowestMs = ms;
  }

  #term(dependency: string): LedgerTerm {
    for (const term of this.terms) if (term.dependency === dependency) return term;
    const term: LedgerTerm = { dependency, phaseMs: NO_TIME.slice(), slowestMs: 0 };
    this.terms = this.terms.length === 0 ? [term] : [...this.terms, term];
    return term;
  }

  #expireIn(fromAt: number, toAt: number, phase: Phase, call: Call | undefined): void {
    // `<=` at the end: remaining 0 is expired. Stretches come latest first, so an earlier one may overwrite.
    if (fromAt < this.deadlineAt && this.deadlineAt <= toAt) this.expiry = { phase, call };
  }
}

/** The call that the request was waiting for at an instant: the one that ended last, the longest of equals. */
function waitedFor(calls: readonly Call[], at: number): Call | undefined {
  let best: Call | undefined;
  let bestEnd = -Infinity;
  for (const call of calls) {
    if (call.startedAt >= at) continue;
    const end = Math.min(call.endedAt ?? at, at);
    if (end < bestEnd || (end === bestEnd && best !== undefined && call.startedAt >= best.startedAt))
      continue;
    best = call;
    bestEnd = end;
  }
  return best;
}
