/** Series over hours, and which alerts fire at a moment of them, by `promtool test rules`. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { type OptionTexts, readOptions } from '../../rules/options.ts';
import { rulesFile } from '../../rules/rules-file.ts';
import { SECONDS_BUCKETS } from '../../src/telemetry/names.ts';
import { findProgram } from './real-program.ts';

/** The committed file. */
export const RULES: string = fileURLToPath(
  new URL('../../dashboards/alerts/time-budget.rules.yml', import.meta.url),
);

const promtool = findProgram('promtool');
export const hasPromtool: boolean = promtool !== undefined;

/** Of samples, and of the runs of the committed rules. */
const EVERY_S = 30;

/** Minutes, and the events per second in them; `undefined` for a series that is not there. */
export type Phase = readonly [minutes: number, perSecond: number | undefined];

/** Series by their selectors, in promtool's notation. */
export type SeriesSet = Readonly<Record<string, string>>;

export function counter(...phases: readonly Phase[]): string {
  let value = 0;
  return phases
    .map(([minutes, perSecond]) => {
      const count = samples(minutes);
      if (perSecond === undefined) return `_x${count}`;
      const from = value;
      value += perSecond * EVERY_S * count;
      return `${decimal(from)}+${decimal(perSecond * EVERY_S)}x${count - 1}`;
    })
    .join(' ');
}

/** A process that starts again at 0. */
export function restarted(...runs: readonly (readonly Phase[])[]): string {
  return runs.map((phases) => counter(...phases)).join(' ');
}

export function gauge(...phases: readonly Phase[]): string {
  return phases
    .map(([minutes, value]) => {
      const count = samples(minutes);
      return value === undefined ? `_x${count}` : `${decimal(value)}x${count - 1}`;
    })
    .join(' ');
}

/** A rising or falling gauge. */
export function slope(minutes: number, from: number, perMinute: number): string {
  return `${decimal(from)}${perMinute < 0 ? '-' : '+'}${decimal((Math.abs(perMinute) * EVERY_S) / 60)}x${samples(minutes) - 1}`;
}

/** A histogram of seconds in which everything took the same: minutes, events per second, seconds each. */
export function histogram(
  name: string,
  labels: string,
  phases: readonly (readonly [minutes: number, perSecond: number, seconds: number])[],
  bounds: readonly number[] = SECONDS_BUCKETS,
): SeriesSet {
  const bucket = (bound: number) =>
    counter(...phases.map(([minutes, perSecond, value]): Phase => [minutes, value <= bound ? perSecond : 0]));
  return Object.fromEntries(
    [...bounds, Number.POSITIVE_INFINITY].map((bound) => {
      const le = bound === Number.POSITIVE_INFINITY ? '+Inf' : String(bound);
      return [`${name}_bucket{${labels},le="${le}"}`, bucket(bound)];
    }),
  );
}

function samples(minutes: number): number {
  return Math.round((minutes * 60) / EVERY_S);
}

/** Without an exponent, which the notation does not know. */
function decimal(value: number): string {
  return String(Number(value.toFixed(6)));
}

/** What fires, by minute: `Alert label=value …`, in any order. */
export type Moments = Readonly<Record<number, readonly string[]>>;

const SHOWN = [
  'alertname',
  'job',
  'operation',
  'dependency',
  'caller',
  'kind',
  'queue',
  'mode',
  'label',
  'window',
];

/**
 * undefined if at each moment exactly these alerts fire and no other; else what promtool says. Over many hours the
 * rules are better run more seldom: `everyS` in place of every 30 s.
 */
export function wrongAlerts(
  series: SeriesSet,
  moments: Moments,
  everyS: number = EVERY_S,
): string | undefined {
  const expressions = Object.entries(moments).map(([minute, firing]) => ({
    expr: `count by (${SHOWN.join(', ')}) (ALERTS{alertstate="firing"})`,
    eval_time: `${Number(minute) * 60}s`,
    exp_samples: firing.map((alert) => ({ labels: labelsOf(alert), value: 1 })),
  }));
  return wrongSamples(series, expressions, everyS);
}

/** Exactly these alerts fire at each moment. */
export function expectAlerts(series: SeriesSet, moments: Moments, everyS?: number): void {
  expect(wrongAlerts(series, moments, everyS)).toBe(undefined);
}

/** Minutes in one, for moments. */
export const HOUR = 60;
/** Seconds between two runs of the rules, for series over hours. */
export const HOURS_EVERY_S = 60;
/** Where nothing else is said, of what the series are. */
export const JOB = 'job="shop",instance="a"';

export interface ExpressionTest {
  readonly expr: string;
  readonly eval_time: string;
  readonly exp_samples: readonly { readonly labels: string; readonly value: number }[];
}

/** What is tested is the committed file, unless `everyS` is another. */
export function wrongSamples(
  series: SeriesSet,
  expressions: readonly ExpressionTest[],
  everyS: number = EVERY_S,
): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-rules-'));
  try {
    const own = join(folder, 'rules.yml');
    const isOwn = everyS !== EVERY_S;
    // The rules count runs, so they must know how often they run.
    if (isOwn) writeFileSync(own, makeRules({ 'evaluation-interval': [`${everyS}s`] }));
    const file = join(folder, 'test.json');
    const content = {
      rule_files: [isOwn ? own : RULES],
      evaluation_interval: `${everyS}s`,
      tests: [
        {
          interval: `${EVERY_S}s`,
          input_series: Object.entries(series).map(([name, values]) => ({ series: name, values })),
          promql_expr_test: expressions,
        },
      ],
    };
    // JSON is YAML too.
    writeFileSync(file, JSON.stringify(content));
    const { status, stdout, stderr } = spawnSync(promtool ?? 'promtool', ['test', 'rules', file], {
      encoding: 'utf8',
    });
    return status === 0 ? undefined : `${stdout}${stderr}`;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

export function makeRules(options: OptionTexts): string {
  const read = readOptions(options);
  if ('problems' in read) throw new Error(read.problems.join('\n'));
  return rulesFile(read.options, 'a test');
}

/** `Burn job=shop window=1h` → `{alertname="Burn", job="shop", window="1h"}`. No value may hold a space. */
function labelsOf(alert: string): string {
  const [name, ...labels] = alert.split(' ');
  const pairs = labels.map((label) => label.split('=', 2));
  return `{${[['alertname', name], ...pairs].map(([key, value]) => `${key}="${value}"`).join(', ')}}`;
}
