/** The metrics of a call, of what it began with and of how it ended; filled by the tally. */
import { NO_DEPENDENCY, NO_OPERATION, PHASES } from './core/terms.ts';
import type { Recorder } from './recorder.ts';
import type { CallRecord, RequestRecord } from './records.ts';
import { recordRemaining } from './request-counts.ts';

/** Calls that ended before the operation of their request was known, kept until it is. */
const MAX_EARLY = 64;

export class CallCounts {
  readonly #recorder: Recorder;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** Which limit decided, what it left, and which attempt it is. */
  begun(call: CallRecord): void {
    const { allowanceMs, caller, dependency, bindingTerm = 'none' } = call;
    this.#recorder.families.calls.cell(caller, dependency, bindingTerm).add(1);
    if (allowanceMs !== undefined) call.series.allowance.recordMs(allowanceMs);
    call.beginCounted = true;
    this.#recorder.calls.attempts.countBegun(call);
  }

  /** How long it took, and what was left. */
  ended(call: CallRecord): void {
    const { endedAt } = call;
    if (endedAt === undefined) return;
    this.#recordDurations(call, endedAt);
    this.#learn(call, endedAt);
    const request = call.scope?.request;
    if (request !== undefined) this.#recordRemaining(call, request);
  }

  /** What is told by the operation of the request: the attempt, and the remaining time before and after. */
  remaining(call: CallRecord, request: RequestRecord): void {
    this.#recorder.calls.attempts.count(call, request.operation);
    if (call.remainingBeforeMs === undefined) return;
    const operation = this.#recorder.series.operation(request.operation ?? NO_OPERATION);
    recordRemaining(request, call.remainingBeforeMs, operation.remainingBefore, operation.ratioBefore);
    recordRemaining(request, call.remainingAfterMs ?? 0, operation.remainingAfter, operation.ratioAfter);
  }

  #recordDurations(call: CallRecord, now: number): void {
    const { callPhase, detached } = this.#recorder.families;
    const { series } = call;
    const ms = now - call.startedAt;
    series.duration.recordMs(ms);
    // Waiting for our own pool, or for our own loop, keeps no dependency busy.
    series.execution.add(call.servedMs(now) / 1000);
    if (now > call.deadlineAt) series.executionLate.add(call.servedMs(now, call.deadlineAt) / 1000);
    if (call.detached) detached.cell(call.dependency).add(ms / 1000);
    const times = call.phaseTimes(now);
    for (let index = 0; index < times.length; index++) {
      const phaseMs = times[index] ?? Number.NaN;
      if (Number.isNaN(phaseMs)) continue;
      series.phases[index] ??= callPhase.cell(call.dependency, PHASES[index] ?? 'request');
      series.phases[index]?.recordMs(phaseMs);
    }
  }

  #recordRemaining(call: CallRecord, request: RequestRecord): void {
    if (call.remainingBeforeMs === undefined && !this.#recorder.calls.attempts.isDue(call)) return;
    const early = request.series === undefined && request.endedAt === undefined;
    if (early && (request.early?.length ?? 0) < MAX_EARLY) {
      request.early ??= [];
      request.early.push(call);
      return;
    }
    this.remaining(call, request);
  }

  #learn(call: CallRecord, now: number): void {
    if (call.dependency === NO_DEPENDENCY || (call.succeeded && !call.teaches)) return;
    const usual = this.#recorder.typical.usualDependency(call.dependency, now);
    if (call.succeeded && now < call.deadlineAt) usual.complete(call.servedMs(now), now);
    else usual.disturb(now);
  }
}
