/** What is shown of one scenario: the waterfall, the verdict of each hop, and the same from the metrics. */
import type { Hop } from './hops.ts';
import { drawMetricsTable } from './metrics-table.ts';
import { cell, columns, type Line, ms, type Style } from './page.ts';
import type { Played } from './player.ts';
import { drawWaterfall } from './waterfall.ts';

/** Widths of service, outcome, phase and cause; what went on takes the rest. */
const WIDTHS = [14, 11, 26, 25] as const;

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
      [hop.postCancelMs > 0 ? ms(hop.postCancelMs) : '', 'plain'],
    ];
    lines.push([
      cell('  '),
      ...texts.map(([text, style], i) => cell(columns(text, -(WIDTHS[i] ?? 0)), style)),
    ]);
    for (const remark of remarks(hop)) lines.push([cell(`  ${''.padEnd(WIDTHS[0])}${remark}`, 'dim')]);
  }
  return lines;
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
