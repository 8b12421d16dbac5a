/** A queue of somebody else's, told of by a function that is asked when metrics are collected. */
import { QUEUE_RESULTS, type QueueResult } from '../core/terms.ts';
import { type Watched, watch } from '../load-recorder.ts';
import type { Recorder } from '../recorder.ts';
import type { NumberCell } from '../telemetry/metrics.ts';
import { textOf } from '../text-of.ts';
import { checkName } from './options.ts';
import { QueueModel } from './queue-model.ts';

export interface QueueState {
  /** What waits. */
  readonly depth: number;
  /** When the one that waits longest came, by `performance.now()`. Left out where that is not known. */
  readonly oldestAt?: number | undefined;
  /** Age from which it is not worth starting one, ms. Left out where there is none. */
  readonly usefulLifeMs?: number | undefined;
  /** Running total of what came in; with `left`, the model says when the backlog is gone. */
  readonly entered?: number | undefined;
  /** Running total of the repeats among them. */
  readonly repeats?: number | undefined;
  /** Running totals of what left, by how. With `entered`, what left without any of these is a violation. */
  readonly left?: Readonly<Partial<Record<QueueResult, number>>> | undefined;
  /** Units of cost, where items cost differently: what waits, and running totals of what came in and was done. */
  readonly work?: { readonly waiting: number; readonly entered: number; readonly done: number } | undefined;
}

/**
 * Shows the depth, the age of the oldest and the useful life of a queue such as p-queue's, and what its totals tell:
 * what became of its items, and when the backlog is gone. `read` is asked at each collection and must be quick; where
 * it throws or tells no finite numbers, those that are there stay and the fault is counted. Returns its undo. Throws RangeError for a name
 * that cannot be a label, that is taken, or is one too many.
 */
export function watchQueue(name: string, read: () => QueueState): () => void {
  checkName('watchQueue', name);
  if (typeof read !== 'function')
    throw new RangeError(`watchQueue: read must be a function, got ${textOf(read)}`);
  return watch(new WatchedQueue(name, read));
}

class WatchedQueue implements Watched {
  readonly kind = 'queue';
  readonly madeBy = 'watchQueue';
  readonly name: string;
  readonly #read: () => QueueState;
  #recorder: Recorder | undefined;
  #model: QueueModel | undefined;
  #depth: NumberCell | undefined;
  /** What has left without a word of how, the most that was seen. */
  #lost = 0;

  constructor(name: string, read: () => QueueState) {
    this.name = name;
    this.#read = read;
  }

  connect(recorder: Recorder): void {
    this.#recorder = recorder;
    this.#model = new QueueModel(recorder, this.name);
    this.#depth = recorder.families.queueDepth.cell(this.name);
  }

  refresh(now: number): void {
    if (this.#recorder === undefined || this.#depth === undefined) return;
    const state = stateOf(this.#read());
    const { depth, oldestAt, usefulLifeMs } = state;
    const { queueOldest, queueUsefulLife } = this.#recorder.families;
    this.#depth.value = depth;
    if (oldestAt !== undefined || depth === 0) {
      const waitedMs = depth === 0 ? 0 : Math.max(0, now - (oldestAt ?? now));
      queueOldest.cell(this.name, 'unset').value = waitedMs / 1_000;
    }
    if (usefulLifeMs !== undefined) queueUsefulLife.cell(this.name).value = usefulLifeMs / 1_000;
    this.#readTotals(this.#recorder, state, now);
  }

  #readTotals(recorder: Recorder, { depth, entered, repeats, left, work }: QueueState, now: number): void {
    const { queueEntered, queueRepeats, queueLeft, queueWork, violations } = recorder.families;
    if (entered !== undefined) raise(queueEntered.cell(this.name), entered);
    if (repeats !== undefined) raise(queueRepeats.cell(this.name), repeats);
    if (work !== undefined) queueWork.cell(this.name).value = work.waiting;
    let gone = 0;
    if (left !== undefined) {
      for (const result of QUEUE_RESULTS) {
        raise(queueLeft.cell(this.name, result), left[result] ?? 0);
        gone += left[result] ?? 0;
      }
    }
    if (entered === undefined || left === undefined) return;
    const lost = entered - gone - depth;
    if (lost > this.#lost) {
      violations.cell('no_disposition').add(lost - this.#lost);
      this.#lost = lost;
    }
    const inItems = { waiting: depth, entered, repeats, completed: left.started ?? 0 };
    this.#model?.read(
      work === undefined
        ? inItems
        : { waiting: work.waiting, entered: work.entered, repeats: undefined, completed: work.done },
      now,
    );
  }
}

/**
 * One number that is none spoils the whole page of metrics for Prometheus. A `read` of plain JavaScript may be async,
 * and its rejection would be nobody's.
 */
function stateOf(state: QueueState): QueueState {
  if (state instanceof Promise) state.catch(() => {});
  const { depth, oldestAt, usefulLifeMs, entered, repeats, left = {}, work } = state;
  const needed = work === undefined ? [depth] : [depth, work.waiting, work.entered, work.done];
  const others = [oldestAt, usefulLifeMs, entered, repeats, ...Object.values(left)];
  if ([...needed, ...others.filter((value) => value !== undefined)].every(Number.isFinite)) return state;
  throw new TypeError('what read tells must be finite numbers');
}

/** A running total of somebody else's: what is less than before does not count. */
function raise(cell: NumberCell, total: number): void {
  if (total > cell.value) cell.value = total;
}
