/** `npx otel-time-budget rules`, as a user runs it: what it writes, and what it refuses with which words. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { formatDuration, parseDuration } from '../../rules/duration.ts';
import { readOptions } from '../../rules/options.ts';
import { optionName, PARAMETER_NAMES, PARAMETERS } from '../../rules/parameters.ts';
import { RULES } from '../support/promtool.ts';

const CLI = fileURLToPath(new URL('../../dist/rules/cli.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'time-budget-cli-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function run(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [CLI, ...args], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

function problems(texts: Readonly<Record<string, readonly string[]>>): readonly string[] {
  const read = readOptions(texts);
  return 'problems' in read ? read.problems : [];
}

describe('the command', () => {
  test('without options it writes the committed file', () => {
    expect(run('rules')).toEqual({ status: 0, stdout: readFileSync(RULES, 'utf8'), stderr: '' });
  });

  test('the file is told how it was made, and --check finds it unchanged', () => {
    const out = join(folder, 'own.yml');
    expect(run('rules', '--objective', '0.999', '--match', 'env="prod"', '--out', out).status).toBe(0);
    expect(readFileSync(out, 'utf8').split('\n')[0]).toBe(
      `# Made by \`otel-time-budget rules --objective 0.999 --match 'env="prod"'\`; do not edit.`,
    );
    expect(run('rules', '--objective=0.999', '--match', 'env="prod"', '--out', out, '--check').status).toBe(
      0,
    );
    const other = run('rules', '--objective', '0.99', '--out', out, '--check');
    expect(other).toMatchObject({
      status: 1,
      stderr: `otel-time-budget: ${out} is not what would be written\n`,
    });
    writeFileSync(out, 'edited');
    expect(
      run('rules', '--objective', '0.999', '--match', 'env="prod"', '--out', out, '--check').status,
    ).toBe(1);
  });

  test('a file that cannot be written or read is said in one line', () => {
    const nowhere = join(folder, 'no', 'such', 'folder.yml');
    expect(run('rules', '--out', nowhere)).toMatchObject({ status: 1, stdout: '' });
    expect(run('rules', '--out', nowhere, '--check').stderr).toMatch(
      /^otel-time-budget: .* cannot be read: ENOENT.*\n$/,
    );
  });

  test('help names every option', () => {
    const { status, stdout } = run('--help');
    expect(status).toBe(0);
    for (const name of PARAMETER_NAMES)
      expect(stdout).toContain(`--${optionName(name)} ${PARAMETERS[name].default}`);
    expect(run()).toEqual({ status: 0, stdout, stderr: '' });
  });

  test.each([
    [['rules', '--objectve', '0.9'], 'unknown option "--objectve", did you mean --objective?'],
    [['rules', '--nothing-like-it'], 'unknown option "--nothing-like-it"; --help names them'],
    [['rule'], 'unknown command "rule", did you mean rules?'],
    [['--objective', '0.9'], 'say what to write: rules'],
    [['rules', 'more'], 'too many words: "more"'],
    [['rules', '--out'], '--out needs a value'],
    [['rules', '--objective', '--check'], '--objective needs a value'],
    [['rules', '--check'], '--check needs --out FILE'],
  ])('%j is refused: %s', (args, line) => {
    const { status, stdout, stderr } = run(...args);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr.split('\n')).toContain(`otel-time-budget: ${line}`);
  });
});

describe('values', () => {
  test.each([
    ['objective', '0.0001', '0'],
    ['objective', '0.9999', '1'],
    ['exhausted-share', '0.999', '1.0'],
    ['amplification-ratio', '1', '0.9'],
    ['amplification-ratio', '100', '101'],
    ['wave-seconds', '10', '10.1'],
    ['rate-window', '1h', '0s'],
    ['scale', '1', '1.1'],
    ['scale', '0.001', '0.0009'],
    ['job-label', 'service_name', 'service.name'],
    ['match', 'env=~"a|b"', 'env=prod'],
    ['match', 'env!="\\"x"', 'env="a"b"'],
    ['match', 'env=~"\\\\d"', 'env=~"\\d"'],
    ['match', 'env="é"', 'env="a\u2028b"'],
    ['match', 'env="\\u0001"', 'env="\u0001"'],
    ['match', 'name="x"', '__name__="x"'],
    ['runbook-url', 'http://x.example/#', 'javascript:alert(1)'],
    ['dashboard-url', 'https://x.example', 'https://x.example/{{ .X }}'],
    ['severity', 'DependencySlow=info', 'DependencySlow=loud'],
    ['severity', 'DependencySlow=critical', 'TimeBudgetBurn=info'],
    ['without', 'DependencySlow', 'DependencySlows'],
  ])('--%s takes %s and refuses %s', (option, taken, refused) => {
    const others = option === 'objective' && taken === '0.0001' ? lowFactors() : slowWindows(option);
    expect(problems({ ...others, [option]: [taken] })).toEqual([]);
    const said = problems({ ...others, [option]: [refused] });
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(new RegExp(`^--${option}: `));
  });

  test('texts that JavaScript would take for numbers are refused', () => {
    for (const text of ['', ' 0.5', '5e-1', '0x1', '-0.5', '+0.5', '.5', 'NaN', '50%']) {
      expect(problems({ objective: [text] }), text).toHaveLength(1);
    }
  });

  test('all mistakes are told at once', () => {
    expect(problems({ objective: ['2'], 'rate-window': ['soon'], without: ['Nothing'] })).toHaveLength(3);
  });
});

/** Burn rates that an objective of next to nothing allows. */
function lowFactors() {
  return {
    'burn-fast-factor': ['1'],
    'burn-medium-factor': ['1'],
    'burn-slow-factor': ['1'],
    'burn-slowest-factor': ['0.9'],
  };
}

/** Short windows that a rate over an hour allows. */
function slowWindows(option: string): Record<string, readonly string[]> {
  if (option !== 'rate-window') return {};
  return {
    'burn-fast-window': ['2h'],
    'burn-fast-short-window': ['1h'],
    'burn-medium-short-window': ['1h'],
  };
}

describe('combinations that cannot work', () => {
  test.each([
    // 14.4 × 0.0694 is 0.99936, 14.4 × 0.0695 is 1.0008.
    [
      { objective: ['0.9306'] },
      { objective: ['0.9305'] },
      /^--burn-fast-factor: 14\.4 × \(1 − 0\.9305\) = 1\.0008, .*sleep for ever/,
    ],
    [{ 'burn-slow-factor': ['99.9'] }, { 'burn-slow-factor': ['100'] }, /^--burn-slow-factor: 100 × /],
    [
      { 'scrape-interval': ['45s'] },
      { 'scrape-interval': ['46s'] },
      /^--exhausted-recent-window: 3m is less than 4 × --scrape-interval 46s/,
    ],
    [
      { 'burn-fast-window': ['6m'] },
      { 'burn-fast-window': ['5m'] },
      /^--burn-fast-window: 5m must be above --burn-fast-short-window 5m/,
    ],
    [
      { 'burn-fast-short-window': ['5m'] },
      { 'burn-fast-short-window': ['4m'] },
      /^--burn-fast-short-window: 4m must be at least --rate-window 5m/,
    ],
    [
      { 'missing-for': ['59m'] },
      { 'missing-for': ['1h'] },
      /^--missing-offset: 1h must be above --missing-for 1h: .*sleep for ever/,
    ],
    [{ 'amplification-for': ['59m'] }, { 'amplification-for': ['1h'] }, /^--amplification-offset: /],
    [{ 'violation-for': ['59m'] }, { 'violation-for': ['1h'] }, /^--violation-window: /],
    [{ 'fault-for': ['59m'] }, { 'fault-for': ['1h'] }, /^--fault-window: /],
    [{ 'slow-for': ['59m'] }, { 'slow-for': ['1h'] }, /^--slow-offset: /],
    [{ 'shed-for': ['59m'] }, { 'shed-for': ['1h'] }, /^--shed-offset: /],
    [{ 'wave-for': ['4m'] }, { 'wave-for': ['5m'] }, /^--wave-window: /],
    [
      { 'violation-window': ['1m'], 'violation-for': ['30s'] },
      { 'violation-window': ['59s'], 'violation-for': ['30s'] },
      /^--violation-window: 59s is less than 4 × --scrape-interval 15s/,
    ],
    [
      { 'backlog-window': ['1m'] },
      { 'backlog-window': ['59s'] },
      /^--backlog-window: 59s is less than 2 × --evaluation-interval: .*at least 1m$/,
    ],
    [
      { 'burn-slowest-window': ['25h'] },
      { 'burn-slowest-window': ['24h'] },
      /^--burn-slowest-window: 1d is --burn-slow-window too/,
    ],
    [
      { 'evaluation-interval': ['5m'] },
      { 'evaluation-interval': ['6m'], 'backlog-window': ['12m'] },
      /^--rate-window: 5m must be at least --evaluation-interval 6m/,
    ],
  ])('%j works, %j is refused', (works, refused, words) => {
    expect(problems(works)).toEqual([]);
    const said = problems(refused);
    expect(said).toHaveLength(1);
    expect(said[0]).toMatch(words);
  });
});

describe('durations', () => {
  test.each([
    ['5m', 300_000, '5m'],
    ['1h30m', 5_400_000, '90m'],
    ['1d', 86_400_000, '1d'],
    ['24h', 86_400_000, '1d'],
    ['1500ms', 1500, '1500ms'],
    ['1s500ms', 1500, '1500ms'],
  ])('%s is %d ms and is written as %s', (text, ms, written) => {
    expect(parseDuration(text)).toBe(ms);
    expect(formatDuration(ms)).toBe(written);
  });

  test.each(['', '0s', '5', 'm', '5 m', '-5m', '5m1h', '1.5h', '1w', '5M'])('%j is none', (text) => {
    expect(parseDuration(text)).toBe(undefined);
  });

  test('what scaling makes of it is whole milliseconds, and never nothing', () => {
    expect(formatDuration(300_000 / 60)).toBe('5s');
    expect(formatDuration(0.2)).toBe('1ms');
  });
});
