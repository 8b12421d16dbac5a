import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { type LabelCaps, seriesBound } from '../../src/telemetry/metrics.ts';
import { METRICS, type MetricDefinition } from '../../src/telemetry/names.ts';

const SCRIPT = fileURLToPath(new URL('../../scripts/sizing.ts', import.meta.url));

function run(...args: readonly string[]) {
  return spawnSync(process.execPath, [SCRIPT, ...args], { encoding: 'utf8' });
}

/** The numbers of the one row: instances, series, samples/s, spans/s made and kept. */
function row(...args: readonly string[]): number[] {
  const { stdout, stderr } = run(...args);
  expect(stderr).toBe('');
  const cells = stdout.trimEnd().split('\n').at(-1)?.split('|') ?? [];
  return cells.filter((cell) => /\d/.test(cell)).map((cell) => Number(cell.replaceAll(',', '')));
}

function most(caps: LabelCaps): number {
  return Object.values(METRICS).reduce((sum, metric: MetricDefinition) => sum + seriesBound(metric, caps), 0);
}

it('multiplies the bounds of docs/signals.md and the traffic, each by its own', () => {
  const caps = { operation: 12, dependency: 5, caller: 4 };
  const shape = ['--operations', '12', '--dependencies', '5', '--callers', '4'];
  expect(
    row(
      ...shape,
      '--instances',
      '300',
      '--interval',
      '10',
      '--requests',
      '35',
      '--calls',
      '4',
      '--kept',
      '0.2',
    ),
  ).toEqual([300, 300 * most(caps), 30 * most(caps), 300 * 35 * 5, 60 * 35 * 5]);
});

it('takes the default caps where nothing is said', () => {
  expect(row('--instances', '1')[1]).toBe(most({ operation: 50, dependency: 20, caller: 8 }));
});

it.each([
  ['--interval', '0'],
  ['--requests', '-1'],
  ['--calls', 'many'],
  ['--kept', ''],
])('refuses %s %j, and says what is allowed', (option, value) => {
  const { status, stderr } = run(`${option}=${value}`);
  expect(status).not.toBe(0);
  expect(stderr).toContain(`${option} must be a number from 0, got ${JSON.stringify(value)}`);
});
