/** The backlog of one queue as a model sees it, and what of it is measured. A figure that is not known is absent. */
import { type BacklogReading, LiveBacklog } from '../core/live-backlog.ts';
import type { Recorder } from '../recorder.ts';

export class QueueModel {
  readonly #recorder: Recorder;
  readonly #queue: string;
  readonly #backlog = new LiveBacklog();

  constructor(recorder: Recorder, queue: string) {
    this.#recorder = recorder;
    this.#queue = queue;
  }

  read(reading: BacklogReading, now: number): void {
    const { families } = this.#recorder;
    const { drains, drainedInMs, breakEvenPerSecond, recoveringMs } = this.#backlog.read(reading, now);
    families.modelDrains.cell(this.#queue).value = drains === undefined ? Number.NaN : Number(drains);
    families.modelTimeToDrain.cell(this.#queue).value = (drainedInMs ?? Number.NaN) / 1_000;
    families.modelBreakEven.cell(this.#queue).value = breakEvenPerSecond ?? Number.NaN;
    families.recovering.cell(this.#queue).value = recoveringMs / 1_000;
  }
}
