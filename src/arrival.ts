/** The record of what has arrived, a request or a message, from what was read of it. */
import { decideEntry, type EntryPolicy } from './core/entry.ts';
import type { Received } from './core/received.ts';
import { UNKNOWN } from './core/terms.ts';
import type { Recorder } from './recorder.ts';
import { RequestRecord } from './records.ts';
import type { Config } from './telemetry/config-settings.ts';

/** `arrivedAt`: from when on its budget runs. */
export function arrive(
  recorder: Recorder,
  received: Received,
  trusted: boolean,
  operation: string | undefined,
  arrivedAt: number,
  now: number,
): RequestRecord {
  const { families, series } = recorder;
  for (const { source, fault } of received.findings) families.headerInvalid.cell(source, fault).add(1);
  // Our header says what the sender had left; another one that says more is a fresh timeout.
  if (received.exceedsOwn) families.violations.cell('reset').add(1);
  const decision = decideEntry(received, policyFor(recorder.config, operation, trusted));
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

export function policyFor(config: Config, operation: string | undefined, trusted: boolean): EntryPolicy {
  const { entry } = config;
  const { defaultMs, ceilingMs, floorMs } = config.operationSettings(operation);
  return { mode: entry.mode, role: entry.role, trusted, defaultMs, ceilingMs, floorMs };
}
