/** A call by hand, to a dependency whose library has no adapter here. */
import type { Span } from '@opentelemetry/api';
import { activeRecorder } from '../active.ts';
import { endingOf } from '../call-ending.ts';
import type { CallEnding } from '../call-recorder.ts';
import { PHASES, type Phase, WORK_KINDS, type WorkKind } from '../core/terms.ts';
import { guarded } from '../guarded.ts';
import type { Recorder } from '../recorder.ts';
import type { CallRecord } from '../records.ts';
import { isThenable, whenSettled } from '../when-settled.ts';

export interface CallOptions {
  /** The limit that the call has of its own, in ms. A failure from then on is that limit's. */
  readonly timeoutMs?: number | undefined;
  /** What kind of work it is; `other` when left out. */
  readonly kind?: Exclude<WorkKind, 'handler'> | undefined;
  /** The span of the call, for its details, where it is still recording when the call ends. */
  readonly span?: Span | undefined;
}

/** Says where a call stands. Both may be called at any time, and do nothing once the call has ended. */
export interface ManualCall {
  /** It goes over to this phase. The first one named while the work is being called holds from the start. */
  readonly enter: (phase: Phase) => void;
  /** It really goes out now: `db_execution` where the kind is `sql`, else `request`. */
  readonly sent: () => void;
}

/** Node's timers may be early by as much. */
const EARLY_TIMER_MS = 2;

const NOT_RECORDED: ManualCall = Object.freeze({ enter() {}, sent() {} });

/**
 * Runs a call to a dependency and records it as those of the libraries with an adapter: what was left before and
 * after, its phases, who cancelled, what went on for nobody. It ends with the promise that the work gives, or with its
 * return or throw. Gives what the work gives, and its errors. Never throws by itself. A call that says no phase is
 * `request`. Where the package was not started the work just runs.
 */
export function recordCall<T>(
  dependency: string,
  work: (call: ManualCall) => T,
  options?: CallOptions | undefined,
): T {
  const recorder = activeRecorder();
  if (recorder === undefined) return work(NOT_RECORDED);
  const hand = guarded(() => new HandCall(recorder, dependency, options), recorder);
  if (hand === undefined) return work(NOT_RECORDED);
  return whenSettled(
    () => hand.run(work),
    (failed, error) => hand.end(failed, error),
  );
}

class HandCall {
  readonly #recorder: Recorder;
  readonly #record: CallRecord;
  readonly #timeoutMs: number | undefined;
  readonly #sentPhase: Phase;
  /** The work has not given a promise yet, or is none that waits: nothing can have lain there for the loop. */
  #isFirstStep = true;

  constructor(recorder: Recorder, dependency: string, options: CallOptions | undefined) {
    const kind = kindOf(options?.kind);
    this.#recorder = recorder;
    this.#timeoutMs = limitOf(options?.timeoutMs);
    this.#sentPhase = kind === 'sql' ? 'db_execution' : 'request';
    const target = recorder.calls.target(dependency, undefined, kind);
    this.#record = recorder.calls.begin(target, recorder.clock.now(), this.#timeoutMs);
    this.#record.span = options?.span;
  }

  run<T>(work: (call: ManualCall) => T): T {
    const { enter, sent } = this;
    try {
      const result = work({ enter, sent });
      this.#isFirstStep = !isThenable(result);
      return result;
    } finally {
      if (this.#record.phase === undefined) this.#record.enter(this.#sentPhase, this.#record.startedAt);
    }
  }

  end(failed: boolean, error: unknown): void {
    guarded(() => {
      const now = this.#recorder.clock.now();
      const ending = failed ? this.#endingOf(error, now) : 'answered';
      this.#recorder.calls.end(this.#record, ending, now, this.#lagMs(now));
    }, this.#recorder);
  }

  /** Functions of their own, as a service may take them off the object. */
  readonly enter = (phase: Phase): void => {
    if (!PHASES.includes(phase)) return;
    guarded(() => {
      const now = this.#recorder.clock.now();
      const isFirst = this.#record.phase === undefined;
      this.#record.enter(phase, isFirst ? this.#record.startedAt : now, this.#lagMs(now));
    }, this.#recorder);
  };

  readonly sent = (): void => {
    const record = this.#record;
    if (record.dispatchedAt !== undefined || record.endedAt !== undefined) return;
    guarded(() => {
      const now = this.#recorder.clock.now();
      record.dispatchedAt = now;
      this.#recorder.retries.sent(record, now);
    }, this.#recorder);
    this.enter(this.#sentPhase);
  };

  #endingOf(error: unknown, now: number): CallEnding {
    const { startedAt, deadlineAt, scope } = this.#record;
    // What was thrown may be anything, with getters that throw.
    const ending = guarded(() => endingOf(error), this.#recorder) ?? 'failed';
    if (ending === 'timed_out' || now - startedAt < (this.#timeoutMs ?? Infinity) - EARLY_TIMER_MS)
      return ending;
    const isOthers = now >= deadlineAt || scope?.request.cancelSource !== undefined;
    return ending === 'aborted' && isOthers ? 'aborted' : 'timed_out';
  }

  #lagMs(now: number): number {
    return this.#isFirstStep ? 0 : this.#recorder.clock.waitMs(now);
  }
}

function limitOf(ms: unknown): number | undefined {
  return typeof ms === 'number' && ms > 0 && ms < Infinity ? ms : undefined;
}

function kindOf(kind: unknown): WorkKind {
  return WORK_KINDS.find((known) => known === kind && known !== 'handler') ?? 'other';
}
