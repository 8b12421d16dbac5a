/** Text for a terminal as styled pieces, so that one picture can be printed, stripped, measured or drawn. */
import { styleText } from 'node:util';

export type Style = 'plain' | 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta' | 'cyan';

export interface Cell {
  readonly text: string;
  readonly style: Style;
}
export type Line = readonly Cell[];

export function cell(text: string, style: Style = 'plain'): Cell {
  return { text, style };
}

/** Neighbours of one style become one cell. */
export function joined(cells: readonly Cell[]): Cell[] {
  const result: Cell[] = [];
  for (const next of cells) {
    const last = result.at(-1);
    if (last?.style === next.style) result[result.length - 1] = cell(last.text + next.text, next.style);
    else result.push(next);
  }
  return result;
}

/** A line as text without styles and without blanks at its end. */
export function plainText(line: Line): string {
  return line
    .map(({ text }) => text)
    .join('')
    .trimEnd();
}

/** A line as text with the styles that the stream shows: none without a terminal or with NO_COLOR. */
export function styledText(line: Line, stream: NodeJS.WriteStream): string {
  return line
    .map(({ text, style }) => (style === 'plain' ? text : styleText(style, text, { stream })))
    .join('')
    .trimEnd();
}

/** Text at the right of a column, with a negative width at its left. Longer text is kept, a blank apart. */
export function columns(text: string, width: number): string {
  return width < 0 ? `${text} `.padEnd(-width) : ` ${text}`.padStart(width);
}

/** Milliseconds for a reader: whole ones, below 10 with one decimal; nothing for what is unknown. */
export function ms(value: number | undefined): string {
  if (value === undefined) return '';
  const digits = Math.abs(value) < 9.95 && !Number.isInteger(value) ? 1 : 0;
  const text = value.toFixed(digits);
  return `${text === '-0' || text === '-0.0' ? '0' : text} ms`;
}
