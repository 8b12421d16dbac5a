/**
 * What the recorder is for requests, for calls: begin → phases → dispatch → end. The allowance on the span, the
 * header on the wire and the refusal come from one computation.
 */
import { AttemptRecorder } from './attempt-recorder.ts';
import { decideAllowance } from './core/allowance.ts';
import type { CallTarget, NamedTarget } from './core/call.ts';
import type { CancelSource, PostCancelResult } from './core/terms.ts';
import { currentScope } from './current.ts';
import type { Recorder } from './recorder.ts';
import { CallRecord, type RequestRecord } from './records.ts';
import { describeAttempt } from './telemetry/attempt-span.ts';
import type { DependencySettings } from './telemetry/config-settings.ts';
import type { DependencySeries } from './telemetry/series.ts';
import { describeCall } from './telemetry/spans.ts';

/**
 * `answered`: the peer's answer is complete, an error answer too. `timed_out`: a timer of the application or
 * its library fired. `aborted`: somebody gave up on it. `failed`: anything else.
 */
export type CallEnding = 'answered' | 'timed_out' | 'aborted' | 'failed';

export interface Target extends NamedTarget {
  /** By what calls count as calls of the same: the dependency where it is configured, else host and port. */
  readonly origin: string;
  readonly host: string;
  readonly port: number | undefined;
  readonly settings: DependencySettings | undefined;
  /** Of its dependency; made for the first call. */
  series: DependencySeries | undefined;
}

/** A sibling that answered at most this long before an abort has won a race against it. */
const RACE_MS = 20;

export class CallRecorder {
  /** The call as an attempt. Adapters say which request it is, right after `begin`. */
  readonly attempts: AttemptRecorder;
  readonly #recorder: Recorder;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
    this.attempts = new AttemptRecorder(recorder);
  }

  /** The dependency that a host, or a name such as `postgresql/orders`, belongs to. Keep it where it can be. */
  target(host: string, port: number | undefined, workKind: CallTarget['workKind']): Target {
    const settings = this.#recorder.config.dependencyFor(host, port);
    const name = settings?.name ?? nameOfHost(host);
    const dependency = this.#recorder.series.dependencies.fold(name);
    const origin = settings?.name ?? `${host.toLowerCase()}:${port ?? ''}`;
    return { host, port, settings, workKind, name, dependency, origin, series: undefined };
  }

  /** A call starts in the current scope. `ownTimeoutMs` is the limit that the application gave it itself. */
  begin(target: Target, now: number, ownTimeoutMs?: number): CallRecord {
    const { config, series, families, clock } = this.#recorder;
    const scope = currentScope();
    const request = scope?.request;
    target.series ??= series.dependency(target.dependency);
    const call = new CallRecord(target, scope, target.series, target.settings, now);
    call.reserveMs = config.reserveMsFor(request?.operation, target.settings);
    call.dependencyCapMs = target.settings?.capMs;
    call.ownTimeoutMs = ownTimeoutMs;
    const allowance = decideAllowance(call);
    call.allowanceMs = allowance.allowanceMs;
    call.bindingTerm = allowance.bindingTerm;
    call.refusal = allowance.refusal;
    this.#recorder.tally.begun(call);
    if (call.refusal !== undefined) families.refused.cell(call.dependency, 'first', call.refusal).add(1);
    if (ownTimeoutMs !== undefined) this.granted(call, ownTimeoutMs, now);
    call.series.executing.add(1);
    this.#recorder.retries.begin(call, target.name, now);
    if (request === undefined || call.detached) return call;
    if (request.endedAt === undefined) {
      if (request.operation !== undefined) this.#recorder.admit(request, now);
      request.begin(call, now, clock.idleMs(now));
      call.inRequest = true;
    }
    if (now >= request.uselessAt()) {
      families.violations.cell('started_after_end').add(1);
      families.postCancelItems.cell(call.dependency, call.workKind, 'started_after').add(1);
    }
    return call;
  }

  /** The application gave the peer, or the call, this much time: more than was left is a reset. */
  granted(call: CallRecord, ms: number, now: number): void {
    if (call.resetViolation || call.deadlineAt === Infinity || ms <= call.deadlineAt - now) return;
    call.resetViolation = true;
    this.#recorder.families.violations.cell('reset').add(1);
  }

  /** The call really goes out now. Whole milliseconds to hand down, or undefined where there is no budget. */
  dispatch(call: CallRecord, now: number): number | undefined {
    call.dispatchedAt = now;
    this.#recorder.retries.sent(call, now);
    if (call.deadlineAt === Infinity) return undefined;
    const usableMs = Math.min(
      call.deadlineAt - now - call.reserveMs,
      call.dependencyCapMs ?? Infinity,
      call.settings?.latencyMs ?? Infinity,
      call.ownTimeoutMs ?? Infinity,
    );
    call.handedDownMs = Math.max(0, Math.floor(usableMs));
    return call.handedDownMs;
  }

  /** The call has ended. Only the first time counts. */
  end(call: CallRecord, ending: CallEnding, now: number, lagMs = 0): void {
    const phase = call.phase;
    if (!call.end(now, lagMs)) return;
    const { families } = this.#recorder;
    const request = call.scope?.request;
    call.succeeded = ending === 'answered';
    if (ending === 'timed_out' || ending === 'aborted') {
      call.cancelSource = this.#cancelSource(call, ending, now);
      call.series.cutOff.add(1);
    }
    if (call.deadlineAt <= now) call.expiryPhase = call.phaseAt(call.deadlineAt);
    else if (ending === 'timed_out') {
      call.expiryPhase = phase;
      // The request's own expiry is counted when it ends; this one ran out of its own, smaller limit.
      if (phase !== undefined) families.expiries.cell(call.dependency, phase).add(1);
    }
    this.attempts.end(call, ending, now);
    this.#recorder.retries.end(call, ending, now);
    call.series.executing.add(-1);
    this.#recorder.workloads.worked(call, now);
    this.#recorder.tally.endedCall(call);
    if (request !== undefined) {
      if (!call.detached && now > request.uselessAt()) this.#recordLateWork(call, request, ending, now);
      if (call.inRequest) request.end(now, this.#recorder.clock.idleMs(now));
      if (call.succeeded) request.lastAnswerAt = now;
    }
    if (call.span?.isRecording()) {
      describeCall(call.span, call, this.#recorder.typical.dependency(call.dependency, now));
      describeAttempt(call.span, call, this.#recorder.config.policyVersion);
    }
    call.span = undefined;
  }

  #cancelSource(call: CallRecord, ending: 'timed_out' | 'aborted', now: number): CancelSource {
    if (ending === 'timed_out') return 'local_timeout';
    const request = call.scope?.request;
    const lostAt = call.scope?.mark?.race?.lostAt;
    if (lostAt !== undefined && lostAt <= (request?.cancelledAt ?? Infinity)) return 'lost_race';
    if (request?.cancelSource !== undefined) return request.cancelSource;
    if (now >= call.deadlineAt - this.#recorder.config.deadlineToleranceMs) return 'inherited_deadline';
    return now - (request?.lastAnswerAt ?? -Infinity) <= RACE_MS ? 'lost_race' : 'application';
  }

  #recordLateWork(call: CallRecord, request: RequestRecord, ending: CallEnding, now: number): void {
    const uselessAt = request.uselessAt();
    const { postCancelSeconds, postCancelItems } = this.#recorder.families;
    call.postCancelMs = now - Math.max(call.startedAt, uselessAt);
    postCancelSeconds.cell(call.dependency, call.workKind, 'no').add(call.postCancelMs / 1000);
    if (call.startedAt < uselessAt) {
      postCancelItems.cell(call.dependency, call.workKind, LATE_RESULT[ending]).add(1);
    }
  }
}

const LATE_RESULT: Readonly<Record<CallEnding, PostCancelResult>> = {
  answered: 'completed',
  failed: 'failed',
  timed_out: 'stopped',
  aborted: 'stopped',
};

/** An address is no name: it would be a label without bound, and says nothing to a reader. */
function nameOfHost(host: string): string {
  const name = host.toLowerCase();
  return /^[0-9.]+$/.test(name) || name.includes(':') ? 'address' : name;
}
