/** The series of one gate, there at 0 from the start. */
import { PRIORITIES, type Priority, QUEUE_RESULTS, type QueueResult } from '../core/terms.ts';
import type { Recorder } from '../recorder.ts';
import type { HistogramCell, NumberCell } from '../telemetry/metrics.ts';
import { ENFORCED, GATE_REFUSALS, type GateRefusal } from '../telemetry/names.ts';

export interface GateCells {
  readonly used: NumberCell;
  readonly executing: NumberCell;
  readonly depth: NumberCell;
  readonly entered: NumberCell;
  readonly repeats: NumberCell;
  readonly age: (priority: Priority) => HistogramCell;
  readonly oldest: (priority: Priority) => NumberCell;
  readonly left: (result: QueueResult) => NumberCell;
  readonly refused: (why: GateRefusal, isEnforced: boolean) => NumberCell;
}

export function createGateCells(
  recorder: Recorder,
  name: string,
  limit: number,
  maxAgeMs: number,
): GateCells {
  const { families, series } = recorder;
  const label = series.dependencies.fold(name);
  families.concurrencyLimit.cell(label).value = limit;
  families.queueUsefulLife.cell(name).value = maxAgeMs / 1_000;
  for (const priority of PRIORITIES) families.queueOldest.cell(name, priority);
  for (const result of QUEUE_RESULTS) families.queueLeft.cell(name, result);
  for (const why of GATE_REFUSALS) {
    for (const enforced of ENFORCED) families.gateRefused.cell(name, why, enforced);
  }
  return {
    used: families.concurrencyUsed.cell(label),
    executing: families.executing.cell(label),
    depth: families.queueDepth.cell(name),
    entered: families.queueEntered.cell(name),
    repeats: families.queueRepeats.cell(name),
    age: (priority) => families.queueAge.cell(name, priority),
    oldest: (priority) => families.queueOldest.cell(name, priority),
    left: (result) => families.queueLeft.cell(name, result),
    refused: (why, isEnforced) => families.gateRefused.cell(name, why, isEnforced ? 'yes' : 'no'),
  };
}
