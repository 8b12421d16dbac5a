import { describe, expect, test } from 'vitest';
import { compare, type Experiment } from './experiment.ts';

const RUN: Experiment<number> = {
  conditions: { arrivals: '20/s', tasks: 'GET /', dependency: 'slow', policyVersion: 'a' },
  originals: 200,
  source: 'measured',
  figures: 1,
};

const other = (
  conditions: Partial<Experiment<number>['conditions']>,
  more: Partial<Experiment<number>> = {},
) => ({
  ...RUN,
  figures: 2,
  ...more,
  conditions: { ...RUN.conditions, policyVersion: 'b', ...conditions },
});

describe('T-25: compared only under equal original demand', () => {
  test('two runs that differ in nothing but the configuration', () => {
    expect(compare(RUN, other({}))).toEqual({ without: 1, with: 2 });
  });

  test.each([
    ['arrivals', { arrivals: '30/s' }, {}, 'arrivals differ: 20/s / 30/s'],
    ['tasks', { tasks: 'POST /' }, {}, 'tasks differ: GET / / POST /'],
    ['the fault', { dependency: 'gone' }, {}, 'dependency differ: slow / gone'],
    ['one original', {}, { originals: 199 }, 'originals differ: 200 / 199'],
    ['nothing', { policyVersion: 'a' }, {}, 'the same policy twice: a'],
  ])('%s differs: refused', (_, conditions, more, message) => {
    expect(() => compare(RUN, other(conditions, more))).toThrow(message);
  });

  test('T-26: figures of a model are no side of a comparison', () => {
    expect(() => compare(RUN, other({}, { source: 'model' }))).toThrow('b: figures of a model');
    expect(() => compare({ ...RUN, source: 'model' }, other({}))).toThrow('a: figures of a model');
  });
});
