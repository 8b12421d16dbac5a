/** alerts on processes that are nearly full, at, under and over their limits. */
import { describe, test, vi } from 'vitest';
import { expectAlerts, gauge, hasPromtool, type SeriesSet } from '../support/promtool.ts';

vi.setConfig({ testTimeout: 180_000 });

const MIB = 2 ** 20;

function of(instance: string, name: string): string {
  return `time_budget_${name}{job="shop",instance="${instance}"}`;
}

describe.skipIf(!hasPromtool)('A-16: EventLoopSaturated', () => {
  const LOOP = 'EventLoopSaturated job=shop';
  const delay = (values: string, instance = 'a'): SeriesSet => ({
    [of(instance, 'loop_delay_seconds')]: values,
  });

  test('0.25 s is silent; over it fires after the window and `for`, and ends with the first short wait', () => {
    expectAlerts(delay(gauge([10, 0.01], [20, 0.25])), { 29: [] });
    expectAlerts(delay(gauge([10, 0.01], [20, 0.24])), { 29: [] });
    expectAlerts(delay(gauge([10, 0.01], [20, 0.26], [5, 0.01])), { 19: [], 21: [LOOP], 29: [LOOP], 31: [] });
  });

  test('the worst instance counts, not the mean', () => {
    expectAlerts({ ...delay(gauge([20, 0.3])), ...delay(gauge([20, 0]), 'b') }, { 19: [LOOP] });
  });

  test('an instance that is gone, and a job without the metric, are silent', () => {
    expectAlerts(delay(gauge([20, 0.3], [20, undefined])), { 19: [LOOP], 31: [] });
    expectAlerts({ [of('a', 'heap_used_bytes')]: gauge([20, 1]) }, { 19: [] });
  });

  test('a collection every minute is silent, and so are instances that take turns at it', () => {
    const minutes = Array.from({ length: 20 });
    const one = minutes.map(() => '2 0').join(' ');
    const other = minutes.map(() => '0 2').join(' ');
    expectAlerts(delay(one), { 5: [], 12: [], 19: [] });
    expectAlerts({ ...delay(one), ...delay(other, 'b') }, { 5: [], 12: [], 19: [] });
  });
});

describe.skipIf(!hasPromtool)('A-16: HeapNearLimit', () => {
  const HEAP = 'HeapNearLimit job=shop';
  const heap = (used: string, limit: number | undefined = 1000 * MIB, instance = 'a'): SeriesSet => ({
    [of(instance, 'heap_used_bytes')]: used,
    [of(instance, 'heap_limit_bytes')]: gauge([30, limit]),
  });
  const filled = (share: number) => gauge([10, 100 * MIB], [20, share * 1000 * MIB]);

  test('85 % is silent; over it fires after the window and `for`', () => {
    expectAlerts(heap(filled(0.85)), { 29: [] });
    expectAlerts(heap(filled(0.84)), { 29: [] });
    expectAlerts(heap(filled(0.86)), { 16: [], 18: [HEAP], 29: [HEAP] });
  });

  test('a heap that is nearly full before each collection, and half empty after it, is silent', () => {
    const sawtooth = Array.from({ length: 10 }, () =>
      [0.5, 0.65, 0.8, 0.95].map((share) => share * 1000 * MIB),
    );
    expectAlerts(heap(sawtooth.flat().join(' ')), { 8: [], 19: [] });
  });

  test('each instance has its own limit', () => {
    const series = {
      ...heap(gauge([30, 900 * MIB]), 2000 * MIB),
      ...heap(gauge([30, 100 * MIB]), 110 * MIB, 'b'),
    };
    expectAlerts(series, { 29: [HEAP] });
    expectAlerts(heap(gauge([30, 900 * MIB]), 2000 * MIB), { 29: [] });
  });

  test('a limit of 0, or none, is silent', () => {
    expectAlerts(heap(gauge([30, 900 * MIB]), 0), { 29: [] });
    expectAlerts({ [of('a', 'heap_used_bytes')]: gauge([30, 900 * MIB]) }, { 29: [] });
    expectAlerts({ [of('a', 'heap_limit_bytes')]: gauge([30, 900 * MIB]) }, { 29: [] });
  });
});

describe.skipIf(!hasPromtool)('A-16: OpenFilesNearLimit', () => {
  const FILES = 'OpenFilesNearLimit job=shop';
  const files = (open: string, limit: number): SeriesSet => ({
    [of('a', 'open_files')]: open,
    [of('a', 'open_files_limit')]: gauge([30, limit]),
  });

  test('80 % is silent; over it fires after `for` and ends with it', () => {
    expectAlerts(files(gauge([30, 800]), 1000), { 29: [] });
    expectAlerts(files(gauge([30, 799]), 1000), { 29: [] });
    expectAlerts(files(gauge([10, 100], [10, 801], [5, 100]), 1000), {
      14: [],
      16: [FILES],
      19: [FILES],
      21: [],
    });
  });

  test('a burst of connections of 4 minutes is silent', () => {
    expectAlerts(files(gauge([10, 100], [4, 990], [10, 100]), 1000), { 13: [], 15: [], 20: [] });
  });

  test('not on Linux there is neither, and nothing is told; nor with one of them, or a limit of 0', () => {
    expectAlerts({}, { 29: [] });
    expectAlerts({ [of('a', 'open_files')]: gauge([30, 800]) }, { 29: [] });
    expectAlerts({ [of('a', 'open_files_limit')]: gauge([30, 800]) }, { 29: [] });
    expectAlerts(files(gauge([30, 800]), 0), { 29: [] });
  });
});
