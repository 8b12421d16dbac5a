/** At most one look in so many ms on the average, so that looks cost under 0.05 % of a core (1 us each). */
const LOOK_EVERY_MS = 5;
/** Looks not taken are saved up for so long: 100 looks, a few requests' worth of fast iterations. */
const LOOK_SAVED_MS = 500;
/**
 * An unbroken run of accepts that is longer is no burst but a server in lasting saturation, in which the start of
 * the run says nothing about the connection at hand: then only the last iterations are claimed.
 */
const LONGEST_BURST_MS = 10_000;

/**
 * Bounds how long an event can have lain unnoticed because the event loop was busy.
 *
 * Nothing in Node tells when a request or an answer reached the process, only when the loop came to it. What can
 * be known is an earlier observation that is certainly older than the event: the event has then waited no longer
 * than the loop has been busy since. An observation is older than the event when
 * 1. the loop was idle afterwards, for it sleeps only when nothing is waiting, or
 * 2. it was made two or more loop iterations ago: an event handed over by the poll of iteration c was not there
 *    when the poll of c-1 looked, and that poll came after everything seen in c-2.
 * The first alone grows without limit in a loop that is always busy but quick; the second ends that.
 *
 * Rule 2 fails for a connection: libuv accepts one per iteration (libuv#3696), so the hundredth of a burst is
 * accepted a hundred iterations later, with its request already sent. It is older than the run of iterations that
 * all accepted something at the most, because an iteration without an accept found the queue empty.
 *
 * Not seen: the time in another process's queue (the primary's in a cluster, a proxy's), in a socket that the
 * application paused, and in connections that `maxConnections` drops, which end a run of accepts too early.
 *
 * The fields are readings of a "busy clock", `now - idleMs`, which stands still while the loop sleeps.
 */
export class LoopMeter {
  #idleMs = 0;
  #busy = 0;
  /** At the last observation before the loop was last idle. */
  #rested = 0;

  // The last observation in each of the newest three iterations that were counted, newest first.
  #count0 = Number.NEGATIVE_INFINITY;
  #busy0 = Number.NEGATIVE_INFINITY;
  #count1 = Number.NEGATIVE_INFINITY;
  #busy1 = Number.NEGATIVE_INFINITY;
  #busy2 = Number.NEGATIVE_INFINITY;

  #acceptIdleMs = 0;
  #acceptCount: number | undefined;
  /** At an observation older than every connection of the present run of accepts. */
  #acceptRun = Number.NEGATIVE_INFINITY;

  #nextLookAt = Number.NEGATIVE_INFINITY;

  /**
   * Records that the loop is running at `now` and bounds the wait of the event that is being handled, in ms,
   * by rule 1. `idleMs` is the loop's idle time since it started, read in the same callback as `now`.
   * While it is 0, and at the first call after, nothing is known and no wait is claimed: 0.
   */
  sample(now: number, idleMs: number): number {
    const busy = now - idleMs;
    if (!(idleMs > 0) || !Number.isFinite(busy)) return 0;
    // Equality is safe: Node counts idle time in nanoseconds, and any sleep at all found nothing waiting.
    if (idleMs > this.#idleMs) this.#rested = this.#idleMs > 0 ? this.#busy : busy;
    else if (idleMs < this.#idleMs) this.#rested = busy;
    this.#idleMs = idleMs;
    this.#busy = busy;
    return Math.max(0, busy - this.#rested);
  }

  /**
   * Lowers the bound of the `sample` just made by rule 2; without a `loopCount` it stays as it is. In ms.
   * `isFirst`: the event is the first request of its connection, which may have waited to be accepted. Undefined
   * is taken for yes once accepts are reported.
   */
  tighten(loopCount: number | undefined, isFirst: boolean | undefined): number {
    if (this.#idleMs === 0) return 0;
    if (loopCount === undefined) return Math.max(0, this.#busy - this.#rested);
    const twoBack = this.#countIn(loopCount);
    // What an accepted socket already holds is read in the very next iteration: later, it came later.
    const wasLongAccepted = this.#acceptCount !== undefined && this.#acceptCount < loopCount - 1;
    const isJustAccepted = (isFirst ?? this.#acceptIdleMs > 0) && !wasLongAccepted;
    const inBurst =
      isJustAccepted && this.#busy - Math.max(this.#rested, this.#acceptRun) <= LONGEST_BURST_MS;
    return Math.max(0, this.#busy - Math.max(this.#rested, inBurst ? this.#acceptRun : twoBack));
  }

  /** Records that the `sample` just made was the accept of a connection, in iteration `loopCount` if known. */
  accept(loopCount: number | undefined): void {
    if (this.#idleMs === 0) return;
    const twoBack = loopCount === undefined ? Number.NEGATIVE_INFINITY : this.#countIn(loopCount);
    const isSameBusyTime = this.#acceptIdleMs === this.#idleMs;
    const isNextIteration =
      loopCount === undefined || this.#acceptCount === undefined || loopCount - this.#acceptCount <= 1;
    if (!isSameBusyTime || !isNextIteration) this.#acceptRun = Math.max(this.#rested, twoBack);
    this.#acceptIdleMs = this.#idleMs;
    this.#acceptCount = loopCount;
  }

  /**
   * Withdraws one look at the next iteration (a `sample` that belongs to no event), if one is affordable.
   * Without looks all the work between two requests counts against the second, be they minutes apart.
   */
  tryLook(now: number): boolean {
    if (now < this.#nextLookAt) return false;
    this.#nextLookAt = Math.max(this.#nextLookAt, now - LOOK_SAVED_MS) + LOOK_EVERY_MS;
    return true;
  }

  /** Files the present observation under its iteration; gives the last one made two or more iterations before. */
  #countIn(loopCount: number): number {
    if (loopCount !== this.#count0) {
      this.#busy2 = this.#busy1;
      this.#count1 = this.#count0;
      this.#busy1 = this.#busy0;
      this.#count0 = loopCount;
    }
    this.#busy0 = this.#busy;
    return this.#count1 <= loopCount - 2 ? this.#busy1 : this.#busy2;
  }
}

/**
 * How long the loop was busy between two instants, in ms, from its idle time at both; never below 0 or above the
 * time between them. 0 when the idle time is not known, as it is until the loop has slept for the first time.
 */
export function busyBetweenMs(fromAt: number, fromIdleMs: number, toAt: number, toIdleMs: number): number {
  const spanMs = toAt - fromAt;
  if (!(toIdleMs > 0) || !(spanMs > 0)) return 0;
  return Math.min(spanMs, Math.max(0, spanMs - (toIdleMs - fromIdleMs)));
}
