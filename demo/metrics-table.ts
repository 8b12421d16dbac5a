/** The figures of the services' own metrics side by side: a column per service. */
import type { Counted, Figures, Mean } from './figures.ts';
import { cell, type Line, ms } from './page.ts';

const NAME_WIDTH = 24;

/** The table as lines of at most `width` columns. Rows in which no service has anything are left out. */
export function drawMetricsTable(figures: readonly Figures[], width: number): Line[] {
  const columnWidth = Math.floor((width - 2 - NAME_WIDTH) / Math.max(1, figures.length));
  const lines: Line[] = [
    [
      cell(`  ${'in their own metrics'.padEnd(NAME_WIDTH)}`, 'dim'),
      ...figures.map(({ service }) => cell(service.padEnd(columnWidth), 'bold')),
    ],
  ];
  for (const [name, values] of rows(figures)) {
    const height = Math.max(...values.map((texts) => texts.length));
    for (let i = 0; i < height; i++) {
      lines.push([
        cell(`  ${(i === 0 ? name : '').padEnd(NAME_WIDTH)}`, 'dim'),
        ...values.map((texts) => cell(fitted(texts[i] ?? '', columnWidth))),
      ]);
    }
  }
  return lines;
}

function rows(figures: readonly Figures[]): [string, string[][]][] {
  const all: [string, (figures: Figures) => string[]][] = [
    ['received', (f) => means(f.receivedMs)],
    ['spent in queue', (f) => means(f.queueMs)],
    ['spent in handler', (f) => means(f.handlerMs)],
    [
      '  of it in calls',
      (f) => f.phases.filter(isNotable).map((p) => `${p.phase} ${p.dependency} ${times(p.spent)}`),
    ],
    ['left on arrival', (f) => leftAt(f, 'received')],
    [
      'left before, after calls',
      (f) => [joinedPair(leftAt(f, 'before_call')[0], leftAt(f, 'after_call')[0])],
    ],
    ['overrun', (f) => means(f.overrunMs)],
    ['outcome', (f) => counts(f.outcomes)],
    ['time ran out in', (f) => counts(f.expiries)],
    ['because of', (f) => counts(f.causes)],
    ['ended early by', (f) => counts(f.cancelSources)],
    ['worked for nobody', (f) => f.postCancel.map(({ work, ms: spent }) => `${ms(spent)} ${work}`)],
    ['entry verdict', (f) => counts(f.verdicts)],
    ['violations', (f) => counts(f.violations)],
  ];
  return all
    .map(([name, read]): [string, string[][]] => [
      name,
      figures.map((one) => read(one).filter((text) => text !== '')),
    ])
    .filter(([, values]) => values.some((texts) => texts.length > 0));
}

/** Phases that took no time to speak of would hide the ones that did. */
function isNotable({ spent }: Figures['phases'][number]): boolean {
  return spent.meanMs >= 1;
}

function leftAt({ left }: Figures, point: string): string[] {
  return means(left.find((one) => one.point === point)?.left);
}

function means(mean: Mean | undefined): string[] {
  return mean === undefined ? [] : [times(mean)];
}

function times({ meanMs, count }: Mean): string {
  return count === 1 ? ms(meanMs) : `${ms(meanMs)} ×${count}`;
}

function counts(counted: readonly Counted[]): string[] {
  return counted.map(({ name, count }) => (count === 1 ? name : `${name} ×${count}`));
}

function joinedPair(before: string | undefined, after: string | undefined): string {
  return before === undefined && after === undefined ? '' : `${before ?? ''}, ${after ?? ''}`;
}

function fitted(text: string, width: number): string {
  return text.length < width ? text.padEnd(width) : `${text.slice(0, width - 2)}… `;
}
