/** A clock that stands still until it is told; the loop is idle unless a wait is set. */
import type { Clock } from '../../src/clock.ts';

export interface VirtualClock extends Clock {
  at: number;
  /** What the next events will be told to have waited. */
  waitedMs: number;
}

export function createVirtualClock(): VirtualClock {
  return {
    at: 0,
    waitedMs: 0,
    now() {
      return this.at;
    },
    waitMs() {
      return this.waitedMs;
    },
    idleMs() {
      return this.at;
    },
  };
}
