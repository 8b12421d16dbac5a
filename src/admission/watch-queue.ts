/** A queue of somebody else's, told of by a function that is asked when metrics are collected. */
import { activeRecorder } from '../active.ts';
import { addEarly, type Watched } from '../load-recorder.ts';
import type { Recorder } from '../recorder.ts';
import type { NumberCell } from '../telemetry/metrics.ts';
import { checkName } from './options.ts';

export interface QueueState {
  /** What waits. */
  readonly depth: number;
  /** When the one that waits longest came, by `performance.now()`. Left out where that is not known. */
  readonly oldestAt?: number | undefined;
  /** Age from which it is not worth starting one, ms. Left out where there is none. */
  readonly usefulLifeMs?: number | undefined;
}

/**
 * Shows the depth, the age of the oldest and the useful life of a queue such as p-queue's. `read` is asked at each
 * collection and must be quick; where it throws, the numbers stay as they are and the fault is counted. Returns its
 * undo. Throws RangeError for a name that cannot be a label, that is taken, or is one too many.
 */
export function watchQueue(name: string, read: () => QueueState): () => void {
  checkName('watchQueue', name);
  if (typeof read !== 'function')
    throw new RangeError(`watchQueue: read must be a function, got ${String(read)}`);
  const queue = new WatchedQueue(name, read);
  return activeRecorder()?.load.add(queue) ?? addEarly(queue);
}

class WatchedQueue implements Watched {
  readonly kind = 'queue';
  readonly name: string;
  readonly #read: () => QueueState;
  #recorder: Recorder | undefined;
  #depth: NumberCell | undefined;

  constructor(name: string, read: () => QueueState) {
    this.name = name;
    this.#read = read;
  }

  connect(recorder: Recorder): void {
    this.#recorder = recorder;
    this.#depth = recorder.families.queueDepth.cell(this.name);
  }

  refresh(now: number): void {
    if (this.#recorder === undefined || this.#depth === undefined) return;
    const { depth, oldestAt, usefulLifeMs } = this.#read();
    const { queueOldest, queueUsefulLife } = this.#recorder.families;
    this.#depth.value = depth;
    if (oldestAt !== undefined || depth === 0) {
      const waitedMs = depth === 0 ? 0 : Math.max(0, now - (oldestAt ?? now));
      queueOldest.cell(this.name, 'unset').value = waitedMs / 1_000;
    }
    if (usefulLifeMs !== undefined) queueUsefulLife.cell(this.name).value = usefulLifeMs / 1_000;
  }
}
