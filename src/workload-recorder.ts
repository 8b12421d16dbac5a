/**
 * What kind of load requests are, and what of the work asked of dependencies is no live, original demand. In
 * families of their own, so that the label does not multiply the large ones.
 */
import type { Clock } from './clock.ts';
import { loadsAgain } from './core/operations.ts';
import { PeakRate } from './core/peak-rate.ts';
import { type AttemptOwner, OUTCOMES, type Outcome, WORKLOADS, type Workload } from './core/terms.ts';
import type { CallRecord, RequestRecord } from './records.ts';
import type { Families, NumberCell } from './telemetry/metrics.ts';

interface Cells {
  readonly admitted: NumberCell;
  readonly completed: Readonly<Record<Outcome, NumberCell>>;
  readonly peak: PeakRate;
  readonly peakRate: NumberCell;
}

export class WorkloadRecorder {
  readonly #families: Families;
  readonly #cells: Readonly<Record<Workload, Cells>>;
  /** Dependencies whose series are there at 0. */
  readonly #prepared = new Set<string>();

  constructor(families: Families, clock: Clock) {
    this.#families = families;
    const cells = Object.fromEntries(
      WORKLOADS.map((workload) => [workload, createCells(families, workload)]),
    );
    // Built from WORKLOADS itself, so every workload is there.
    this.#cells = cells as Record<Workload, Cells>;
    families.workloadPeak.refresh = () => {
      const now = clock.now();
      for (const { peak, peakRate } of Object.values(this.#cells)) peakRate.value = peak.perSecond(now);
    };
  }

  /** Counts the admission, once: with the first call of the request, or at its end. */
  admit(record: RequestRecord): void {
    if (record.workloadCounted) return;
    record.workloadCounted = true;
    const cells = this.#cells[workloadOf(record)];
    cells.admitted.add(1);
    cells.peak.add(record.startedAt);
  }

  complete(record: RequestRecord, outcome: Outcome): void {
    // What was refused without having done anything was never let in.
    if (outcome !== 'shed' && outcome !== 'refused') this.admit(record);
    this.#cells[workloadOf(record)].completed[outcome].add(1);
  }

  /** A call has ended for which its dependency has worked. Live, original work is not counted here. */
  worked(call: CallRecord, now: number): void {
    const workload = workloadOfCall(call);
    if (workload === 'live') return;
    const { workloadCalls, workloadExecution } = this.#families;
    if (!this.#prepared.has(call.dependency)) {
      this.#prepared.add(call.dependency);
      for (const each of WORKLOADS) {
        if (each === 'live') continue;
        workloadCalls.cell(call.dependency, each);
        workloadExecution.cell(call.dependency, each);
      }
    }
    workloadCalls.cell(call.dependency, workload).add(1);
    workloadExecution.cell(call.dependency, workload).add(call.servedMs(now) / 1000);
  }

  /** The service knows that this request is a repeat, and whose. */
  repeat(record: RequestRecord, owner: AttemptOwner, attempt: number): void {
    record.attempt = Math.max(record.attempt, attempt);
    if (record.repeatOwner !== undefined) return;
    record.repeatOwner = owner;
    this.#families.arrivalRepeats.cell(owner).add(1);
    // Its arrival may be counted already, as no repeat.
    if (!record.repeated) record.series?.retried.add(1);
    record.repeated = true;
  }
}

function createCells(families: Families, workload: Workload): Cells {
  const completed = Object.fromEntries(
    OUTCOMES.map((outcome) => [outcome, families.workloadCompleted.cell(workload, outcome)]),
  );
  return {
    admitted: families.workloadAdmitted.cell(workload),
    // Built from OUTCOMES itself, so every outcome is there.
    completed: completed as Record<Outcome, NumberCell>,
    peak: new PeakRate(),
    peakRate: families.workloadPeak.cell(workload),
  };
}

/** What was said of it; else a repeat, or part of one, is `retry`. */
export function workloadOf(record: RequestRecord): Workload {
  return record.workload ?? (record.repeated ? 'retry' : 'live');
}

function workloadOfCall(call: CallRecord): Workload {
  const request = call.scope?.request;
  if (request?.workload !== undefined) return request.workload;
  if (call.detached) return 'background';
  if (call.scope?.mark?.breaker?.isProbe === true) return 'probe';
  const { tried } = call;
  const isRepeat = tried !== undefined && loadsAgain(tried);
  return isRepeat || request?.repeated === true ? 'retry' : 'live';
}
