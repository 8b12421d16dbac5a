/** A measured process: what is compared is loaded before it, with `--import`. */
import { activeRecorder } from '../../src/active.ts';
import { answer } from './child.ts';
import { fillSeries, type SeriesShape } from './fill.ts';
import { startService } from './services.ts';

const url = await startService(process.argv[2] === 'hello' ? 'hello' : 'service');
/** Since the process was started. */
const listeningMs = performance.now();

let isWatching = false;
let longestBlockMs = 0;

/** Turns the loop without a pause: the longest time between two turns is what something blocked it for. */
function watch(lastTurnAt: number): void {
  const now = performance.now();
  longestBlockMs = Math.max(longestBlockMs, now - lastTurnAt);
  if (isWatching) setImmediate(watch, now);
}

const answers = {
  ready() {
    return { url, listeningMs, records: activeRecorder() !== undefined };
  },
  /** CPU time of the process so far, user and system, in microseconds. */
  cpuUs() {
    const { user, system } = process.cpuUsage();
    return user + system;
  },
  heapBytes() {
    globalThis.gc?.();
    globalThis.gc?.();
    return process.memoryUsage().heapUsed;
  },
  watchLoop() {
    longestBlockMs = 0;
    isWatching = true;
    setImmediate(watch, performance.now());
  },
  longestBlockMs() {
    isWatching = false;
    return longestBlockMs;
  },
  fill(shape: SeriesShape) {
    return fillSeries(shape);
  },
};
export type ServiceAnswers = typeof answers;

answer(answers);
