import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import { oneLine, shorten } from './config-problem.ts';
import { camelCase, fileSchema, NAMED_GROUPS, optionsSchema, snakeCase } from './config-schema.ts';
import { issueLines, keyText } from './config-schema-issue.ts';
import type { Zod4 } from './config-schema-kit.ts';
import type { ConfigOptions } from './config-settings.ts';

/** Reads settings from a YAML file, and checks settings that were given in code, with the same schema. */

export type ReadFile = (path: string) => string;
export type OptionsReading = { readonly options: ConfigOptions } | { readonly problems: readonly string[] };

/** Characters; a real policy is a few kilobytes. */
export const MAX_FILE_LENGTH = 1024 * 1024;
/** Nodes that the aliases of a file may unfold to: enough to share settings, too few for an alias bomb. */
const MAX_ALIAS_COUNT = 50;

// Loaded on first use: zod (45 ms) and yaml (18 ms) are a cost that a service without a file must not pay.
// `require`, because this is synchronous; both packages have a build for it.
const load = createRequire(import.meta.url);

/** Every fault is one line that begins with the path as it was given. Nothing throws. */
export function readConfigFile(path: string, readFile: ReadFile): OptionsReading {
  const label = fileLabel(path);
  const fault = (text: string): OptionsReading => ({ problems: [`${label}: ${text}`] });

  let text: string;
  try {
    text = readFile(path);
  } catch (error) {
    return fault(`cannot be read: ${readFault(error)}`);
  }
  if (text.length > MAX_FILE_LENGTH) return fault(`is longer than ${MAX_FILE_LENGTH} characters`);
  // U+FFFD stands for bytes that are not UTF-8; a NUL is in every binary and every UTF-16 file.
  if (/[\0\uFFFD]/.test(text)) return fault('is not UTF-8 text');

  const parsed = parseYaml(text);
  if ('fault' in parsed) return fault(parsed.fault);
  if (parsed.value === null || parsed.value === undefined) {
    return fault('is empty; a configuration file holds at least the line "version: 1"');
  }
  // The cast is what `createRequire` cannot tell: the module that the type import above names.
  const outcome = check(parsed.value, fileSchema(load('zod') as Zod4));
  if ('lines' in outcome) return { problems: outcome.lines.map((line) => `${label}: ${line}`) };
  return { options: renamed(outcome.value) };
}

/** A setting as the file spells it, behind the path: `budget.yaml: entry.default_ms`. */
export function fileKey(path: string, key: readonly string[]): string {
  const [group = ''] = key;
  const spelt = key.map((part, at) => (at === 1 && NAMED_GROUPS.includes(group) ? part : snakeCase(part)));
  return `${fileLabel(path)}: ${keyText(spelt)}`;
}

function fileLabel(path: string): string {
  return shorten(oneLine(path), 120);
}

/** Checks settings given in code. Their keys are camelCase already. */
export function checkOptions(options: ConfigOptions): OptionsReading {
  // See above.
  const outcome = check(options, optionsSchema(load('zod') as Zod4));
  if ('lines' in outcome) return { problems: outcome.lines };
  // The schema has let through nothing but these keys and types; a test keeps it and the interface equal.
  return { options: outcome.value as ConfigOptions };
}

function readFault(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const code = 'code' in error ? error.code : undefined;
  if (code === 'ENOENT' || code === 'ENOTDIR') return 'there is no such file';
  if (code === 'EACCES' || code === 'EPERM') return 'this process may not read it';
  if (code === 'EISDIR') return 'it is a directory';
  return typeof code === 'string' ? code : shorten(oneLine(error.message), 120);
}

function parseYaml(text: string): { value: unknown } | { fault: string } {
  // See above.
  const yaml = load('yaml') as typeof Yaml;
  try {
    const document = yaml.parseDocument(text, { stringKeys: true });
    // A warning (an unknown tag) means that a value would be read as something else than was written.
    const error = document.errors[0] ?? document.warnings[0];
    if (error !== undefined) return { fault: `is not valid YAML: ${yamlFault(error.message)}` };
    return { value: document.toJS({ maxAliasCount: MAX_ALIAS_COUNT }) };
  } catch (error) {
    const message = error instanceof Error ? error.message : 'unknown error';
    return { fault: `is not usable YAML: ${yamlFault(message)}` };
  }
}

/** The first line has the reason and the place; the lines below it are an extract of the file. */
function yamlFault(message: string): string {
  const [first = ''] = message.split('\n');
  return shorten(oneLine(first).replace(/:$/, ''), 160);
}

function check(
  input: unknown,
  schema: ReturnType<typeof fileSchema>,
): { value: unknown } | { lines: readonly string[] } {
  const hidden = prototypeNames(input);
  const result = schema.safeParse(input);
  if (result.success && hidden.length === 0) return { value: result.data };
  const issues = result.success ? [] : result.error.issues;
  return { lines: [...hidden, ...issues.flatMap((issue) => issueLines(issue, input))] };
}

/** zod passes over a key `__proto__` among free names without a word. */
function prototypeNames(input: unknown): string[] {
  if (!isMapping(input)) return [];
  return NAMED_GROUPS.filter((group) => {
    const names = input[group];
    return isMapping(names) && Object.hasOwn(names, '__proto__');
  }).map((group) => `${group}: the name "__proto__" is not allowed`);
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The same settings with camelCase keys; free names stay as they are. */
function renamed(value: unknown): ConfigOptions {
  // As in `checkOptions`: the schema has let through nothing else.
  return renameKeys(value, 0, undefined) as ConfigOptions;
}

function renameKeys(value: unknown, depth: number, group: string | undefined): unknown {
  if (Array.isArray(value)) return value.map((item) => renameKeys(item, depth + 1, group));
  if (!isMapping(value)) return value;
  const areNames = depth === 1 && group !== undefined && NAMED_GROUPS.includes(group);
  return Object.fromEntries(
    Object.entries(value).map(([key, child]) => [
      areNames ? key : camelCase(key),
      renameKeys(child, depth + 1, depth === 0 ? key : group),
    ]),
  );
}
