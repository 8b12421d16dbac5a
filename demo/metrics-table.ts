/** The figures of the services' own metrics side by side: a column per service. */
import type { Counted, Figures, Mean } from './figures.ts';
import { cell, type Line, ms } from './page.ts';

const NAME_WIDTH = 26;

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

type Row = readonly [name: string, read: (figures: Figures) => string[]];

function rows(figures: readonly Figures[]): [string, string[][]][] {
  const all: Row[] = [
    ['received', (f) => means(f.receivedMs)],
    ['left on arrival', (f) => leftAt(f, 'received')],
    ['spent: queue', (f) => means(f.queueMs)],
    ['spent: handler', (f) => means(f.handlerMs)],
    ...phaseNames(figures).map(
      (name): Row => [
        name,
        (f) => f.phases.filter((one) => nameOf(one) === name).map(({ spent }) => times(spent)),
      ],
    ),
    ['left before a call', (f) => leftAt(f, 'before_call')],
    ['left after a call', (f) => leftAt(f, 'after_call')],
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
    .map(([name, read]): [string, string[][]] => [name, figures.map((one) => read(one))])
    .filter(([, values]) => values.some((texts) => texts.length > 0));
}

/** Phases that took no time to speak of would hide the ones that did. */
function phaseNames(figures: readonly Figures[]): string[] {
  const notable = figures.flatMap(({ phases }) => phases.filter(({ spent }) => spent.meanMs >= 1));
  return [...new Set(notable.map(nameOf))];
}

function nameOf({ phase, dependency }: Figures['phases'][number]): string {
  return `${phase} → ${dependency}`;
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

function fitted(text: string, width: number): string {
  return text.length < width ? text.padEnd(width) : `${text.slice(0, width - 2)}… `;
}
