import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/telemetry/config.ts';
import { MAX_FILE_LENGTH } from '../../src/telemetry/config-file.ts';

function problemsOf(text: string, path = 'budget.yaml'): readonly string[] {
  const result = loadConfig({ TIME_BUDGET_CONFIG: path }, () => text);
  return result.ok ? [] : result.problems;
}

function problemsWhen(fault: unknown): readonly string[] {
  const result = loadConfig({ TIME_BUDGET_CONFIG: 'budget.yaml' }, () => {
    throw fault;
  });
  return result.ok ? [] : result.problems;
}

describe('a file that cannot be read', () => {
  test.each([
    ['ENOENT', 'there is no such file'],
    ['ENOTDIR', 'there is no such file'],
    ['EACCES', 'this process may not read it'],
    ['EPERM', 'this process may not read it'],
    ['EISDIR', 'it is a directory'],
    ['EMFILE', 'EMFILE'],
  ])('%s', (code, reason) => {
    const fault = Object.assign(new Error('message\nof two lines'), { code });
    expect(problemsWhen(fault)).toEqual([`budget.yaml: cannot be read: ${reason}`]);
  });

  test('faults of other kinds stay on one line', () => {
    expect(problemsWhen(new Error('first\nsecond'))).toEqual(['budget.yaml: cannot be read: first second']);
    expect(problemsWhen('text')).toEqual(['budget.yaml: cannot be read: unknown error']);
  });

  test('the path stands as it was given, on one line', () => {
    expect(problemsOf('', './conf/../b.yaml')[0]).toMatch(/^\.\/conf\/\.\.\/b\.yaml: is empty/);
    expect(problemsOf('', 'a\nb')[0]).toMatch(/^a b: is empty/);
  });
});

describe('a file that is no configuration', () => {
  const empty = 'budget.yaml: is empty; a configuration file holds at least the line "version: 1"';
  test.each(['', '\n\n', '# only a comment\n', '---\n', '~', '\uFEFF'])('empty: %j', (text) => {
    expect(problemsOf(text)).toEqual([empty]);
  });

  test.each(['version: 1\0', 'PK\u0003\u0004\0\0', 'v\0e\0r\0', '\uFFFD\uFFFD'])('binary: %j', (text) => {
    expect(problemsOf(text)).toEqual(['budget.yaml: is not UTF-8 text']);
  });

  test('its length at the last accepted and the first rejected value', () => {
    const head = 'version: 1 #';
    expect(problemsOf(head + 'x'.repeat(MAX_FILE_LENGTH - head.length))).toEqual([]);
    expect(problemsOf(head + 'x'.repeat(MAX_FILE_LENGTH - head.length + 1))).toEqual([
      'budget.yaml: is longer than 1048576 characters',
    ]);
  });

  test.each([
    ['[version, 1]', 'this list'],
    ['just text', '"just text"'],
    ['42', '42'],
  ])('wrong type: %s', (text, value) => {
    const [problem, more] = problemsOf(text);
    expect(problem).toMatch(/ is not allowed; use a mapping with the keys version, mode, entry, /);
    expect(problem?.startsWith(`budget.yaml: content: ${value} is`)).toBe(true);
    expect(more).toBeUndefined();
  });

  test.each([
    ['version: 1\nmode: observe\nmode: enforce', 'Map keys must be unique at line 3, column 1'],
    ['version: 1\nentry: {role: edge, role: edge}', 'Map keys must be unique at line 2, column 21'],
    ['version: 1\n\tmode: observe', 'Tabs are not allowed as indentation at line 2, column 1'],
    ['version: 1\nmode: !secret observe', 'Unresolved tag: !secret at line 2, column 7'],
    ['version: 1\n? {a: b}\n: 1', 'With stringKeys, all keys must be strings at line 2, column 3'],
  ])('not valid YAML: %j', (text, reason) => {
    expect(problemsOf(text)).toEqual([`budget.yaml: is not valid YAML: ${reason}`]);
  });

  test('two documents', () => {
    expect(problemsOf('version: 1\n---\nversion: 1\n')[0]).toMatch(
      /^budget\.yaml: is not valid YAML: Source contains/,
    );
  });

  test('an alias bomb is refused, and some shared settings are not', () => {
    const names = 'abcdefghi';
    const rows = [...names].map((name, at) => {
      const items = Array(10).fill(at === 0 ? 'x' : `*${names[at - 1]}`);
      return `${name}: &${name} [${items.join(', ')}]`;
    });
    expect(problemsOf(rows.join('\n'))).toEqual([
      'budget.yaml: is not usable YAML: Excessive alias count indicates a resource exhaustion attack',
    ]);
    expect(problemsOf('version: 1\noperations: {a: &o {typical_ms: 5}, b: *o, c: *o}')).toEqual([]);
    expect(problemsOf('version: 1\nmode: *missing')[0]).toMatch(
      /^budget\.yaml: is not usable YAML: Unresolved alias/,
    );
  });

  test('deep nesting', () => {
    const deep = 5000;
    expect(problemsOf(`version: 1\nmode: ${'['.repeat(deep)}${']'.repeat(deep)}`)).toHaveLength(1);
  });
});

describe('single keys', () => {
  test('version is required, and is 1', () => {
    expect(problemsOf('mode: observe')).toEqual(['budget.yaml: version: missing; use 1']);
    expect(problemsOf('version: 2')).toEqual(['budget.yaml: version: 2 is not allowed; use 1']);
    expect(problemsOf('version: "1"')).toEqual(['budget.yaml: version: "1" is not allowed; use 1']);
  });

  const durations: [key: string, zero: boolean][] = [
    ['entry: {default_ms: ?}', false],
    ['entry: {ceiling_ms: ?}', false],
    ['entry: {floor_ms: ?}', true],
    ['reserve_ms: ?', true],
    ['deadline_tolerance_ms: ?', true],
    ['operations: {a: {default_ms: ?}}', false],
    ['operations: {a: {ceiling_ms: ?}}', false],
    ['operations: {a: {reserve_ms: ?}}', true],
    ['operations: {a: {typical_ms: ?}}', false],
    ['dependencies: {a: {cap_ms: ?}}', false],
    ['dependencies: {a: {reserve_ms: ?}}', true],
    ['dependencies: {a: {minimum_ms: ?}}', false],
    ['dependencies: {a: {latency_ms: ?}}', false],
    ['dependencies: {a: {typical_ms: ?}}', false],
  ];
  test.each(durations)('%s: limits and kinds of a duration', (line, zero) => {
    const at = (value: string): readonly string[] => problemsOf(`version: 1\n${line.replace('?', value)}`);
    for (const good of ['0.001', '1', '9007199254740992', '0x10', '5e3']) expect(at(good), good).toEqual([]);
    expect(at('0')).toHaveLength(zero ? 0 : 1);
    for (const bad of [
      '-0.001',
      '9007199254740994',
      '.inf',
      '.nan',
      'null',
      '"500"',
      '1_000',
      'true',
      '[5]',
      '{}',
    ]) {
      const [problem, more] = at(bad);
      expect(problem, bad).toMatch(
        zero
          ? / is not allowed; use a number of milliseconds from 0 to 2\^53$/
          : / is not allowed; use a number of milliseconds above 0 and up to 2\^53 \(leave it out for none\)$/,
      );
      expect(more).toBeUndefined();
    }
    expect(at('5%')[0]).toMatch(/: "5%" is not allowed; .*; a percentage is refused because/);
    expect(at('5ms')[0]).toMatch(/: "5ms" is not allowed; .*, without a unit$/);
  });

  test.each([
    ['mode: Enforce', 'mode: "Enforce" is not allowed; use observe, propagate or enforce'],
    ['mode:', 'mode: an empty value is not allowed; use observe, propagate or enforce'],
    ['entry: {mode: x}', 'entry.mode: "x" is not allowed; use observe, propagate or enforce'],
    ['entry: {role: x}', 'entry.role: "x" is not allowed; use edge or internal'],
    ['calls: {mode: x}', 'calls.mode: "x" is not allowed; use observe, propagate or enforce'],
    ['calls: 5', 'calls: 5 is not allowed; use a mapping with the keys mode'],
    ['propagation: {header: maybe}', 'propagation.header: "maybe" is not allowed; use on or off'],
    ['operations: [a]', 'operations: this list is not allowed; use a mapping from names to settings'],
    ['dependencies: {a: {header: 1}}', 'dependencies.a.header: 1 is not allowed; use on or off'],
    [
      'dependencies: {a: {mode: x}}',
      'dependencies.a.mode: "x" is not allowed; use observe, propagate or enforce',
    ],
    [
      'dependencies: {a: {headers: [x-timeout]}}',
      'dependencies.a.headers[0]: "x-timeout" is not allowed; use x-request-timeout-ms, grpc-timeout, ' +
        'x-envoy-expected-rq-timeout-ms or connect-timeout-ms',
    ],
    ['routes: [{path: /a}]', /^budget\.yaml: routes\[0\]\.operation: missing; use up to 128 printable/],
    ['routes: [{operation: a}]', /^budget\.yaml: routes\[0\]\.path: missing; use a path that starts with \//],
    ['routes: [{path: a, operation: a}]', /^budget\.yaml: routes\[0\]\.path: "a" is not allowed; use a path/],
    [
      'routes: [{path: /a, operation: a, method: get}]',
      /routes\[0\]\.method: "get" is not allowed; use an HTTP method/,
    ],
    ['routes: {}', 'routes: this mapping is not allowed; use a list of up to 500 routes'],
    ['callers: [5]', /^budget\.yaml: callers\[0\]: 5 is not allowed; use up to 64 letters/],
    [
      'propagation: {hosts: []}',
      /^budget\.yaml: propagation\.hosts: an empty list is not allowed; use a list of 1 to/,
    ],
    [
      'dependencies: {a: {match: [http://a]}}',
      /^budget\.yaml: dependencies\.a\.match\[0\]: "http:\/\/a" is not/,
    ],
    [
      'dependencies: {a: {match: a}}',
      /^budget\.yaml: dependencies\.a\.match: "a" is not allowed; use a list of 1/,
    ],
  ])('%s', (line, problem) => {
    const expected = typeof problem === 'string' ? `budget.yaml: ${problem}` : expect.stringMatching(problem);
    expect(problemsOf(`version: 1\n${line}`)).toEqual([expected]);
  });

  test('on and off, and true and false, are the same', () => {
    for (const [word, header] of [
      ['on', true],
      ['off', false],
      ['true', true],
      ['false', false],
    ] as const) {
      const result = loadConfig(
        { TIME_BUDGET_CONFIG: 'a' },
        () => `version: 1\npropagation: {header: ${word}}`,
      );
      expect(result.ok && result.config.propagation.header).toBe(header);
    }
  });

  test('buckets: rising, above 0, from 1 to 40', () => {
    const at = (bounds: number[]): number =>
      problemsOf(`version: 1\nbuckets_s: [${bounds.join(', ')}]`).length;
    expect(at(Array.from({ length: 40 }, (_, index) => index + 1))).toBe(0);
    expect(at(Array.from({ length: 41 }, (_, index) => index + 1))).toBe(1);
    expect(at([0.001])).toBe(0);
    for (const bad of [[], [0], [2, 1], [1, 1], [Number.NaN]]) expect(at(bad)).toBe(1);
  });

  test('lists at their last accepted and first rejected length', () => {
    const many = (count: number, item: (at: number) => string): string =>
      Array.from({ length: count }, (_, at) => item(at)).join(', ');
    const files = (count: number): string[] => [
      `routes: [${many(count, () => '{path: /a, operation: a}')}]`,
      `labels: {callers: 500}\ncallers: [${many(count, (at) => `c${at}`)}]`,
      `propagation: {hosts: [${many(count, (at) => `h${at}`)}]}`,
      `labels: {operations: 500}\noperations: {${many(count, (at) => `o${at}: {}`)}}`,
    ];
    for (const file of files(500)) expect(problemsOf(`version: 1\n${file}`)).toEqual([]);
    for (const file of files(501)) expect(problemsOf(`version: 1\n${file}`).length).toBeGreaterThan(0);
  });
});

describe('unknown keys', () => {
  test.each([
    ['propagaton: {}', 'unknown key "propagaton", did you mean "propagation"?'],
    ['Mode: observe', 'unknown key "Mode", did you mean "mode"?'],
    ['reserveMs: 5', 'unknown key "reserveMs", did you mean "reserve_ms"?'],
    ['entry: {celling_ms: 5}', 'entry: unknown key "celling_ms", did you mean "ceiling_ms"?'],
    [
      'entry: {x: 5}',
      'entry: unknown key "x"; known here: mode, role, trust, default_ms, ceiling_ms, floor_ms',
    ],
    [
      'operations: {"GET /a": {reserve: 5}}',
      'operations."GET /a": unknown key "reserve", did you mean "reserve_ms"?',
    ],
    ['dependencies: {a: {latency: 5}}', 'dependencies.a: unknown key "latency", did you mean "latency_ms"?'],
    [
      'routes: [{path: /a, operation: a, name: b}]',
      'routes[0]: unknown key "name"; known here: method, path, operation',
    ],
    ['labels: {caller: 5}', 'labels: unknown key "caller", did you mean "callers"?'],
  ])('%s', (line, problem) => {
    expect(problemsOf(`version: 1\n${line}`)).toEqual([`budget.yaml: ${problem}`]);
  });

  test('a key of great length or of several lines is shortened to one', () => {
    const [problem] = problemsOf(`version: 1\n"a\\nb${'x'.repeat(900)}": 1`);
    expect(problem?.startsWith(`budget.yaml: unknown key "a b${'x'.repeat(36)}…"; known here: `)).toBe(true);
  });

  test('a name that would be the prototype is refused', () => {
    expect(problemsOf('version: 1\noperations: {__proto__: {default_ms: 5}}')).toEqual([
      'budget.yaml: operations: the name "__proto__" is not allowed',
    ]);
    expect(problemsOf('version: 1\n__proto__: {}')).toHaveLength(1);
  });

  test('no more than twenty lines, and the last counts the rest', () => {
    const keys = (count: number): string =>
      Array.from({ length: count }, (_, at) => `zzzzzzzzzz${at}: 1`).join('\n');
    expect(problemsOf(`version: 1\n${keys(20)}`)).toHaveLength(20);
    const problems = problemsOf(`version: 1\n${keys(21)}`);
    expect(problems).toHaveLength(20);
    expect(problems.at(-1)).toBe('… and 2 more problems');
  });
});
