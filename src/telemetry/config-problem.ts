/** How a wrong setting is put into words: always one line, with the key, the value and what is allowed. */

const SHOWN_LENGTH = 40;
/** More lines than this help nobody; the rest is counted. */
const MAX_PROBLEMS = 20;

/** A value as it may stand in a message: quoted, shortened, on one line. */
export function shown(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'an empty value';
  if (typeof value === 'string') return JSON.stringify(shorten(oneLine(value)));
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : 'this list';
  return typeof value === 'object' ? 'this mapping' : `this ${typeof value}`;
}

/** Free text of others (a parser's message, a path) on one line. */
export function oneLine(text: string): string {
  // The separators U+2028 and U+2029 break lines in some viewers, control characters in all.
  return text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim();
}

export function shorten(text: string, length: number = SHOWN_LENGTH): string {
  const characters = [...text];
  return characters.length <= length ? text : `${characters.slice(0, length - 1).join('')}…`;
}

/** "key: value is not allowed; use …" */
export function wrongValue(key: string, value: unknown, allowed: string): string {
  return `${key}: ${shown(value)} is not allowed; use ${allowed}`;
}

/** "unknown key …", with the valid key that was probably meant. */
export function unknownKey(key: string, valid: readonly string[]): string {
  const near = nearestKey(key, valid);
  const name = JSON.stringify(shorten(oneLine(key)));
  if (near !== undefined) return `unknown key ${name}, did you mean "${near}"?`;
  return `unknown key ${name}; known here: ${valid.join(', ')}`;
}

/** The valid key nearest to a mistyped one; undefined where none is near enough to be meant. */
export function nearestKey(key: string, valid: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of valid) {
    const allowed = Math.max(2, Math.floor(Math.max(key.length, candidate.length) / 3));
    // Cheap bound first: a key of a thousand characters is not worth a table.
    if (Math.abs(key.length - candidate.length) > allowed) continue;
    const distance = editDistance(key.toLowerCase(), candidate.toLowerCase());
    if (distance > allowed || distance >= least) continue;
    nearest = candidate;
    least = distance;
  }
  return nearest;
}

/** Levenshtein distance by two rows. */
function editDistance(left: string, right: string): number {
  let previous = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row += 1) {
    const current = [row];
    for (let column = 1; column <= right.length; column += 1) {
      const replace = (previous[column - 1] ?? 0) + (left[row - 1] === right[column - 1] ? 0 : 1);
      current.push(Math.min(replace, (previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1));
    }
    previous = current;
  }
  return previous[right.length] ?? 0;
}

/** Without repeats, and with a last line that counts what was left out. */
export function bounded(problems: readonly string[]): readonly string[] {
  const distinct = [...new Set(problems)];
  if (distinct.length <= MAX_PROBLEMS) return distinct;
  const left = distinct.length - MAX_PROBLEMS + 1;
  return [...distinct.slice(0, MAX_PROBLEMS - 1), `… and ${left} more problems`];
}
