#!/usr/bin/env node
/** `npx otel-time-budget rules`: the alert rules for Prometheus, with thresholds of one's own. */
import { readFileSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { nearestKey, oneLine, shorten } from '../src/telemetry/config-problem.ts';
import { type OptionTexts, OTHER_OPTIONS, readOptions } from './options.ts';
import { optionName, PARAMETER_NAMES, PARAMETERS } from './parameters.ts';
import { rulesFile } from './rules-file.ts';

const NAME = 'otel-time-budget';
const VALUE_OPTIONS = [...PARAMETER_NAMES.map(optionName), ...Object.keys(OTHER_OPTIONS), 'out'];
const FLAGS = ['check', 'help'];

function help(): string {
  const row = (option: string, value: string, text: string) => `  --${option} ${value}`.padEnd(42) + text;
  return [
    `${NAME} rules [options]`,
    '',
    'Writes recording rules and alerts for Prometheus 2.42 and newer.',
    '',
    row('out', 'FILE', 'Where to; otherwise to the standard output.'),
    row('check', '', 'Write nothing; fail when FILE is not what would be written.'),
    ...Object.entries(OTHER_OPTIONS).map(([name, option]) =>
      row(name, option.value, `${option.why}${option.default === '' ? '' : ` (${option.default})`}`),
    ),
    '',
    ...PARAMETER_NAMES.map((name) =>
      row(optionName(name), String(PARAMETERS[name].default), PARAMETERS[name].why),
    ),
    '',
  ].join('\n');
}

interface Asked {
  readonly command: string | undefined;
  readonly texts: OptionTexts;
  readonly out: string | undefined;
  readonly isCheck: boolean;
  readonly isHelp: boolean;
}

/** By hand over the tokens, so that an unknown name is told with the one that was meant. */
function readArguments(args: readonly string[], problems: string[]): Asked {
  const options = Object.fromEntries([
    ...VALUE_OPTIONS.map((name) => [name, { type: 'string' as const }]),
    ...FLAGS.map((name) => [name, { type: 'boolean' as const }]),
  ]);
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const texts: Record<string, string[]> = {};
  const words: string[] = [];
  const flags = new Set<string>();
  for (const token of tokens) {
    if (token.kind === 'positional') words.push(token.value);
    if (token.kind !== 'option') continue;
    const { name, value } = token;
    if (FLAGS.includes(name)) flags.add(name);
    else if (!VALUE_OPTIONS.includes(name)) problems.push(unknown('option', `--${name}`, optionWords()));
    // A name in the place of a value is a value that was forgotten.
    else if (value === undefined || value.startsWith('--')) problems.push(`--${name} needs a value`);
    else (texts[name] ??= []).push(value);
  }
  // Behind a name that is not known stands its value.
  if (words.length > 1 && problems.length === 0)
    problems.push(`too many words: ${words.slice(1).map(shortly).join(', ')}`);
  return {
    command: words[0],
    texts,
    out: texts.out?.at(-1),
    isCheck: flags.has('check'),
    isHelp: flags.has('help'),
  };
}

function optionWords(): string[] {
  return [...VALUE_OPTIONS, ...FLAGS].map((name) => `--${name}`);
}

function shortly(text: string): string {
  return JSON.stringify(shorten(oneLine(text)));
}

function unknown(what: string, name: string, known: readonly string[]): string {
  const near = nearestKey(name, known);
  return `unknown ${what} ${shortly(name)}${near === undefined ? '; --help names them' : `, did you mean ${near}?`}`;
}

/** Gives the exit code: 0, 1 for a file that differs or cannot be written, 2 for a command that is wrong. */
function run(args: readonly string[]): number {
  const problems: string[] = [];
  const asked = readArguments(args, problems);
  if (asked.isHelp || args.length === 0) {
    process.stdout.write(help());
    return 0;
  }
  if (asked.command === undefined) problems.push('say what to write: rules');
  else if (asked.command !== 'rules') problems.push(unknown('command', asked.command, ['rules']));
  if (asked.isCheck && asked.out === undefined) problems.push('--check needs --out FILE');
  const read = readOptions(asked.texts);
  if ('problems' in read) problems.push(...read.problems);
  if (problems.length > 0 || 'problems' in read) {
    for (const problem of problems) console.error(`${NAME}: ${problem}`);
    return 2;
  }
  const text = rulesFile(read.options, commandLine(asked));
  if (asked.out === undefined) process.stdout.write(text);
  else if (asked.isCheck) return check(asked.out, text);
  else return write(asked.out, text);
  return 0;
}

/** Without `--out`, which is another file for everybody. */
function commandLine({ texts }: Asked): string {
  const given = Object.entries(texts)
    .filter(([name]) => name !== 'out')
    .flatMap(([name, values]) => values.map((value) => `--${name} ${quoted(value)}`));
  return [NAME, 'rules', ...given].join(' ');
}

function quoted(value: string): string {
  return /^[\w.:/=#-]+$/.test(value) ? value : `'${value.replaceAll("'", "'\\''")}'`;
}

function check(file: string, text: string): number {
  try {
    if (readFileSync(file, 'utf8') === text) return 0;
    console.error(`${NAME}: ${file} is not what would be written`);
  } catch (error) {
    console.error(`${NAME}: ${file} cannot be read: ${reason(error)}`);
  }
  return 1;
}

function write(file: string, text: string): number {
  try {
    writeFileSync(file, text);
    return 0;
  } catch (error) {
    console.error(`${NAME}: ${file} cannot be written: ${reason(error)}`);
    return 1;
  }
}

function reason(error: unknown): string {
  return error instanceof Error ? oneLine(error.message) : 'for no reason that was told';
}

process.exitCode = run(process.argv.slice(2));
