/** One row per caller and dependency: which of the two sides moved (D-01). */
import { MappingType, type ValueMapping } from '@grafana/grafana-foundation-sdk/dashboard';
import { boardLink, ofRow } from './links.ts';
import type { Draft } from './panel.ts';
import { type Queries, RANGE, share, sum } from './queries.ts';
import { RECORDED } from './recorded.ts';
import { table } from './table.ts';

/** The verdict is a sum, so that every combination is a number of its own. */
const CALLER_MOVED = 1;
const DEPENDENCY_MOVED = 2;
/** Less than any finding, so that it sorts below them. */
const NO_BASELINE = 0.25;
const TEXTS: readonly (readonly [value: number, text: string, colour: string])[] = [
  [0, 'neither', 'green'],
  [CALLER_MOVED, 'caller: budgets too small', 'yellow'],
  [DEPENDENCY_MOVED, 'dependency: slower than usual', 'red'],
  [CALLER_MOVED + DEPENDENCY_MOVED, 'both', 'dark-red'],
  [NO_BASELINE, 'caller fine; dependency not compared', '#8e8e8e'],
  [CALLER_MOVED + NO_BASELINE, 'caller: budgets too small', 'yellow'],
];

/** p95 of calls as a multiple of the usual one, by service and dependency: what the alert on slow dependencies reads. */
export function slowness(q: Queries, range?: string): string {
  const record = q.recorded(RECORDED.callDurationAgainstBaseline, ['dependency']);
  const measured = range === undefined ? record : `avg_over_time(${record}[${range}])`;
  return `max by (${q.job}, dependency) (${measured})`;
}

export function verdictTable(q: Queries, place: { id: number; width: number; height: number }): Draft {
  const { job } = q;
  const { insufficientShare, slowFactor } = q.options;
  /** What there are rows for; times it, so that a measure of one side stands on each of them. */
  const pairs = `group by (${job}, caller, dependency) (${q.rate('calls', '', RANGE)} > 0)`;
  const short = share(
    sum(q.rate('insufficient', '', RANGE), job, 'caller'),
    sum(q.rate('offered', '', RANGE), job, 'caller'),
  );
  const onPairs = (side: string, vector: string) =>
    `${pairs} * on (${job}, ${side}) group_left () (${vector})`;
  const verdict = [
    `${pairs} * on (${job}, caller) group_left () (${short} > bool ${insufficientShare})`,
    `(${onPairs('dependency', `${DEPENDENCY_MOVED} * (${slowness(q, RANGE)} > bool ${slowFactor})`)} or ${NO_BASELINE} * ${pairs})`,
  ].join(' + ');
  const bound = (more: string) => sum(q.rate('calls', more, RANGE), job, 'caller', 'dependency');
  return table({
    ...place,
    title: 'Slow dependency, or budgets of the caller? One row for each caller and dependency',
    question: 'Which side moved: the time that is given, or the time that is needed?',
    shown: `too little time ÷ offered, over ${percent(insufficientShare)} = the caller; p95 ÷ usual p95, over ${slowFactor} = the dependency; limited by what is left ÷ calls.`,
    action:
      'caller: its owner raises the budget. dependency: its owner is called. both: the dependency first.',
    noValue: 'no call from a request yet',
    keys: { [job]: 'service', caller: 'caller', dependency: 'dependency' },
    columns: [
      {
        title: 'verdict',
        expr: verdict,
        unit: 'none',
        properties: [
          { id: 'mappings', value: mappings() },
          { id: 'custom.cellOptions', value: { type: 'color-text' } },
          { id: 'custom.align', value: 'left' },
          { id: 'custom.minWidth', value: 260 },
        ],
      },
      { title: 'too little time', expr: onPairs('caller', short), unit: 'percentunit', isShare: true },
      {
        title: 'limited by what is left',
        expr: share(bound('binding_term="remaining_minus_reserve"'), bound('')),
        unit: 'percentunit',
        isShare: true,
      },
      {
        title: 'p95 of calls',
        expr: onPairs('dependency', q.quantile(0.95, 'callDuration', [job, 'dependency'], '', RANGE)),
        unit: 's',
      },
      {
        title: '× usual p95',
        expr: onPairs('dependency', slowness(q, RANGE)),
        unit: 'none',
        properties: [{ id: 'decimals', value: 2 }],
      },
    ],
    sortBy: 'verdict',
    links: [
      boardLink(q.options, 'dependencies', 'This dependency alone', {
        job: ofRow('service'),
        dependency: ofRow('dependency'),
      }),
      boardLink(q.options, 'path', 'What this caller gets', {
        job: ofRow('service'),
        caller: ofRow('caller'),
      }),
    ],
  });
}

function mappings(): ValueMapping[] {
  const options = Object.fromEntries(
    TEXTS.map(([value, text, color], index) => [String(value), { text, color, index }]),
  );
  return [{ type: MappingType.ValueToText, options }];
}

function percent(value: number): string {
  return `${Math.round(value * 100)} %`;
}
