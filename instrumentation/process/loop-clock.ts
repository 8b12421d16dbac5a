import { AsyncLocalStorage } from 'node:async_hooks';
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers';
import { LoopMeter } from '../../src/core/loop-meter.ts';
import type { Hooks, Undo } from '../adapter.ts';

/** Up to here a bound does no harm, and the second reading that would lower it (60 ns) is saved. */
const TIGHTEN_ABOVE_MS = 2;

/** For so long a reading of idle time (100 ns) is taken for that of now, where an error of so much does no harm. */
const FRESH_MS = 0.02;

const CHANNEL_CONNECTION = 'net.server.socket';

const timing = performance.nodeTiming;
const meter = new LoopMeter();
// The rule about iterations rests on how epoll and kqueue are polled. On Windows, where it was not measured, and
// where the counter is missing, only idle time is used.
const hasLoopCount = process.platform !== 'win32' && timing.uvMetricsInfo !== undefined;
// A look armed inside a request would keep that request's state alive for good, as each look arms the next.
const atRoot = AsyncLocalStorage.snapshot();

/** The instant of the last reading of idle time, and what it was: one event asks for it several times. */
let readAt = Number.NEGATIVE_INFINITY;
let readMs = 0;

let look: (() => void) | undefined;
let isLookArmed = false;
let longestMs = 0;

/**
 * Upper bound, in ms, of how long the event handled at `now` (a request's or an answer's arrival) lay unnoticed
 * because this thread's event loop was busy. Call it synchronously in the callback that brought the event; every
 * call makes later bounds better. The truth lies between 0 and this; an answer has also not waited for longer
 * than since its call was sent.
 *
 * `socket`: the connection of the event, if known. One that nothing was written to yet brings its first request,
 * which may have waited to be accepted too. Without a socket that is assumed of every event right after an accept.
 *
 * 0 until the loop has slept once, and where idle time is not measured. `now` is `performance.now()`.
 * 40 ns up to 2 ms, 90 ns above (Node 24).
 */
export function loopWaitMs(now: number, socket?: { readonly bytesWritten: number }): number {
  // Always a reading of now: a sleep that is not seen, however short, would add all that was before it.
  if (now !== readAt) readIdle(now);
  let waitMs = meter.sample(now, readMs);
  if (look !== undefined && !isLookArmed) armLook(now);
  if (waitMs > TIGHTEN_ABOVE_MS) waitMs = meter.tighten(loopCount(), socket && socket.bytesWritten === 0);
  if (waitMs > longestMs) longestMs = waitMs;
  return waitMs;
}

/** The longest bound that was given since this was asked last, ms; 0 where there was none. */
export function takeLongestWaitMs(): number {
  const ms = longestMs;
  longestMs = 0;
  return ms;
}

/**
 * Idle time of this thread's event loop since it started, in ms, for `busyBetweenMs`; 0 until it first slept. `now` is
 * the instant of the event that is handled.
 */
export function loopIdleMs(now: number): number {
  if (!(now >= readAt && now - readAt < FRESH_MS)) readIdle(now);
  return readMs;
}

function readIdle(now: number): void {
  readAt = now;
  readMs = timing.idleTime;
}

/**
 * Makes the bounds of `loopWaitMs` better, at under 0.05 % of a core: accepts are noted, without which a
 * connection's first request is bounded by idle time alone, and some iterations without an event are looked at,
 * without which work of long ago counts against the next event. A look is an unreferenced immediate: it neither
 * wakes the loop nor keeps the process alive. One watch at a time; returns its undo.
 */
export function watchLoop(hooks: Pick<Hooks, 'guard' | 'subscribe'>): Undo {
  const unsubscribe = hooks.subscribe(CHANNEL_CONNECTION, onConnection);
  look = hooks.guard(onLook);
  armLook(performance.now());
  return () => {
    unsubscribe();
    look = undefined;
  };
}

function onConnection(): void {
  const waitMs = meter.sample(performance.now(), timing.idleTime);
  meter.accept(waitMs <= TIGHTEN_ABOVE_MS ? undefined : loopCount());
}

function onLook(): void {
  isLookArmed = false;
  loopWaitMs(performance.now());
}

function armLook(now: number): void {
  if (look === undefined || !meter.tryLook(now)) return;
  isLookArmed = true;
  atRoot(setImmediate, look).unref();
}

function loopCount(): number | undefined {
  return hasLoopCount ? timing.uvMetricsInfo.loopCount : undefined;
}
