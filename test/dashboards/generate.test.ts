/** The command line of the generator, as a user runs it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readCommand } from '../../dashboards/options.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'time-budget-dashboards-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function generate(...args: string[]): { readonly status: number | null; readonly stderr: string } {
  const { status, stderr } = spawnSync(process.execPath, ['dashboards/generate.ts', ...args], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  return { status, stderr };
}

describe('--check', () => {
  test('finds the committed files as they are made', () => {
    expect(generate('--check')).toEqual({ status: 0, stderr: '' });
  });

  test('names a dashboard that was edited by hand, with the line', () => {
    expect(generate('--out', folder).status).toBe(0);
    const file = join(folder, 'time-budget-retries.json');
    const lines = readFileSync(file, 'utf8').split('\n');
    const index = lines.findIndex((line) => line.includes('"noValue"'));
    lines[index] = '"noValue": "nothing"';
    writeFileSync(file, lines.join('\n'));
    const { status, stderr } = generate('--out', folder, '--check');
    expect(status).toBe(1);
    expect(stderr.split('\n')[0]).toBe(`${file}:${index + 1} differs from what is generated`);
    expect(stderr).not.toContain('time-budget-overview');
  });

  test('names one that is missing', () => {
    const { status, stderr } = generate('--out', folder, '--check');
    expect(status).toBe(1);
    expect(stderr).toContain('time-budget-queues.json:1 differs');
  });
});

test('other labels and limits stand in every query that they belong to', () => {
  const args = [
    '--job-label',
    'service_name',
    '--match',
    'env="prod"',
    '--keep-label',
    'cluster',
    '--uid-prefix',
    'acme',
  ];
  const more = [
    '--objective',
    '0.9',
    '--runbook-url',
    'https://runbooks.test/a',
    '--jaeger-url',
    '',
    '--scrape-interval',
    '30s',
  ];
  expect(generate('--out', folder, ...args, ...more)).toEqual({ status: 0, stderr: '' });
  const files = readdirSync(folder);
  expect(files).toContain('acme-overview.json');
  const overview = readFileSync(join(folder, 'acme-overview.json'), 'utf8');
  expect(overview).toContain('service_name=~\\"$job\\",cluster=~\\"$cluster\\",env=\\"prod\\",instance=~');
  expect(overview).toContain('/ 0.1"');
  expect(overview).toContain('"url": "https://runbooks.test/a"');
  expect(overview).toContain('"interval": "30s"');
  expect(overview).toContain('/d/acme-path?');
  expect(files.map((file) => readFileSync(join(folder, file), 'utf8')).join()).not.toMatch(
    /[{,]job=|time-budget-path|Jaeger/,
  );
});

describe('a wrong option is refused with what is allowed', () => {
  test.each([
    [['--objective', '1'], '--objective must be in 0.5..0.99999, got "1"'],
    [['--objective', ''], '--objective must be in 0.5..0.99999, got ""'],
    [['--slow-factor', '0.9'], '--slow-factor must be in 1..100, got "0.9"'],
    [['--insufficient-share', '1.1'], '--insufficient-share must be in 0.01..1, got "1.1"'],
    [['--job-label', 'service.name'], 'a label must be a label name, got "service.name"'],
    [
      ['--keep-label', 'operation'],
      '--keep-label must be a label that no other variable is named after, got "operation"',
    ],
    [
      ['--keep-label', 'zone', '--keep-label', 'zone'],
      '--keep-label must be a label that no other variable is named after, got "zone"',
    ],
    [['--match', 'env=~"\\d"'], '--match must be one matcher as PromQL has it, got "env=~\\"\\\\d\\""'],
    [['--match', 'env=prod'], '--match must be one matcher as PromQL has it, got "env=prod"'],
    [['--uid-prefix', 'A'], '--uid-prefix must be 3 to 27 of a-z, 0-9 and -, got "A"'],
    [['--uid-prefix', 'ab'], '--uid-prefix must be 3 to 27 of a-z, 0-9 and -, got "ab"'],
    [
      ['--uid-prefix', 'a'.repeat(28)],
      `--uid-prefix must be 3 to 27 of a-z, 0-9 and -, got "${'a'.repeat(28)}"`,
    ],
    [['--runbook-url', 'runbooks'], '--runbook-url must be an http(s) address, got "runbooks"'],
    [['--scrape-interval', '15'], '--scrape-interval must be a duration such as 15s, got "15"'],
  ])('%j', (args, message) => {
    expect(() => readCommand(args)).toThrow(new RangeError(message));
  });

  test('the last ones that are taken', () => {
    const { options } = readCommand(['--objective', '0.99999', '--slow-factor', '1']);
    expect(options).toMatchObject({ objective: 0.99999, slowFactor: 1 });
    expect(readCommand(['--objective', '0.5']).options.objective).toBe(0.5);
  });

  test.each([3, 27])('a prefix of %i characters, with which every uid has 8 to 40', (length) => {
    const args = ['--out', folder, '--uid-prefix', 'a'.repeat(length)];
    expect(generate(...args)).toEqual({ status: 0, stderr: '' });
    const uids = readdirSync(folder).map((file) => file.replace('.json', '').length);
    expect([Math.min(...uids), Math.max(...uids)]).toEqual([length + 5, length + 13]);
  });

  test('a folder that cannot be made is said in one line', () => {
    const { status, stderr } = generate('--out', join(import.meta.filename, 'below'));
    expect(status).toBe(1);
    expect(stderr).toMatch(/^\S+below cannot be written: .*\n$/);
  });

  test('an unknown one, in one line', () => {
    const { status, stderr } = generate('--objectiv', '0.9');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Unknown option '--objectiv'/);
  });
});
