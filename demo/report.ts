/** What is shown of one scenario: the waterfall, the verdict of each hop, and the same from the metrics. */
import type { Hop } from './hops.ts';
import { drawMetricsTable } from './metrics-table.ts';
import { cell, columns, type Line, ms, type Style } from './page.ts';
import type { Played } from './player.ts';
import { drawWaterfall } from './waterfall.ts';

/** Widths of service, outcome, phase and cause; what went on takes the rest. */
const WIDTHS = [15, 11, 26, 25] as const;
const OVERVIEW_WIDTHS = [20, 37] as const;

/** All of it. */
export function drawScenario(played: Played, width: number): Line[] {
  return [
    ...drawSpans(played, width),
    [],
    ...drawMetricsTable(played.figures, width),
    [],
    [cell('  → ', 'bold'), cell(played.scenario.lesson)],
  ];
}

/** What the spans of one request say. */
export function drawSpans({ answer, hops }: Played, width: number): Line[] {
  return [...drawWaterfall(answer, hops, width), [], ...drawVerdicts(hops)];
}

function drawVerdicts(hops: readonly Hop[]): Line[] {
  const heads = ['on their spans', 'outcome', 'time ran out in', 'because of', 'went on for nobody'];
  const lines: Line[] = [
    [cell('  '), ...heads.map((head, i) => cell(columns(head, -(WIDTHS[i] ?? 0)), 'dim'))],
  ];
  for (const hop of hops) {
    const texts: [string, Style][] = [
      [hop.service, 'bold'],
      [hop.outcome ?? '', outcomeStyle(hop)],
      [expiryOf(hop), 'plain'],
      [hop.cause ?? hop.cancelSource ?? '', hop.cause === undefined ? 'plain' : 'bold'],
      [hop.wentOnMs > 0 ? ms(hop.wentOnMs) : '', 'plain'],
    ];
    lines.push([
      cell('  '),
      ...texts.map(([text, style], i) => cell(columns(text, -(WIDTHS[i] ?? 0)), style)),
    ]);
    for (const remark of remarks(hop)) lines.push([cell(`  ${''.padEnd(WIDTHS[0])}${remark}`, 'dim')]);
  }
  return lines;
}

/** One line per scenario: what the edge saw, and what orders, where it happened, says of it. */
export function drawOverview(all: readonly Played[]): Line[] {
  const lines: Line[] = [
    [
      cell(
        `${columns('', -OVERVIEW_WIDTHS[0])}${columns('gateway says', -OVERVIEW_WIDTHS[1])}orders says`,
        'dim',
      ),
    ],
  ];
  for (const { scenario, hops } of all) {
    const [atGateway, atOrders] = ['gateway', 'orders'].map((name) =>
      hops.find(({ service }) => service === name),
    );
    lines.push([
      cell(columns(scenario.name, -OVERVIEW_WIDTHS[0]), 'bold'),
      cell(columns(summary(atGateway, false), -OVERVIEW_WIDTHS[1])),
      cell(summary(atOrders, true)),
    ]);
  }
  return lines;
}

function summary(hop: Hop | undefined, withPhase: boolean): string {
  if (hop === undefined) return '';
  const phase = withPhase ? expiryOf(hop) : '';
  const why = hop.cause ?? hop.cancelSource ?? '';
  return [hop.outcome ?? '', phase === '' ? '' : `in ${phase}`, why === '' ? '' : `by ${why}`]
    .filter(Boolean)
    .join(' ');
}

function outcomeStyle({ outcome }: Hop): Style {
  if (outcome === 'useful') return 'green';
  return outcome === 'cancelled' ? 'yellow' : 'red';
}

function expiryOf({ expiryPhase, expiryDependency }: Hop): string {
  if (expiryPhase === undefined) return '';
  return expiryDependency === undefined || expiryDependency === 'none'
    ? expiryPhase
    : `${expiryPhase} → ${expiryDependency}`;
}

/** What a person needs to agree or disagree with the verdict. */
function remarks(hop: Hop): string[] {
  const found: string[] = [];
  if (hop.cause === 'caller_budget_too_small' && hop.usualMs !== undefined) {
    found.push(`got ${ms(hop.receivedMs)}; usually takes ${ms(hop.usualMs)}`);
  }
  if (hop.cause === 'slow_dependency') {
    const slowest = hop.calls.toSorted(
      (left, right) => right.toMs - right.fromMs - (left.toMs - left.fromMs),
    )[0];
    if (slowest?.usualMs !== undefined) {
      found.push(
        `${slowest.dependency} took ${ms(slowest.toMs - slowest.fromMs)}; usually ${ms(slowest.usualMs)}`,
      );
    }
  }
  for (const call of hop.calls) {
    if (call.resetViolation)
      found.push(`${call.dependency} was given more time than the ${ms(call.leftBeforeMs)} left`);
  }
  return found;
}
