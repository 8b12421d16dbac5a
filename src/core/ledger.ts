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
  /** Time in which this process was busy inside queue and local. */
  ownBusyMs = 0;
  terms: readonly LedgerTerm[] = NO_TERMS;
  expiry: Expiry | undefined;
  deadlineAt: number;

  constructor(deadlineAt: number) {
    this.deadlineAt = deadlineAt;
  }

  /** Time in which no call was in progress. */
  addOwn(phase: 'queue' | 'local' | 'response', fromAt: number, toAt: number): void {
    const ms = toAt - fromAt;
    if (ms <= 0) return;
    if (phase === 'queue') this.queueMs += ms;
    else if (phase === 'local') this.localMs += ms;
    else this.responseMs += ms;
    this.#expireIn(fromAt, toAt, phase, undefined);
  }

  /** What has been taken for local work so far turns out to have been the way to the handler. */
  requeue(): void {
    this.queueMs += this.localMs;
    this.localMs = 0;
    if (this.expiry?.phase === 'local') this.expiry = { phase: 'queue', call: undefined };
  }

  /** Shares out [fromAt, toAt], in which at least one of the calls was always in progress. */
  addCalls(calls: readonly Call[], fromAt: number, toAt: number): void {
    for (const call of calls) this.#noteSlowest(call, toAt);
    let until = toAt;
    while (until > fromAt) {
      const call = waitedFor(calls, until);
      if (call === undefined) {
        this.addOwn('local', fromAt, until);
        return;
      }
      const end = Math.min(call.endedAt ?? until, until);
      if (end < until) this.addOwn('local', Math.max(end, fromAt), until);
      const start = Math.max(call.startedAt, fromAt);
      if (end > start) this.#addCall(call, start, end);
      until = Math.min(start, end);
    }
  }

  /** All terms but what was left; equals the time between arrival and end. */
  totalMs(): number {
    let total = this.queueMs + this.localMs + this.responseMs + this.eventLoopMs;
    for (const term of this.terms) for (const ms of term.phaseMs) total += ms;
    return total;
  }

  #addCall(call: Call, fromAt: number, toAt: number): void {
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
    // A call that has not said its phase yet, or says it late, is local work until then.
    this.addOwn('local', fromAt, until);
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
