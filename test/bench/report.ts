/** Writes down what a run measured, as Markdown; the same text for the terminal and the page. */
import type { Round, Scrape } from './comparison.ts';
import type { SeriesShape } from './fill.ts';
import type { Step } from './micro.ts';
import type { BudgetCost } from './retry-budget.ts';
import type { Workload } from './services.ts';
import { type Spread, spread } from './statistics.ts';
import type { OwnPart } from './switching.ts';
import { cpuRatio, judge, type Verdict } from './targets.ts';
import { VARIANT_NAMES, VARIANTS, type Variant } from './variants.ts';

export interface NamedScrape extends Scrape {
  readonly variant: Variant;
  /** undefined: the series of the workload alone. */
  readonly shape: SeriesShape | undefined;
}

export interface Results {
  readonly rounds: readonly Round[];
  readonly ownParts: readonly OwnPart[];
  readonly steps: readonly Step[];
  readonly scrapes: readonly NamedScrape[];
  readonly budgets: readonly BudgetCost[];
}

export function tablesOf({ rounds, ownParts, steps, scrapes, budgets }: Results): string {
  return [
    '## Targets',
    'Met in this run or not; nothing in the tests depends on it.',
    targetTable(judge(rounds)),
    '## Side by side',
    'Median of the rounds; ratios are taken within a round and have their smallest and largest beside them.',
    cpuTable(rounds, 'service', ['bare', 'otel']),
    cpuTable(rounds, 'hello', ['bare', 'otel']),
    startAndHeapTable(rounds),
    '## Our own part',
    'CPU time of the main thread that the hooks add to a request, switched on and off in random order inside one ' +
      'process: the median over all pairs and its 95 % interval. No SDK is loaded.',
    ownPartTable(ownParts),
    '## A scrape',
    'Longest time for which a scrape of the Prometheus endpoint held the event loop.',
    scrapeTable(scrapes),
    '## Single steps',
    'In a loop, hot: a lower bound of what the step costs in a service.',
    stepTable(steps),
    '## Retry budgets',
    'One payment in and one withdrawal, at 10,000 per second of their clock, each counter in a process of its own; the ' +
      'last two are counters that work as those of tower and cockatiel do, beside which ours are shown.',
    budgetTable(budgets),
  ].join('\n\n');
}

function targetTable(verdicts: readonly Verdict[]): string {
  const rows = verdicts.map(({ name, limit, goal, measured, digits }) => {
    const isMet = measured.median <= limit;
    const isGoalMet = goal !== undefined && measured.median <= goal;
    return [
      name,
      `≤ ${limit}`,
      goal === undefined ? '' : `≤ ${goal}`,
      spreadText(measured, digits),
      isMet ? (isGoalMet ? 'met, the goal too' : 'met') : 'missed',
    ];
  });
  return table(['what', 'target', 'goal', 'this run', ''], rows);
}

function cpuTable(rounds: readonly Round[], workload: Workload, bases: readonly Variant[]): string {
  const rows = VARIANTS.map((variant) => {
    const loads = rounds.map((round) => round[variant][workload]);
    return [
      VARIANT_NAMES[variant],
      spreadText(spread(loads.map(({ cpuUs }) => cpuUs)), 1),
      ...bases.map((base) =>
        variant === base ? '1' : spreadText(cpuRatio(rounds, variant, base, workload), 3),
      ),
      spreadText(spread(loads.map(({ requestsPerS }) => requestsPerS)), 0),
    ];
  });
  const ratioHeads = bases.map((base) => `of ${VARIANT_NAMES[base]}`);
  return table([workload, 'CPU per request, µs', ...ratioHeads, 'requests per second'], rows);
}

function startAndHeapTable(rounds: readonly Round[]): string {
  const rows = VARIANTS.map((variant) => [
    VARIANT_NAMES[variant],
    spreadText(spread(rounds.map((round) => round[variant].startMs)), 0),
    spreadText(spread(rounds.map((round) => round[variant].memory.heldBytes)), 0),
    spreadText(spread(rounds.map((round) => round[variant].memory.idleBytes)), 0),
  ]);
  return table(['service', 'start to listening, ms', 'in flight, bytes', 'idle afterwards, bytes'], rows);
}

function ownPartTable(parts: readonly OwnPart[]): string {
  const rows = parts.map(({ name, addedUs, withoutUs }) => [
    name,
    `${addedUs.median.toFixed(2)} (${addedUs.low.toFixed(2)} to ${addedUs.high.toFixed(2)})`,
    withoutUs.toFixed(1),
  ]);
  return table(['request', 'added, µs', 'without, µs'], rows);
}

function scrapeTable(scrapes: readonly NamedScrape[]): string {
  const rows = scrapes.map(({ variant, shape, samples, bytes, blockMs }) => [
    VARIANT_NAMES[variant],
    shape === undefined
      ? 'of the workload alone'
      : `${shape.operations} operations, ${shape.callers} callers, ${shape.dependencies} dependencies`,
    String(samples),
    String(Math.round(bytes / 1000)),
    blockMs.toFixed(1),
  ]);
  return table(['variant', 'series', 'samples', 'kB', 'loop held, ms'], rows);
}

function stepTable(steps: readonly Step[]): string {
  return table(
    ['step', 'ns'],
    steps.map(({ name, ns }) => [name, spreadText(ns, 0)]),
  );
}

function budgetTable(budgets: readonly BudgetCost[]): string {
  return table(
    ['counter', 'ns', 'bytes allocated', 'first after an idle night, µs'],
    budgets.map(({ name, ns, bytes, afterNightUs }) => [
      name,
      spreadText(ns, 1),
      bytes.median.toFixed(2),
      spreadText(afterNightUs, 1),
    ]),
  );
}

function spreadText({ median, min, max }: Spread, digits: number): string {
  return `${median.toFixed(digits)} (${min.toFixed(digits)} to ${max.toFixed(digits)})`;
}

/** Columns as wide as their widest cell, so that it also reads in a terminal. */
function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((name, column) =>
    Math.max(3, name.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
