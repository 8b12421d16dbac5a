import type { CallRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';

/**
 * How long the event at `now`, which ends a phase of the call, may have lain unnoticed, in ms. 0 without a reading
 * where the phase is too short for it to count. To be asked in the callback that brought the event.
 */
export function callLag(hooks: Hooks, call: CallRecord, now: number): number {
  return call.canLag(now) ? hooks.recorder.clock.waitMs(now) : 0;
}
