import { describe, expect, test } from 'vitest';

interface CheckNode {
  satisfies(version: string, range: string): boolean;
  complaint(version: string, range: string): string;
}

const path = '../../scripts/check-node.js';
// It has no types because it must run on a Node that cannot read any.
const { satisfies, complaint } = (await import(path)) as CheckNode;

const RANGE = '^22.22.3 || ^24.11.1 || >=26';

describe('the range of package.json', () => {
  test.each([
    ['v22.22.3', true],
    ['v22.22.2', false],
    ['v22.99.0', true],
    ['v23.11.0', false],
    ['v24.11.1', true],
    ['v24.11.0', false],
    ['v24.21.0', true],
    ['v25.9.9', false],
    ['v26.0.0', true],
    ['v30.1.0', true],
    ['v20.20.2', false],
    ['v8.17.0', false],
  ])('%s → %s', (version, expected) => {
    expect(satisfies(version, RANGE)).toBe(expected);
  });
});

test('the complaint is one line that says what to do', () => {
  expect(complaint('v20.20.2', RANGE)).toBe(
    'This needs Node ^22.22.3 || ^24.11.1 || >=26, and v20.20.2 runs it. The project brings its own: were ' +
      'install scripts switched off? Run `npm ci` without --ignore-scripts, or use Node >= 22.22.3.',
  );
});
