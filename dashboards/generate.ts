/** The command line of the generator: writes the dashboards and their page, or checks the committed ones. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildDashboard } from './board.ts';
import { BOARDS } from './boards.ts';
import { lint } from './lint/lint.ts';
import { HELP, readCommand } from './options.ts';
import { page } from './page.ts';

const COMMITTED = fileURLToPath(new URL('./json', import.meta.url));
const PAGE = fileURLToPath(new URL('../docs/dashboards.md', import.meta.url));

process.exitCode = main(process.argv.slice(2));

function main(argv: readonly string[]): number {
  let command: ReturnType<typeof readCommand>;
  try {
    command = readCommand(argv);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }
  if (command.help) {
    console.log(HELP);
    return 0;
  }
  const { options, out = COMMITTED, check } = command;
  const dashboards = BOARDS.map((board) => buildDashboard(board, options));
  const findings = lint(dashboards, options);
  for (const { rule, place, message } of findings) console.error(`${place}: ${message} (${rule})`);
  if (findings.length > 0) return 1;
  const files = new Map(
    dashboards.map((dashboard) => [
      join(out, `${dashboard.uid}.json`),
      `${JSON.stringify(dashboard, undefined, 2)}\n`,
    ]),
  );
  if (out === COMMITTED) files.set(PAGE, page(readFileSync(PAGE, 'utf8'), dashboards));
  return check ? compare(files) : write(out, files);
}

function write(out: string, files: ReadonlyMap<string, string>): number {
  try {
    mkdirSync(out, { recursive: true });
    for (const [file, text] of files) writeFileSync(file, text);
    return 0;
  } catch (error) {
    console.error(`${out} cannot be written: ${error instanceof Error ? error.message : error}`);
    return 1;
  }
}

/** Names every file that is not what the generator makes, with the line. */
function compare(files: ReadonlyMap<string, string>): number {
  const wrong = [...files].flatMap(([file, text]) => {
    const line = firstDifference(file, text);
    return line === undefined ? [] : [`${file}:${line} differs from what is generated`];
  });
  for (const one of wrong) console.error(one);
  if (wrong.length > 0) console.error('change dashboards/boards and run `npm run dashboards`');
  return wrong.length > 0 ? 1 : 0;
}

function firstDifference(file: string, expected: string): number | undefined {
  let found: string;
  try {
    found = readFileSync(file, 'utf8');
  } catch {
    return 1;
  }
  if (found === expected) return undefined;
  const lines = found.split('\n');
  const index = expected.split('\n').findIndex((line, i) => line !== lines[i]);
  return index === -1 ? lines.length : index + 1;
}
