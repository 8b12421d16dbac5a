import { closeSync, openSync, readdirSync } from 'node:fs';
import { getHeapStatistics } from 'node:v8';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LongestWait, oldSpaceLimitOf, watchSaturation } from '../../instrumentation/process/saturation.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';

let t: TestHooks;
let undo: () => void;

beforeEach(() => {
  t = createTestHooks();
  undo = watchSaturation(t.hooks);
});

afterEach(() => undo());

function collect(): void {
  for (const family of Object.values(t.recorder.families)) family.refresh?.();
}

describe('M-18, A-16: read when it is collected, and not before', () => {
  test('heap in use and its limit', () => {
    collect();
    expect(t.value('heapLimit')).toBe(getHeapStatistics().heap_size_limit);
    expect(t.value('heapUsed')).toBeGreaterThan(1_000_000);
    expect(t.value('heapUsed')).toBeLessThan(t.value('heapLimit'));
  });

  test.runIf(process.platform === 'linux')('open files and their limit, on Linux', () => {
    collect();
    const before = t.value('openFiles');
    // Within a few of what is there: other threads of the test runner open and close theirs.
    expect(Math.abs(before - readdirSync('/proc/self/fd').length)).toBeLessThan(10);
    const files = Array.from({ length: 50 }, () => openSync('/dev/null', 'r'));
    expect(t.value('openFiles')).toBe(before);
    collect();
    for (const file of files) closeSync(file);
    expect(t.value('openFiles')).toBeGreaterThan(before + 40);
    expect(t.value('openFilesLimit')).toBeGreaterThan(before);
  });

  test('the undo leaves nothing that is read', () => {
    undo();
    expect(t.recorder.families.heapUsed.refresh).toBeUndefined();
    expect(t.recorder.families.loopDelay.refresh).toBeUndefined();
  });
});

test('A-16: the limit of the heap is that of its old part, where an option says it; the last one counts', () => {
  const MIB = 2 ** 20;
  expect(oldSpaceLimitOf('--max-old-space-size=128')).toBe(128 * MIB);
  expect(oldSpaceLimitOf('--import x --max_old_space_size=128 --max-old-space-size=96 -r y')).toBe(96 * MIB);
  expect(oldSpaceLimitOf('--max-old-space-size=128 --max-old-space-size=0')).toBe(undefined);
  expect(oldSpaceLimitOf('--max-old-space-size-percentage=50 --max-semi-space-size=8')).toBe(undefined);
});

describe('LongestWait', () => {
  test('a wait is seen by everyone who collects within its window, and gone after the next', () => {
    const longest = new LongestWait();
    expect(longest.readMs(5, 0)).toBe(5);
    expect(longest.readMs(40, 1_000)).toBe(40);
    // Somebody else, a moment later.
    expect(longest.readMs(0, 1_001)).toBe(40);
    expect(longest.readMs(0, 14_999)).toBe(40);
    expect(longest.readMs(7, 15_000)).toBe(40);
    expect(longest.readMs(0, 29_999)).toBe(40);
    expect(longest.readMs(0, 30_000)).toBe(40);
    expect(longest.readMs(0, 30_001)).toBe(0);
  });

  test('with a collection a minute each wait is seen once at least', () => {
    const longest = new LongestWait();
    expect([longest.readMs(1, 0), longest.readMs(30, 60_000), longest.readMs(2, 120_000)]).toEqual([
      1, 30, 30,
    ]);
    expect(longest.readMs(2, 180_000)).toBe(2);
  });
});
