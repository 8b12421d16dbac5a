/** cockatiel 3 and 4: a bulkhead as the limit of concurrent calls to one dependency, measured and left as it is. */
import { REFUSAL_REASONS } from '../core/terms.ts';
import { type Watched, watch } from '../load-recorder.ts';
import type { Recorder } from '../recorder.ts';
import type { NumberCell } from '../telemetry/metrics.ts';
import { checkName } from './options.ts';

interface Bulkhead {
  /** Free permits. */
  readonly executionSlots: number;
  /** Free places in its queue. */
  readonly queueSlots: number;
  onReject(listener: () => void): unknown;
}

/**
 * `const bulkhead = watchBulkhead('stock', bulkhead(12, 4))`: gives it back, unchanged. Call it right after the bulkhead
 * is made: its limits are what is free then. What it rejects counts as refused, `overloaded`; its permits stand beside
 * the calls to the dependency that are really in flight, which go on where a timeout inside it has given up on them.
 * Throws RangeError for a name that cannot be a label, that is taken, or is one too many, and for what is no bulkhead.
 */
export function watchBulkhead<B extends Bulkhead>(dependency: string, bulkhead: B): B {
  checkName('watchBulkhead', dependency);
  if (!isBulkhead(bulkhead)) {
    throw new RangeError(
      'watchBulkhead: it must have executionSlots, queueSlots and onReject, as cockatiel has',
    );
  }
  const watched = new WatchedBulkhead(dependency, bulkhead);
  watch(watched);
  bulkhead.onReject(() => watched.rejected());
  return bulkhead;
}

function isBulkhead(value: Bulkhead | null | undefined): boolean {
  return (
    value != null &&
    value.executionSlots >= 0 &&
    value.queueSlots >= 0 &&
    typeof value.onReject === 'function'
  );
}

class WatchedBulkhead implements Watched {
  readonly kind = 'queue';
  readonly madeBy = 'watchBulkhead';
  readonly name: string;
  readonly #bulkhead: Bulkhead;
  /** The most that was ever free. */
  #limit = 0;
  #queueLimit = 0;
  #cells:
    | {
        readonly used: NumberCell;
        readonly limit: NumberCell;
        readonly depth: NumberCell;
        readonly refused: NumberCell;
      }
    | undefined;

  constructor(name: string, bulkhead: Bulkhead) {
    this.name = name;
    this.#bulkhead = bulkhead;
    this.#limit = bulkhead.executionSlots;
    this.#queueLimit = bulkhead.queueSlots;
  }

  connect({ families, series }: Recorder): void {
    const label = series.dependencies.fold(this.name);
    for (const reason of REFUSAL_REASONS) families.refused.cell(label, 'first', reason);
    this.#cells = {
      used: families.concurrencyUsed.cell(label),
      limit: families.concurrencyLimit.cell(label),
      depth: families.queueDepth.cell(this.name),
      refused: families.refused.cell(label, 'first', 'overloaded'),
    };
  }

  refresh(): void {
    if (this.#cells === undefined) return;
    const { executionSlots, queueSlots } = this.#bulkhead;
    this.#limit = Math.max(this.#limit, executionSlots);
    this.#queueLimit = Math.max(this.#queueLimit, queueSlots);
    this.#cells.limit.value = this.#limit;
    this.#cells.used.value = this.#limit - executionSlots;
    this.#cells.depth.value = this.#queueLimit - queueSlots;
  }

  rejected(): void {
    this.#cells?.refused.add(1);
  }
}
