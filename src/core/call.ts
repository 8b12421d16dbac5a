/** One attempt of a call to a dependency: what it may use, the phases it went through, how it ended. */
import type { BindingTerm, CancelSource, Phase, RefusalReason, WorkKind } from './terms.ts';
import { PHASES } from './terms.ts';

/**
 * A wait shorter than this between an event and its being seen is not told apart from noise
 * (measured: punctual events read 0.2 ms at the median, single milliseconds are noise on a shared core).
 */
export const MIN_LOOP_LAG_MS = 5;

const PHASE_INDEX: Readonly<Record<Phase, number>> = (() => {
  const index = Object.fromEntries(PHASES.map((phase, i) => [phase, i]));
  // Built from PHASES itself, so every phase has its place.
  return index as Record<Phase, number>;
})();
const EVENT_LOOP = PHASE_INDEX.event_loop;
const POOL_WAIT = PHASE_INDEX.pool_wait;
const BACKOFF = PHASE_INDEX.backoff;

/** Filled for one call after the other, many times a second: an array of its own for each would be garbage at once. */
const phaseTimes = new Float64Array(PHASES.length);

export function phaseIndex(phase: Phase): number {
  return PHASE_INDEX[phase];
}

export interface CallTarget {
  /** A label: beyond the cap it is `other`. */
  readonly dependency: string;
  readonly workKind: WorkKind;
}

/** With the name that its label was folded from, by which its retry budget is found. */
export interface NamedTarget extends CallTarget {
  readonly name: string;
}

export class Call {
  readonly dependency: string;
  readonly workKind: WorkKind;
  readonly startedAt: number;
  /** Deadline of the scope in which the call was made; Infinity where there is none. */
  readonly deadlineAt: number;
  /** Made inside detach(): meant to outlive the request. */
  readonly detached: boolean;

  allowanceMs: number | undefined;
  bindingTerm: BindingTerm | undefined;
  refusal: RefusalReason | undefined;
  reserveMs = 0;
  dependencyCapMs: number | undefined;
  ownTimeoutMs: number | undefined;
  /** What was written to the peer at dispatch, rounded down. */
  handedDownMs: number | undefined;
  dispatchedAt: number | undefined;
  endedAt: number | undefined;
  cancelSource: CancelSource | undefined;
  /** The peer was given, or the call was granted, more than was left. */
  resetViolation = false;
  /** Ran to its end with an answer; an error answer of the peer counts. */
  succeeded = false;
  /** Phase in progress when the call ran out of time. */
  expiryPhase: Phase | undefined;

  /** Phase index and its start, in turn: flat, because one call has a handful and requests are many. */
  readonly #timeline: number[] = [];

  constructor(target: CallTarget, startedAt: number, deadlineAt: number, detached: boolean) {
    this.dependency = target.dependency;
    this.workKind = target.workKind;
    this.startedAt = startedAt;
    this.deadlineAt = deadlineAt;
    this.detached = detached;
  }

  get remainingBeforeMs(): number | undefined {
    return this.deadlineAt === Infinity ? undefined : this.deadlineAt - this.startedAt;
  }

  get remainingAfterMs(): number | undefined {
    if (this.deadlineAt === Infinity || this.endedAt === undefined) return undefined;
    return this.deadlineAt - this.endedAt;
  }

  /**
   * Goes over to a phase. `lagMs` says how long the event that ended the phase before may have lain
   * unnoticed because the event loop was busy; that part is not the dependency's and becomes event_loop.
   */
  enter(phase: Phase, at: number, lagMs = 0): void {
    if (this.endedAt !== undefined) return;
    this.#splitLag(at, lagMs);
    const index = PHASE_INDEX[phase];
    const last = this.#timeline.length - 2;
    if (last >= 0 && this.#timeline[last] === index) return;
    this.#timeline.push(index, at);
  }

  /**
   * Whether a lag could count at this instant: below MIN_LOOP_LAG_MS of a phase there is none to be split off, and
   * its reading can be saved.
   */
  canLag(at: number): boolean {
    const length = this.#timeline.length;
    return length > 0 && at - (this.#timeline[length - 1] ?? at) >= MIN_LOOP_LAG_MS;
  }

  /** Ends the call; false when it had ended before. */
  end(at: number, lagMs = 0): boolean {
    if (this.endedAt !== undefined) return false;
    this.#splitLag(at, lagMs);
    this.endedAt = at;
    return true;
  }

  get phase(): Phase | undefined {
    return PHASES[this.#timeline[this.#timeline.length - 2] ?? -1];
  }

  /** The phase in progress at an instant. */
  phaseAt(at: number): Phase | undefined {
    for (let i = this.#timeline.length - 2; i >= 0; i -= 2) {
      if ((this.#timeline[i + 1] ?? Infinity) <= at) return PHASES[this.#timeline[i] ?? -1];
    }
    return PHASES[this.#timeline[0] ?? -1];
  }

  /** Stretches of one phase each, in the order of time; a stretch lasts until the next one starts. */
  get stretches(): number {
    return this.#timeline.length / 2;
  }

  stretchPhase(index: number): number {
    return this.#timeline[index * 2] ?? 0;
  }

  stretchStartsAt(index: number): number {
    return this.#timeline[index * 2 + 1] ?? 0;
  }

  /**
   * Milliseconds by phase index, NaN for a phase that did not happen; in the array of the call before: copy what is to
   * be kept.
   */
  phaseTimes(toAt: number): Float64Array {
    const times = phaseTimes.fill(Number.NaN);
    let until = Math.min(toAt, this.endedAt ?? toAt);
    for (let i = this.#timeline.length - 2; i >= 0; i -= 2) {
      const start = Math.max(this.#timeline[i + 1] ?? 0, this.startedAt);
      if (start >= until) continue;
      const phase = this.#timeline[i] ?? 0;
      const before = times[phase] ?? Number.NaN;
      times[phase] = until - start + (Number.isNaN(before) ? 0 : before);
      until = start;
    }
    return times;
  }

  /**
   * Time the dependency itself took between two instants: without the wait for our own pool, our own busy loop
   * and the wait before a repeat. A call that has never said its phase has none.
   */
  servedMs(toAt: number, fromAt: number = this.startedAt): number {
    let ms = 0;
    let until = Math.min(toAt, this.endedAt ?? toAt);
    for (let i = this.#timeline.length - 2; i >= 0; i -= 2) {
      const start = Math.max(this.#timeline[i + 1] ?? 0, fromAt);
      if (start >= until) continue;
      const phase = this.#timeline[i];
      if (phase !== POOL_WAIT && phase !== EVENT_LOOP && phase !== BACKOFF) ms += until - start;
      until = start;
    }
    return ms;
  }

  #splitLag(at: number, lagMs: number): void {
    if (lagMs < MIN_LOOP_LAG_MS || !this.canLag(at)) return;
    const since = this.#timeline[this.#timeline.length - 1] ?? at;
    this.#timeline.push(EVENT_LOOP, Math.max(since, at - lagMs));
  }
}
