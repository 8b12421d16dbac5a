import type * as Zod from 'zod';
import { shorten, shown, wrongValue } from './config-problem.ts';
import { LINE } from './config-schema-kit.ts';

/** Puts what the schema found into lines: one per wrong value, missing key or unknown key. */
export function issueLines(issue: Zod.core.$ZodIssue, input: unknown): readonly string[] {
  const { path, message } = issue;
  if (issue.code === 'unrecognized_keys') {
    const where = path.length === 0 ? '' : `${keyText(path)}: `;
    return message.split(LINE).map((line) => `${where}${line}`);
  }
  if (issue.code === 'invalid_key') {
    return [`${keyText(path.slice(0, -1))}: the name ${shown(path.at(-1))} is not allowed; use ${message}`];
  }
  const value = valueAt(input, path);
  if (path.length === 0) return [wrongValue('content', value, message)];
  if (value === undefined) return [`${keyText(path)}: missing; use ${message}`];
  return [wrongValue(keyText(path), value, message)];
}

/** `operations."GET /a".default_ms`, `routes[0].path`. */
export function keyText(path: readonly PropertyKey[]): string {
  let text = '';
  for (const part of path) {
    if (typeof part === 'number') {
      text += `[${part}]`;
      continue;
    }
    const name = String(part);
    const plain = /^[A-Za-z0-9_-]+$/.test(name) ? shorten(name) : shown(name);
    text += text === '' ? plain : `.${plain}`;
  }
  return text;
}

function valueAt(input: unknown, path: readonly PropertyKey[]): unknown {
  let value = input;
  for (const part of path) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = Reflect.get(value, part);
  }
  return value;
}
