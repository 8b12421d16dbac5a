/**
 * The one place where the state of requests becomes metrics and attributes. Adapters say what they saw and
 * when; nothing here knows a library. One request flows: enter → handling → (calls) → cancel? → finish.
 */

import { arrive } from './arrival.ts';
import { CallRecorder } from './call-recorder.ts';
import type { Carriage } from './carriage.ts';
import type { Clock } from './clock.ts';
import { readArrivalAttempt } from './core/arrival-attempt.ts';
import { decideEntry } from './core/entry.ts';
import { decideOutcome, type Ending, isGivenUp } from './core/outcome.ts';
import { type Headers, type ReadOptions, readBudget } from './core/received.ts';
import { type CancelSource, NO_DEPENDENCY, NO_OPERATION } from './core/terms.ts';
import { decideCause } from './core/verdict.ts';
import { LoadRecorder } from './load-recorder.ts';
import { BudgetError, type RequestRecord } from './records.ts';
import { RetryRecorder } from './retry-recorder.ts';
import { abortSignals, releaseSignal } from './scope-signal.ts';
import { Tally } from './tally.ts';
import type { Config } from './telemetry/config-settings.ts';
import { createFamilies, type Families } from './telemetry/metrics.ts';
import { Series } from './telemetry/series.ts';
import { describeRequest } from './telemetry/spans.ts';
import { TypicalDurations } from './typical.ts';
import { WorkloadRecorder } from './workload-recorder.ts';

export interface ArrivalFacts {
  readonly headers: Headers;
  readonly remoteAddress: string | undefined;
  readonly method: string;
  readonly path: string;
  readonly socket?: { readonly bytesWritten: number };
}

const TRUSTED: ReadOptions = Object.freeze({ trusted: true });
const UNTRUSTED: ReadOptions = Object.freeze({ trusted: false });

export class Recorder {
  readonly config: Config;
  readonly families: Families;
  readonly series: Series;
  readonly clock: Clock;
  readonly calls: CallRecorder;
  readonly typical: TypicalDurations;
  readonly retries: RetryRecorder;
  readonly workloads: WorkloadRecorder;
  readonly load: LoadRecorder;
  readonly tally: Tally;
  /** What goes out with calls and messages; there once the adapters are. */
  carriage: Carriage | undefined;
  /** Some operation has an entry policy of its own, so what arrived is kept until the operation is known. */
  readonly #operationsDiffer: boolean;

  constructor(config: Config, clock: Clock, families: Families = createFamilies(config.bucketsS)) {
    this.config = config;
    this.clock = clock;
    this.families = families;
    this.tally = new Tally(this);
    this.calls = new CallRecorder(this);
    this.typical = new TypicalDurations(config, () => this.tally.count());
    this.workloads = new WorkloadRecorder(families, clock);
    this.#operationsDiffer = Object.keys(config.operations).length > 0;
    const { operations, dependencies, callers } = config.labels;
    this.series = new Series(
      families,
      { operation: operations, dependency: dependencies, caller: callers },
      config.callers,
    );
    this.retries = new RetryRecorder(this);
    this.load = new LoadRecorder(this);
    families.policyInfo.cell(config.policyVersion).value = 1;
    for (const settings of Object.values(config.dependencies)) {
      const name = this.series.dependencies.fold(settings.name);
      this.series.dependency(name);
      families.reserve.cell(name).value = config.reserveMsFor(undefined, settings) / 1000;
      if (settings.capMs !== undefined) families.dependencyCap.cell(name).value = settings.capMs / 1000;
    }
  }

  /** A request has been seen. Never throws for any header. */
  enter(facts: ArrivalFacts, now: number): RequestRecord {
    const trusted = this.config.isTrusted(facts.remoteAddress);
    const received = readBudget(facts.headers, trusted ? TRUSTED : UNTRUSTED);
    const operation = this.config.operationForPath(facts.method, facts.path);
    const record = arrive(
      this,
      received,
      trusted,
      operation,
      now - this.clock.waitMs(now, facts.socket),
      now,
    );
    const { attempt, repeated } = readArrivalAttempt(facts.headers, received, trusted);
    record.attempt = attempt;
    record.repeated = repeated;
    if (this.#operationsDiffer) {
      record.received = received;
      record.trusted = trusted;
    }
    return record;
  }

  /**
   * The service has the request; with `operation`, a framework has found the route of that template and its own
   * handler starts.
   */
  handling(record: RequestRecord, operation: string | undefined, now: number): void {
    if (record.endedAt !== undefined) return;
    if (operation === undefined) record.handling(now);
    else record.rehandle(now);
    if (operation === undefined || record.operation !== undefined) return;
    record.operation = this.series.operations.fold(operation);
    if (!this.#operationsDiffer) return;
    const settings = this.config.operationSettings(operation);
    const { entry } = this.config;
    if (settings.defaultMs === entry.defaultMs && settings.ceilingMs === entry.ceilingMs) return;
    if (record.received === undefined || record.cancelledAt !== undefined) return;
    const decision = decideEntry(record.received, entry, settings, record.trusted);
    record.decide(decision.effectiveMs, decision.source, decision.verdict);
  }

  /** Counts the arrival, once its operation is known or never will be. `isNew`: its handler may say of what workload. */
  admit(record: RequestRecord, now: number, isNew = false): void {
    if (!isNew) this.workloads.admit(record);
    if (record.series !== undefined) return;
    record.operation ??=
      record.likelyOperation === undefined
        ? NO_OPERATION
        : this.series.operations.fold(record.likelyOperation);
    const series = this.series.who(record.caller, record.operation, record.priority);
    record.series = series;
    series.offered.add(1);
    this.load.offer(record);
    if (record.repeated) series.retried.add(1);
    for (const call of record.early ?? []) this.tally.remaining(call, record);
    record.early = undefined;
    this.tally.arrived(record);
    if (record.effectiveMs === undefined) return;
    const typical = this.typical.operation(record.operation, now);
    if (typical !== undefined && record.effectiveMs < typical.medianMs) {
      record.insufficient = true;
      series.insufficient.add(1);
    }
  }

  /** Ends the request early. The first source is kept; false for a later one. */
  cancel(record: RequestRecord, source: CancelSource, now: number): boolean {
    if (!record.cancel(source, now)) return false;
    abortSignals(record, new BudgetError(source));
    return true;
  }

  /** The peer closed the connection before it had the whole reply (design rule 11; requirements C-05). */
  peerGone(record: RequestRecord, now: number): void {
    const fromCaller = record.source !== undefined && record.source !== 'default';
    if (fromCaller && now >= record.deadlineAt - this.config.deadlineToleranceMs) {
      this.cancel(record, 'inherited_deadline', now);
    } else {
      this.cancel(record, record.fromInstrumented ? 'upstream_cancel' : 'client_disconnect', now);
    }
  }

  /** The request is over: one outcome, its metrics, its span. */
  finish(record: RequestRecord, ending: Ending, now: number): void {
    if (record.endedAt !== undefined) return;
    this.admit(record, now, true);
    const givenUp = isGivenUp(record, ending);
    if (givenUp) record.cancel('local_timeout', now);
    const outcome = decideOutcome(record, ending, now, this.config.deadlineToleranceMs);
    if (record.repeats !== undefined) this.retries.release(record, now);
    record.close(now, this.clock.idleMs(now), outcome);
    const operation = record.operation ?? NO_OPERATION;
    this.load.decide(record, ending, outcome);
    this.workloads.complete(record, outcome);
    this.tally.ended(record);
    if (record.cancelSource !== undefined)
      this.families.cancellations.cell(operation, record.cancelSource).add(1);
    this.#recordExpiry(record, operation, now);
    if (ending.completed && !givenUp && !record.handlerTracked) this.handlerEnded(record, now);
    this.#describe(record, operation, now);
    releaseSignal(record);
    if (record.handlerScope !== undefined) releaseSignal(record.handlerScope);
    record.letGo(now);
  }

  /** The handler has really ended, which may be long after the reply. */
  handlerEnded(record: RequestRecord, now: number): void {
    if (record.handlerEndedAt !== undefined) return;
    record.handlerEndedAt = now;
    record.settle(now);
    const uselessAt = record.uselessAt();
    if (now <= uselessAt) return;
    // What came too late was not worked on while it waited.
    const isStartedAfter = record.startedAt >= uselessAt;
    const workedMs = now - (isStartedAfter ? record.startedAt : uselessAt);
    this.families.postCancelSeconds.cell(NO_DEPENDENCY, 'handler', 'no').add(workedMs / 1000);
    const result = isStartedAfter ? 'started_after' : 'completed';
    this.families.postCancelItems.cell(NO_DEPENDENCY, 'handler', result).add(1);
  }

  #recordExpiry(record: RequestRecord, operation: string, now: number): void {
    if (now < record.deadlineAt && record.outcome !== 'expired') return;
    const expiry = record.ledger.expiry;
    this.families.expiries.cell(expiry?.call?.dependency ?? NO_DEPENDENCY, expiry?.phase ?? 'queue').add(1);
    if (record.outcome !== 'expired' && record.outcome !== 'late' && record.outcome !== 'refused') return;
    record.cause = decideCause({
      ledger: record.ledger,
      effectiveMs: record.effectiveMs ?? 0,
      overrunMs: now - record.deadlineAt,
      spentBeforeFirstCallMs: record.spentBeforeFirstCallMs(),
      loopBlockedMs: record.loopBlockedMs(),
      operationTypical: this.typical.operation(operation, now),
      dependencyTypical: (dependency) => this.typical.dependency(dependency, now),
    });
    this.families.expiryCauses.cell(operation, record.cause).add(1);
  }

  #describe(record: RequestRecord, operation: string, now: number): void {
    const span = record.span;
    if (span === undefined || !span.isRecording()) return;
    describeRequest(span, record, now, {
      mode: this.config.entry.mode,
      reserveMs: this.config.reserveMsFor(operation, undefined),
      typical: this.typical.operation(operation, now),
    });
  }
}
