/**
 * What has begun or ended and is not counted yet. Counting is put off and done for many at a time, because one alone
 * finds its code and its cells out of the processor's caches (measured on a service: five times the cost). Whoever
 * reads a metric has everything counted first, so nobody sees the difference.
 */
import { CallCounts } from './call-counts.ts';
import type { Recorder } from './recorder.ts';
import type { CallRecord, RequestRecord } from './records.ts';
import { RequestCounts } from './request-counts.ts';

/** Half a kilobyte each is held for so long. */
export const MAX_UNCOUNTED = 64;

export class Tally {
  readonly #recorder: Recorder;
  readonly #requests: RequestCounts;
  readonly #calls: CallCounts;
  readonly #arrived: RequestRecord[] = [];
  readonly #begun: CallRecord[] = [];
  readonly #endedCalls: CallRecord[] = [];
  readonly #ended: RequestRecord[] = [];
  #size = 0;
  #isCounting = false;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
    this.#requests = new RequestCounts(recorder);
    this.#calls = new CallCounts(recorder);
    const count = () => this.count();
    for (const family of Object.values(recorder.families)) family.beforeRead = count;
  }

  arrived(record: RequestRecord): void {
    this.#put(this.#arrived, record);
  }

  begun(call: CallRecord): void {
    this.#put(this.#begun, call);
  }

  endedCall(call: CallRecord): void {
    this.#put(this.#endedCalls, call);
  }

  ended(record: RequestRecord): void {
    this.#put(this.#ended, record);
  }

  /** Counts all there is. Does not throw. */
  count(): void {
    if (this.#size === 0 || this.#isCounting) return;
    this.#isCounting = true;
    this.#each(this.#arrived, (record) => this.#requests.arrived(record));
    this.#each(this.#begun, (call) => this.#calls.begun(call));
    this.#each(this.#endedCalls, (call) => this.#calls.ended(call));
    this.#each(this.#ended, (record) => this.#requests.ended(record));
    this.#size = 0;
    this.#isCounting = false;
  }

  /** At once: the operation of its request is known now, which was not when it ended. */
  remaining(call: CallRecord, request: RequestRecord): void {
    this.#calls.remaining(call, request);
  }

  #put<T>(list: T[], one: T): void {
    list.push(one);
    if (++this.#size >= MAX_UNCOUNTED) this.count();
  }

  /** One that cannot be counted does not keep the others from it. */
  #each<T>(list: T[], count: (one: T) => void): void {
    for (const one of list) {
      try {
        count(one);
      } catch {
        this.#recorder.families.internalErrors.cell().add(1);
      }
    }
    list.length = 0;
  }
}
