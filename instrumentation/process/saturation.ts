/**
 * How full this process is (requirement M-18), read when it is collected: the loop, the heap and the open files. What
 * else fills up has metrics of its own: requests in flight, queues, pools and the share that arrives with too little
 * time.
 */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { getHeapSpaceStatistics, getHeapStatistics } from 'node:v8';
import { environment } from '../../src/telemetry/config.ts';
import type { Hooks, Undo } from '../adapter.ts';
import { takeLongestWaitMs } from './loop-clock.ts';

/** A wait stays to be seen for at least so long, and at least at one collection, however many there are who collect. */
const WINDOW_MS = 15_000;

const OPEN_FILES = '/proc/self/fd';
const LIMITS = '/proc/self/limits';

export function watchSaturation(hooks: Pick<Hooks, 'recorder' | 'now'>): Undo {
  const { loopDelay, heapUsed, heapLimit, openFiles, openFilesLimit } = hooks.recorder.families;
  const delay = loopDelay.cell();
  const longest = new LongestWait();
  loopDelay.refresh = () => {
    delay.value = longest.readMs(takeLongestWaitMs(), hooks.now()) / 1_000;
  };
  const [used, limit] = [heapUsed.cell(), heapLimit.cell()];
  const mostOld = oldSpaceLimitOf(`${environment().NODE_OPTIONS ?? ''} ${process.execArgv.join(' ')}`);
  heapUsed.refresh = () => {
    used.value = oldHeapUsed();
    limit.value = mostOld ?? getHeapStatistics().heap_size_limit;
  };
  heapUsed.refresh();
  const undos = [loopDelay, heapUsed];
  // Linux only: elsewhere there is no such series.
  if (countOpenFiles() !== undefined) {
    const files = openFiles.cell();
    openFiles.refresh = () => {
      files.value = countOpenFiles() ?? files.value;
    };
    undos.push(openFiles);
    const most = openFilesLimitOf();
    if (most !== undefined) openFilesLimit.cell().value = most;
  }
  return () => {
    for (const family of undos) family.refresh = undefined;
  };
}

/** The longest of the present window and of the one before. */
export class LongestWait {
  #currentMs = 0;
  #previousMs = 0;
  #since = -Infinity;

  /** `takenMs` is the longest since the last reading. */
  readMs(takenMs: number, now: number): number {
    this.#currentMs = Math.max(this.#currentMs, takenMs);
    const longestMs = Math.max(this.#currentMs, this.#previousMs);
    if (now - this.#since >= WINDOW_MS) {
      this.#previousMs = this.#currentMs;
      this.#currentMs = 0;
      this.#since = now;
    }
    return longestMs;
  }
}

/** New objects have a room of their own, which is emptied when it is full: that it is full says nothing. */
function oldHeapUsed(): number {
  let bytes = 0;
  for (const { space_name: name, space_used_size: size } of getHeapSpaceStatistics()) {
    if (name !== 'new_space' && name !== 'new_large_object_space') bytes += size;
  }
  return bytes;
}

/**
 * `--max-old-space-size` among the options, in bytes; undefined where it is not set. V8's `heap_size_limit` has the most
 * that the young generation can be on top, by default three times 64 MiB on a large machine (Node 24): a process with
 * 128 MiB would end at two fifths of that. Without the option it is a twentieth.
 */
export function oldSpaceLimitOf(options: string): number | undefined {
  const mebibytes = [...options.matchAll(/--max[-_]old[-_]space[-_]size=(\d+)/g)].at(-1)?.[1];
  // V8 takes 0 for its own default.
  return mebibytes === undefined || Number(mebibytes) === 0 ? undefined : Number(mebibytes) * 2 ** 20;
}

/** From Linux 6.2 on the size of the folder is their number; before, it is 0 and they are counted. */
function countOpenFiles(): number | undefined {
  try {
    const { size } = statSync(OPEN_FILES);
    return size > 0 ? size : readdirSync(OPEN_FILES).length;
  } catch {
    return undefined;
  }
}

function openFilesLimitOf(): number | undefined {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(readFileSync(LIMITS, 'utf8'));
    return found === null ? undefined : Number(found[1]);
  } catch {
    return undefined;
  }
}
