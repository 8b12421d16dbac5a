/** The metrics of a request, of what it arrived with and of how it ended; filled by the tally. */
import { NO_OPERATION } from './core/terms.ts';
import type { Recorder } from './recorder.ts';
import type { RequestRecord } from './records.ts';
import type { HistogramCell } from './telemetry/metrics.ts';

export class RequestCounts {
  readonly #recorder: Recorder;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /** What an arrival came with. */
  arrived(record: RequestRecord): void {
    const { series } = record;
    if (series === undefined) return;
    series.verdict(record.verdict).add(1);
    if (record.receivedMs !== undefined) series.received.recordMs(record.receivedMs);
    if (record.effectiveMs === undefined) return;
    const { remainingReceived, ratioReceived } = series.operation;
    recordRemaining(record, record.deadlineAt - record.startedAt, remainingReceived, ratioReceived);
  }

  /** How a request ended and how long it took. */
  ended(record: RequestRecord): void {
    const { series, outcome, endedAt } = record;
    if (outcome === undefined || endedAt === undefined) return;
    series?.outcome(outcome).add(1);
    this.#recordDurations(record, endedAt);
    this.#learn(record, record.operation ?? NO_OPERATION, endedAt);
  }

  #recordDurations(record: RequestRecord, now: number): void {
    const series = record.series?.operation;
    if (series === undefined) return;
    const handlerAt = record.handlerAt ?? now;
    series.queue.recordMs(handlerAt - record.arrivedAt);
    series.processing.recordMs(now - handlerAt);
    if (record.outcome === 'useful') series.usefulDuration.recordMs(now - record.arrivedAt);
    if (now > record.deadlineAt) series.overrun.recordMs(now - record.deadlineAt);
    const spentMs = record.spentBeforeFirstCallMs();
    if (spentMs !== undefined && record.effectiveMs !== undefined && record.effectiveMs > 0) {
      series.localSpend.record(Math.min(1, spentMs / record.effectiveMs));
    }
  }

  #learn(record: RequestRecord, operation: string, now: number): void {
    const usual = this.#recorder.typical.usualOperation(operation, now);
    if (record.outcome === 'useful') usual.complete(now - record.arrivedAt, now);
    else usual.disturb(now);
  }
}

export function recordRemaining(
  record: RequestRecord,
  leftMs: number,
  seconds: HistogramCell,
  ratio: HistogramCell,
): void {
  const clamped = Math.max(0, leftMs);
  seconds.recordMs(clamped);
  if (record.effectiveMs !== undefined && record.effectiveMs > 0) ratio.record(clamped / record.effectiveMs);
}
