/**
 * Draws the waterfalls of a real run of the demo as docs/waterfall.svg. Every figure in it was measured in that
 * run: `node scripts/waterfall-picture.ts`, after `npm run build`.
 */
import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { cell, type Line, type Style } from '../demo/page.ts';
import type { Played } from '../demo/player.ts';
import { drawSpans } from '../demo/report.ts';

/** The two that look alike on a latency dashboard. */
const SCENARIOS = ['slow-dependency', 'unrealistic-budget'];
const COLUMNS = 100;

const FONT_PX = 13;
/** Width of a character of a monospaced font at this size; the text is stretched to it, whatever the font. */
const COLUMN_PX = 7.8;
const LINE_PX = 18;
const PADDING_PX = 18;

const COLOURS: Readonly<Record<Style, string>> = {
  plain: '#d1d7e0',
  bold: '#ffffff',
  dim: '#8b949e',
  red: '#ff7b72',
  green: '#56d364',
  yellow: '#e3b341',
  blue: '#79c0ff',
  magenta: '#d2a8ff',
  cyan: '#39c5cf',
};

/** Characters that are drawn, so that bars have no gaps between letters: height as a share of the line, opacity. */
const BARS: Readonly<Record<string, { readonly height: number; readonly opacity: number }>> = {
  '█': { height: 0.72, opacity: 1 },
  '░': { height: 0.72, opacity: 0.38 },
  '━': { height: 0.16, opacity: 1 },
  '─': { height: 0.08, opacity: 0.8 },
  '┄': { height: 0.08, opacity: 0.8 },
};
const DEADLINE = '│';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const lines: Line[] = [];
for (const played of await playDemo()) {
  if (!SCENARIOS.includes(played.scenario.name)) continue;
  if (lines.length > 0) lines.push([]);
  lines.push([cell(played.scenario.title, 'bold')], ...drawSpans(played, COLUMNS));
}
await writeFile(new URL('../docs/waterfall.svg', import.meta.url), picture(lines));

async function playDemo(): Promise<readonly Played[]> {
  const wanted = SCENARIOS.flatMap((name) => ['--scenario', name]);
  const { stdout } = await promisify(execFile)(process.execPath, ['demo/run.ts', '--json', ...wanted], {
    cwd: ROOT,
    maxBuffer: 64 * 1024 * 1024,
  });
  // The demo prints exactly this.
  return (JSON.parse(stdout) as { readonly scenarios: readonly Played[] }).scenarios;
}

function picture(page: readonly Line[]): string {
  const width = Math.ceil(COLUMNS * COLUMN_PX + 2 * PADDING_PX);
  const height = Math.ceil(page.length * LINE_PX + 2 * PADDING_PX);
  const drawn = page.flatMap((line, i) => drawLine(line, PADDING_PX + i * LINE_PX));
  const font = "ui-monospace, SFMono-Regular, 'SF Mono', Menlo, Consolas, 'Liberation Mono', monospace";
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>Budget waterfalls of requests of the demo</title>`,
    `<rect width="${width}" height="${height}" rx="8" fill="#161b22"/>`,
    `<g font-family="${font}" font-size="${FONT_PX}">`,
    ...drawn,
    '</g>',
    '</svg>',
    '',
  ].join('\n');
}

function drawLine(line: Line, top: number): string[] {
  const drawn: string[] = [];
  let column = 0;
  for (const { text, style } of line) {
    for (const run of runs(text)) {
      const x = PADDING_PX + column * COLUMN_PX;
      column += run.length;
      if (run.trim() === '') continue;
      drawn.push(drawRun(run, style, x, top));
    }
  }
  return drawn;
}

/** Cuts a text where drawn characters, blanks at the ends and words meet. */
function runs(text: string): readonly string[] {
  return text.match(/█+|░+|━+|─+|┄+|│|[^█░━─┄│]+/gu) ?? [];
}

function drawRun(run: string, style: Style, x: number, top: number): string {
  const fill = COLOURS[style];
  const bar = BARS[run[0] ?? ''];
  const width = run.length * COLUMN_PX;
  if (bar !== undefined) {
    const height = LINE_PX * bar.height;
    const y = top + (LINE_PX - height) / 2;
    return `<rect x="${px(x)}" y="${px(y)}" width="${px(width)}" height="${px(height)}" fill="${fill}" opacity="${bar.opacity}"/>`;
  }
  if (run === DEADLINE) {
    const middle = px(x + COLUMN_PX / 2);
    return `<path d="M${middle} ${px(top)}v${LINE_PX}" stroke="${fill}" stroke-dasharray="3 3"/>`;
  }
  const start = run.length - run.trimStart().length;
  const words = run.trim();
  const weight = style === 'bold' ? ' font-weight="bold"' : '';
  const baseline = px(top + LINE_PX * 0.72);
  const left = px(x + start * COLUMN_PX);
  return (
    `<text x="${left}" y="${baseline}" fill="${fill}"${weight} xml:space="preserve" ` +
    `textLength="${px(words.length * COLUMN_PX)}" lengthAdjust="spacingAndGlyphs">${escaped(words)}</text>`
  );
}

function px(value: number): string {
  return String(Math.round(value * 100) / 100);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
