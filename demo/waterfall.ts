/** Draws the budget of one request over time: a row per hop and phase, what is past the deadline set apart. */
import type { Hop, HopCall, PhaseStretch, Stretch } from './hops.ts';
import { type Cell, cell, columns, joined, type Line, ms, type Style } from './page.ts';

/** What the caller saw: it is the only one that knows what it wanted. Milliseconds since it sent the request. */
export interface CallerView {
  readonly budgetMs: number;
  readonly endedMs: number;
  /** Status of the answer; undefined where the caller left without one. */
  readonly status: number | undefined;
}

const NAME_WIDTH = 27;
const NUMBER_WIDTH = 9;
/** A phase shorter than this share of the picture would be a row without a bar. */
const LEAST_SHARE = 0.008;
const LEAST_MS = 0.5;

const BEFORE = '█';
const AFTER = '░';

const PHASE_STYLES: Readonly<Record<string, Style>> = {
  queue: 'yellow',
  pool_wait: 'yellow',
  token: 'yellow',
  backoff: 'yellow',
  local: 'blue',
  event_loop: 'magenta',
  db_execution: 'cyan',
};

interface Scale {
  readonly width: number;
  readonly totalMs: number;
  readonly deadlineMs: number | undefined;
}

/** The picture as lines of at most `width` columns. */
export function drawWaterfall(caller: CallerView, hops: readonly Hop[], width: number): Line[] {
  const lastMs = Math.max(
    caller.endedMs,
    ...hops.flatMap((hop) => [hop.toMs, ...hop.calls.map((call) => call.toMs)]),
  );
  const isNear = caller.budgetMs <= lastMs * 1.5;
  const scale: Scale = {
    width: width - 2 - NAME_WIDTH - 2 * NUMBER_WIDTH - 1,
    totalMs: (isNear ? Math.max(lastMs, caller.budgetMs) : lastMs) * 1.02,
    deadlineMs: isNear ? caller.budgetMs : undefined,
  };
  return [
    axis(scale, caller.budgetMs),
    row(cell('caller', 'bold'), `gave ${ms(caller.budgetMs)}`, {
      bar: drawHop({ fromMs: 0, toMs: caller.endedMs }, caller.budgetMs, '━', scale),
      tookMs: caller.endedMs,
      leftMs: caller.budgetMs - caller.endedMs,
    }),
    ...hops.flatMap((hop) => drawHopRows(hop, scale)),
  ];
}

function axis(scale: Scale, budgetMs: number): Line {
  const marks = new Array<string>(scale.width).fill(' ');
  const put = (text: string, at: number) => {
    const from = Math.min(Math.max(0, at), scale.width - text.length);
    for (let i = 0; i < text.length; i++) marks[from + i] = text[i] ?? ' ';
  };
  put('0', 0);
  const last = ms(scale.totalMs / 1.02);
  const deadline = scale.deadlineMs === undefined ? `deadline at ${ms(budgetMs)} →` : '▼ deadline';
  if (scale.deadlineMs === undefined) put(deadline, scale.width);
  else {
    put(last, scale.width);
    put(deadline, column(scale.deadlineMs, scale));
  }
  return row(cell(''), '', { bar: [cell(marks.join(''), 'dim')], took: 'took', left: 'left' });
}

function drawHopRows(hop: Hop, scale: Scale): Line[] {
  const deadlineMs = hop.deadlineMs ?? Number.POSITIVE_INFINITY;
  const lines: Line[] = [
    row(cell(hop.service, 'bold'), hop.receivedMs === undefined ? 'no budget' : `got ${ms(hop.receivedMs)}`, {
      bar: drawHop(hop, deadlineMs, '─', scale),
      tookMs: hop.toMs - hop.fromMs,
      leftMs: hop.leftMs,
    }),
  ];
  const uselessMs = hop.uselessMs ?? Number.POSITIVE_INFINITY;
  for (const { label, stretches, leftMs } of phaseRows(hop)) {
    const tookMs = stretches.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
    if (tookMs < Math.max(LEAST_MS, scale.totalMs * LEAST_SHARE)) continue;
    const style = PHASE_STYLES[stretches[0]?.phase ?? ''] ?? 'green';
    lines.push(
      row(cell(`  ${label}`), '', { bar: drawBar(stretches, uselessMs, style, scale), tookMs, leftMs }),
    );
  }
  return lines;
}

interface PhaseRow {
  readonly label: string;
  readonly stretches: PhaseStretch[];
  leftMs: number | undefined;
}

/** A row per own phase, and per dependency and phase; what was left is known where a call ended. */
function phaseRows(hop: Hop): PhaseRow[] {
  const rows: PhaseRow[] = [];
  const add = (label: string, stretch: PhaseStretch, leftMs: number | undefined) => {
    const known = rows.find((one) => one.label === label);
    if (known === undefined) rows.push({ label, stretches: [stretch], leftMs });
    else {
      known.stretches.push(stretch);
      known.leftMs = leftMs ?? known.leftMs;
    }
  };
  for (const stretch of hop.own) add(stretch.phase, stretch, undefined);
  for (const call of hop.calls) {
    for (const stretch of call.phases) {
      add(
        `${stretch.phase} → ${call.dependency}`,
        stretch,
        isLast(stretch, call) ? call.leftAfterMs : undefined,
      );
    }
  }
  return rows.sort((left, right) => startOf(left) - startOf(right));
}

function startOf({ stretches }: PhaseRow): number {
  return Math.min(...stretches.map(({ fromMs }) => fromMs));
}

function isLast(stretch: PhaseStretch, call: HopCall): boolean {
  return call.phases.at(-1) === stretch;
}

function drawHop(hop: Stretch, deadlineMs: number, line: string, scale: Scale): Cell[] {
  return paint(scale, (fromMs, toMs) => {
    if (toMs <= hop.fromMs || fromMs >= hop.toMs) return undefined;
    return (fromMs + toMs) / 2 >= deadlineMs ? { mark: '┄', style: 'red' } : { mark: line, style: 'plain' };
  });
}

function drawBar(stretches: readonly Stretch[], uselessMs: number, style: Style, scale: Scale): Cell[] {
  return paint(scale, (fromMs, toMs) => {
    if (!stretches.some((stretch) => toMs > stretch.fromMs && fromMs < stretch.toMs)) return undefined;
    return (fromMs + toMs) / 2 >= uselessMs ? { mark: AFTER, style: 'red' } : { mark: BEFORE, style };
  });
}

interface Mark {
  readonly mark: string;
  readonly style: Style;
}

/** One character per step of time; the deadline runs through where nothing else is. */
function paint(scale: Scale, markFor: (fromMs: number, toMs: number) => Mark | undefined): Cell[] {
  const stepMs = scale.totalMs / scale.width;
  const deadlineAt = scale.deadlineMs === undefined ? -1 : column(scale.deadlineMs, scale);
  const cells: Cell[] = [];
  for (let i = 0; i < scale.width; i++) {
    const found = markFor(i * stepMs, (i + 1) * stepMs);
    if (found !== undefined) cells.push(cell(found.mark, found.style));
    else cells.push(i === deadlineAt ? cell('│', 'red') : cell(' '));
  }
  return joined(cells);
}

function column(atMs: number, scale: Scale): number {
  return Math.min(scale.width - 1, Math.floor((atMs / scale.totalMs) * scale.width));
}

interface RowParts {
  readonly bar: readonly Cell[];
  readonly took?: string;
  readonly left?: string;
  readonly tookMs?: number | undefined;
  readonly leftMs?: number | undefined;
}

function row(name: Cell, detail: string, { bar, took, left, tookMs, leftMs }: RowParts): Line {
  const room = NAME_WIDTH - name.text.length - detail.length - 1;
  const isOver = leftMs !== undefined && leftMs <= 0;
  return [
    cell('  '),
    name,
    cell(' '.repeat(Math.max(1, room))),
    cell(`${detail} `, 'dim'),
    ...bar,
    cell(columns(took ?? ms(tookMs), NUMBER_WIDTH), took === undefined ? 'plain' : 'dim'),
    cell(columns(left ?? ms(leftMs), NUMBER_WIDTH), left === undefined ? (isOver ? 'red' : 'plain') : 'dim'),
  ];
}
