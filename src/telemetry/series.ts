/**
 * The cells of one request or one dependency, looked up once and held by its record. Open labels are bounded
 * here: a value beyond the cap, or one that cannot be a label, folds into `other`, and the fold is counted.
 */
import {
  CANCEL_SOURCES,
  NO_OPERATION,
  OTHER,
  OUTCOMES,
  type Outcome,
  PHASES,
  type Priority,
  REFUSAL_REASONS,
  SHED_REASONS,
  type ShedReason,
  VERDICTS,
  type Verdict,
  VIOLATIONS,
} from '../core/terms.ts';
import type { Families, HistogramCell, LabelCaps, NumberCell } from './metrics.ts';
import type { OpenLabel } from './names.ts';

/** Longer values are identifiers or texts, not names. */
const MAX_LABEL_LENGTH = 80;
const LABEL_TEXT = /^[\x20-\x7e]+$/;

/** Values of one open label. `reserved` ones (unknown, none) do not use up the cap. */
export class LabelSet {
  readonly #cap: number;
  /**
   * Each value to itself: the one that is kept is handed out, because the next ten maps find by identity what
   * they would have to compare letter by letter in a text that was put together for each request.
   */
  readonly #known = new Map<string, string>();
  readonly #reserved: ReadonlySet<string>;
  readonly #closed: boolean;
  readonly #overflow: NumberCell;

  constructor(
    cap: number,
    overflow: NumberCell,
    reserved: readonly string[],
    allowed: readonly string[] = [],
  ) {
    this.#cap = cap;
    this.#overflow = overflow;
    this.#reserved = new Set([...reserved, OTHER]);
    this.#closed = allowed.length > 0;
    for (const value of allowed.slice(0, cap)) this.#known.set(value, value);
  }

  fold(value: string): string {
    const known = this.#known.get(value);
    if (known !== undefined) return known;
    if (this.#reserved.has(value)) return value;
    if (
      this.#closed ||
      this.#known.size >= this.#cap ||
      // What plain JavaScript hands over: an absent header, a parsed body.
      typeof value !== 'string' ||
      value.length > MAX_LABEL_LENGTH ||
      !LABEL_TEXT.test(value)
    ) {
      this.#overflow.add(1);
      return OTHER;
    }
    this.#known.set(value, value);
    return value;
  }
}

/** Cells by (caller, operation, priority). */
export interface WhoSeries {
  readonly offered: NumberCell;
  readonly admitted: NumberCell;
  readonly shed: (reason: ShedReason) => NumberCell;
  readonly retried: NumberCell;
  readonly verdict: (verdict: Verdict) => NumberCell;
  readonly outcome: (outcome: Outcome) => NumberCell;
  readonly insufficient: NumberCell;
  readonly received: HistogramCell;
  readonly operation: OperationSeries;
}

export interface OperationSeries {
  readonly remainingReceived: HistogramCell;
  readonly remainingBefore: HistogramCell;
  readonly remainingAfter: HistogramCell;
  readonly ratioReceived: HistogramCell;
  readonly ratioBefore: HistogramCell;
  readonly ratioAfter: HistogramCell;
  readonly overrun: HistogramCell;
  readonly localSpend: HistogramCell;
  readonly queue: HistogramCell;
  readonly processing: HistogramCell;
  readonly usefulDuration: HistogramCell;
}

export interface DependencySeries {
  /** By phase index, each made when it is first needed. */
  readonly phases: (HistogramCell | undefined)[];
  readonly allowance: HistogramCell;
  readonly duration: HistogramCell;
  readonly execution: NumberCell;
  readonly executionLate: NumberCell;
  readonly executing: NumberCell;
  readonly cutOff: NumberCell;
}

export class Series {
  readonly families: Families;
  readonly operations: LabelSet;
  readonly dependencies: LabelSet;
  readonly callers: LabelSet;
  readonly #who = new Map<string, Map<string, Map<string, WhoSeries>>>();
  readonly #operation = new Map<string, OperationSeries>();
  readonly #dependency = new Map<string, DependencySeries>();

  constructor(families: Families, caps: LabelCaps, allowedCallers: readonly string[] = []) {
    this.families = families;
    const overflow = (label: OpenLabel) => families.labelOverflow.cell(label);
    this.operations = new LabelSet(caps.operation, overflow('operation'), [NO_OPERATION]);
    this.dependencies = new LabelSet(caps.dependency, overflow('dependency'), ['none']);
    this.callers = new LabelSet(caps.caller, overflow('caller'), ['unknown'], allowedCallers);
    families.internalErrors.cell();
    for (const violation of VIOLATIONS) families.violations.cell(violation);
    for (const phase of PHASES) families.expiries.cell('none', phase);
  }

  /** Labels must have been folded before. */
  who(caller: string, operation: string, priority: Priority): WhoSeries {
    let byOperation = this.#who.get(caller);
    if (byOperation === undefined) {
      byOperation = new Map();
      this.#who.set(caller, byOperation);
      for (const verdict of VERDICTS) this.families.verdicts.cell(caller, verdict);
    }
    let byPriority = byOperation.get(operation);
    if (byPriority === undefined) {
      byPriority = new Map();
      byOperation.set(operation, byPriority);
    }
    let series = byPriority.get(priority);
    if (series === undefined) {
      series = this.#createWho(caller, operation, priority);
      byPriority.set(priority, series);
    }
    return series;
  }

  operation(operation: string): OperationSeries {
    let series = this.#operation.get(operation);
    if (series === undefined) {
      const f = this.families;
      for (const source of CANCEL_SOURCES) f.cancellations.cell(operation, source);
      series = {
        remainingReceived: f.remaining.cell(operation, 'received'),
        remainingBefore: f.remaining.cell(operation, 'before_call'),
        remainingAfter: f.remaining.cell(operation, 'after_call'),
        ratioReceived: f.remainingRatio.cell(operation, 'received'),
        ratioBefore: f.remainingRatio.cell(operation, 'before_call'),
        ratioAfter: f.remainingRatio.cell(operation, 'after_call'),
        overrun: f.overrun.cell(operation),
        localSpend: f.localSpend.cell(operation),
        queue: f.queue.cell(operation),
        processing: f.processing.cell(operation),
        usefulDuration: f.usefulDuration.cell(operation),
      };
      this.#operation.set(operation, series);
    }
    return series;
  }

  dependency(dependency: string): DependencySeries {
    let series = this.#dependency.get(dependency);
    if (series === undefined) {
      const f = this.families;
      for (const phase of PHASES) f.expiries.cell(dependency, phase);
      for (const reason of REFUSAL_REASONS) f.refused.cell(dependency, 'first', reason);
      series = {
        phases: [],
        allowance: f.allowance.cell(dependency),
        duration: f.callDuration.cell(dependency),
        execution: f.execution.cell(dependency),
        executionLate: f.executionLate.cell(dependency),
        executing: f.executing.cell(dependency),
        cutOff: f.cutOff.cell(dependency),
      };
      this.#dependency.set(dependency, series);
    }
    return series;
  }

  #createWho(caller: string, operation: string, priority: Priority): WhoSeries {
    const f = this.families;
    const outcomes = new Map<Outcome, NumberCell>();
    for (const outcome of OUTCOMES)
      outcomes.set(outcome, f.outcomes.cell(caller, operation, priority, outcome));
    for (const reason of SHED_REASONS) f.shed.cell(caller, operation, priority, reason);
    return {
      offered: f.offered.cell(caller, operation, priority),
      admitted: f.admitted.cell(caller, operation, priority),
      shed: (reason) => f.shed.cell(caller, operation, priority, reason),
      retried: f.retried.cell(caller, operation, priority),
      verdict: (verdict) => f.verdicts.cell(caller, verdict),
      outcome: (outcome) => outcomes.get(outcome) ?? f.outcomes.cell(caller, operation, priority, outcome),
      insufficient: f.insufficient.cell(caller, operation),
      received: f.received.cell(caller, operation),
      operation: this.operation(operation),
    };
  }
}
