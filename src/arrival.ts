/** The record of what has arrived, a request or a message, from what was read of it. */
import { decideEntry } from './core/entry.ts';
import type { Received } from './core/received.ts';
import { UNKNOWN } from './core/terms.ts';
import type { Recorder } from './recorder.ts';
import { RequestRecord } from './records.ts';
import type { Families } from './telemetry/metrics.ts';

/** `arrivedAt`: from when on its budget runs. */
export function arrive(
  recorder: Recorder,
  received: Received,
  trusted: boolean,
  operation: string | undefined,
  arrivedAt: number,
  now: number,
): RequestRecord {
  const { config, series } = recorder;
  if (received.findings.length > 0) countFaults(recorder.families, received);
  const decision = decideEntry(received, config.entry, config.operationSettings(operation), trusted);
  const record = new RequestRecord({
    arrivedAt,
    startedAt: now,
    idleMs: recorder.clock.idleMs(now),
    receivedMs: decision.receivedMs,
    effectiveMs: decision.effectiveMs,
    source: decision.source,
    verdict: decision.verdict,
    caller: received.caller === undefined ? UNKNOWN : series.callers.fold(received.caller),
    priority: received.priority ?? 'unset',
    fromInstrumented: received.fromInstrumented,
  });
  record.workload = received.workload;
  if (operation !== undefined) record.operation = series.operations.fold(operation);
  recorder.load.move(record, 'arriving');
  return record;
}

function countFaults({ headerInvalid, violations }: Families, { findings, exceedsOwn }: Received): void {
  for (const { source, fault } of findings) headerInvalid.cell(source, fault).add(1);
  // Our header says what the sender had left; another one that says more is a fresh timeout.
  if (exceedsOwn) violations.cell('reset').add(1);
}
