import { describe, expect, test } from 'vitest';
import { readArguments } from '../../demo/arguments.ts';

const NAMES = ['healthy', 'slow-dependency', 'slow-query'];
const NOTHING = {
  scenarios: undefined,
  keep: false,
  prometheus: false,
  json: false,
  list: false,
  help: false,
};

describe('what is accepted', () => {
  test.each([
    [[], NOTHING],
    [['--keep', '--json'], { ...NOTHING, keep: true, json: true }],
    [['--prometheus', '--keep'], { ...NOTHING, keep: true, prometheus: true }],
    [['--prometheus', '--help'], { ...NOTHING, prometheus: true, help: true }],
    [['--prometheus', '--list'], { ...NOTHING, prometheus: true, list: true }],
    [['--list'], { ...NOTHING, list: true }],
    [['-h'], { ...NOTHING, help: true }],
    [['--scenario', 'slow-query'], { ...NOTHING, scenarios: ['slow-query'] }],
    [
      ['--scenario=slow-query', '--scenario', 'healthy'],
      { ...NOTHING, scenarios: ['slow-query', 'healthy'] },
    ],
  ])('%j', (argv, expected) => {
    expect(readArguments(argv, NAMES)).toEqual(expected);
  });
});

describe('what is refused, in one line', () => {
  test.each([
    [['--scenaro', 'healthy'], 'unknown option "--scenaro", did you mean --scenario?'],
    [['--Json'], 'unknown option "--Json", did you mean --json?'],
    [['-x'], 'unknown option "-x"'],
    [['--no-keep'], 'unknown option "--no-keep", did you mean --keep?'],
    [
      ['--scenario', 'slow-dependancy'],
      'unknown scenario "slow-dependancy", did you mean slow-dependency?; --list shows all',
    ],
    [['--scenario', 'zzz'], 'unknown scenario "zzz"; --list shows all'],
    [['--scenario'], 'unknown scenario ""; --list shows all'],
    [['--scenario='], 'unknown scenario ""; --list shows all'],
    [['slow-query'], 'unexpected argument "slow-query", did you mean slow-query?'],
    [['--prometheus'], '--prometheus needs --keep: without it everything ends with the last scenario'],
    [
      ['--prometheus', '--json'],
      '--prometheus needs --keep: without it everything ends with the last scenario',
    ],
    [['--prometeus'], 'unknown option "--prometeus", did you mean --prometheus?'],
    [['--json=yes'], '--json takes no value'],
  ])('%j', (argv, wrong) => {
    expect(readArguments(argv, NAMES)).toEqual({ wrong });
  });
});
