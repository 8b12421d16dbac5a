/** What the recorder asks of the process it runs in. */
export interface Clock {
  /** Monotonic milliseconds. */
  now(): number;
  /** Upper bound of how long an event seen now has waited for the loop; `socket` tells a first request. */
  waitMs(now: number, socket?: { readonly bytesWritten: number }): number;
  /** Milliseconds the loop has been idle since the process started, read for the event that is handled at `now`. */
  idleMs(now: number): number;
}
