import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defaultConfig, loadConfig, loadProcessConfig } from '../../src/telemetry/config.ts';
import { ENV_SETTINGS } from '../../src/telemetry/config-env.ts';
import type { Config, ConfigOptions } from '../../src/telemetry/config-settings.ts';

type Env = Record<string, string>;

function noFile(): string {
  throw new Error('no file was asked for');
}

function problemsOf(env: Env, file?: string, options?: ConfigOptions): readonly string[] {
  const result = load(env, file, options);
  return result.ok ? [] : result.problems;
}

function configOf(env: Env, file?: string, options?: ConfigOptions): Config {
  const result = load(env, file, options);
  if (result.ok) return result.config;
  throw new Error(result.problems.join('\n'));
}

function load(env: Env, file?: string, options?: ConfigOptions): ReturnType<typeof loadConfig> {
  if (file === undefined) return loadConfig(env, noFile, options);
  return loadConfig({ TIME_BUDGET_CONFIG: 'budget.yaml', ...env }, () => file, options);
}

/** A file with these lines below `version: 1`. */
function yaml(...lines: string[]): string {
  return ['version: 1', ...lines].join('\n');
}

describe('nothing given', () => {
  test('B-44: only these defaults, and no figure of an example', () => {
    const { policyVersion, ...config } = defaultConfig();
    expect(JSON.parse(JSON.stringify(config))).toEqual({
      disabled: false,
      mode: 'observe',
      entry: { mode: 'observe', role: 'internal', trust: 'all' },
      calls: { mode: 'observe' },
      reserveMs: 0,
      propagation: { header: true },
      deadlineToleranceMs: 10,
      operations: {},
      routes: [],
      dependencies: {},
      retryBudgets: {},
      degradedModes: {},
      callers: [],
      labels: { operations: 50, dependencies: 20, callers: 8 },
    });
    expect(policyVersion).toMatch(/^[0-9a-f]{8}$/);
    expect(config.operationSettings('GET /a')).toEqual({
      defaultMs: undefined,
      ceilingMs: undefined,
      floorMs: undefined,
      reserveMs: 0,
      typicalMs: undefined,
    });
    expect(config.dependencyFor('orders.internal', 80)).toBeUndefined();
    expect(config.operationForPath('GET', '/a')).toBeUndefined();
    expect(config.isTrusted('203.0.113.7')).toBe(true);
    expect(config.sendsOwnHeader('api.example.com', 443)).toBe(true);
    expect(config.bucketsS).toBeUndefined();
  });

  test('the whole of it is frozen', () => {
    const config = defaultConfig({
      entry: { trust: ['private'] },
      operations: { a: { typicalMs: 1 } },
      dependencies: { orders: { match: ['o'], headers: ['grpc-timeout'] } },
      routes: [{ path: '/a', operation: 'a' }],
    });
    const open: string[] = [];
    const walk = (value: unknown, path: string): void => {
      if (typeof value !== 'object' || value === null) return;
      if (!Object.isFrozen(value)) open.push(path);
      for (const [key, child] of Object.entries(value)) walk(child, `${path}.${key}`);
    };
    walk(config, 'config');
    expect(open).toEqual([]);
    expect(Object.isFrozen(config.operationSettings('unheard of'))).toBe(true);
  });
});

describe('environment', () => {
  test('every variable', () => {
    const env = {
      TIME_BUDGET_MODE: 'enforce',
      TIME_BUDGET_ENTRY_ROLE: 'edge',
      TIME_BUDGET_TRUST: 'private, 203.0.113.0/24',
      TIME_BUDGET_DEFAULT_MS: '2000',
      TIME_BUDGET_CEILING_MS: '5000.5',
      TIME_BUDGET_FLOOR_MS: '0',
      TIME_BUDGET_RESERVE_MS: '75',
    };
    expect(Object.keys(env).sort()).toEqual(Object.keys(ENV_SETTINGS).sort());
    const config = configOf(env);
    expect(config.mode).toBe('enforce');
    expect(config.entry).toEqual({
      mode: 'enforce',
      role: 'edge',
      trust: ['private', '203.0.113.0/24'],
      defaultMs: 2000,
      ceilingMs: 5000.5,
      floorMs: 0,
    });
    expect(config.reserveMs).toBe(75);
  });

  test.each([
    ['500', 500],
    [' 500 ', 500],
    ['0.5', 0.5],
    ['007', 7],
    ['9007199254740992', 2 ** 53],
  ])('milliseconds: %j is %d', (text, ms) => {
    expect(configOf({ TIME_BUDGET_DEFAULT_MS: text }).entry.defaultMs).toBe(ms);
  });

  test.each(['', '   ', '\t\n'])('%j counts as not set, for every variable', (blank) => {
    const env: Env = { TIME_BUDGET_CONFIG: blank, TIME_BUDGET_DISABLED: blank };
    for (const variable of Object.keys(ENV_SETTINGS)) env[variable] = blank;
    expect(configOf(env).policyVersion).toBe(defaultConfig().policyVersion);
  });

  const notDecimal = [
    ...[
      'NaN',
      '5e3',
      '-1',
      '+5',
      '1_000',
      'Infinity',
      '0x10',
      '.5',
      '5.',
      '1,5',
      '1 000',
      'five',
      '٥',
      '5.0.0',
    ],
    ...['0', '0.0', '9007199254740994', '1'.repeat(400)],
  ];
  test.each(notDecimal)('milliseconds: %j is refused', (text) => {
    const value = text.length > 40 ? `${text.slice(0, 39)}…` : text;
    expect(problemsOf({ TIME_BUDGET_DEFAULT_MS: text })).toEqual([
      `TIME_BUDGET_DEFAULT_MS: "${value}" is not allowed; use milliseconds in decimal digits, such as 500 ` +
        'or 0.5, above 0 and up to 2^53 (leave it out for none)',
    ]);
  });

  test('0 is a floor and a reserve, but neither a default nor a ceiling', () => {
    const env = { TIME_BUDGET_FLOOR_MS: '0', TIME_BUDGET_RESERVE_MS: '0' };
    expect(configOf(env).entry.floorMs).toBe(0);
    expect(problemsOf({ ...env, TIME_BUDGET_CEILING_MS: '0' })).toHaveLength(1);
    expect(problemsOf({ TIME_BUDGET_FLOOR_MS: '-1' })).toEqual([
      'TIME_BUDGET_FLOOR_MS: "-1" is not allowed; use milliseconds in decimal digits, such as 500 or 0.5, ' +
        'from 0 to 2^53',
    ]);
  });

  test('B-12: a percentage is refused with the reason, a unit with a hint', () => {
    const [percent] = problemsOf({ TIME_BUDGET_RESERVE_MS: '5%' });
    expect(percent).toBe(
      'TIME_BUDGET_RESERVE_MS: "5%" is not allowed; use milliseconds in decimal digits, such as 500 or 0.5, ' +
        'from 0 to 2^53; a percentage is refused because its size changes with what each caller sends',
    );
    expect(problemsOf({ TIME_BUDGET_RESERVE_MS: '5 s' })[0]).toMatch(
      /up to 2\^53|0 to 2\^53, without a unit$/,
    );
  });

  test('words may be in any case; others are named with what is allowed', () => {
    expect(configOf({ TIME_BUDGET_MODE: ' Enforce ' }).mode).toBe('enforce');
    expect(problemsOf({ TIME_BUDGET_MODE: 'enforced', TIME_BUDGET_ENTRY_ROLE: 'outer' })).toEqual([
      'TIME_BUDGET_MODE: "enforced" is not allowed; use observe or propagate or enforce',
      'TIME_BUDGET_ENTRY_ROLE: "outer" is not allowed; use edge or internal',
    ]);
  });

  test('a value of several lines is shown on one', () => {
    expect(problemsOf({ TIME_BUDGET_MODE: 'a\nb\u2028c\u0000d' })[0]).toMatch(
      /^TIME_BUDGET_MODE: "a b c d" is/,
    );
  });

  test('trust: the wrong item is named', () => {
    expect(problemsOf({ TIME_BUDGET_TRUST: '10.0.0.0/8,10.0.0.0/33' })).toEqual([
      'TIME_BUDGET_TRUST: "10.0.0.0/33" is not allowed; use all, none, private, or IP addresses and CIDR ' +
        'ranges, separated by commas',
    ]);
  });

  test('a mistyped variable is named with the nearest; what Kubernetes sets is left alone', () => {
    expect(problemsOf({ TIME_BUDGET_DEFUALT_MS: '5', TIME_BUDGET_CEILING: '5' })).toEqual([
      'TIME_BUDGET_DEFUALT_MS: unknown variable, did you mean TIME_BUDGET_DEFAULT_MS?',
      'TIME_BUDGET_CEILING: unknown variable, did you mean TIME_BUDGET_CEILING_MS?',
    ]);
    const kubernetes = {
      TIME_BUDGET_PORT: 'tcp://10.0.0.1:80',
      TIME_BUDGET_SERVICE_HOST: '10.0.0.1',
      TIME_BUDGET_SERVICE_PORT: '80',
      TIME_BUDGET_SERVICE_PORT_HTTP: '80',
      TIME_BUDGET_PORT_80_TCP: 'tcp://10.0.0.1:80',
      TIME_BUDGET_PORT_80_TCP_ADDR: '10.0.0.1',
      TIME_BUDGET_PORT_80_TCP_PORT: '80',
      TIME_BUDGET_PORT_80_TCP_PROTO: 'tcp',
      TIME_BUDGETS: 'x',
    };
    expect(problemsOf(kubernetes)).toEqual([]);
  });
});

describe('switching off', () => {
  test('nothing else is read', () => {
    const env = {
      TIME_BUDGET_DISABLED: 'TRUE',
      TIME_BUDGET_MODE: 'nonsense',
      TIME_BUDGET_CONFIG: 'missing.yaml',
    };
    const result = loadConfig(env, noFile);
    expect(result.ok && result.config.disabled).toBe(true);
  });

  test('the environment overrules the code', () => {
    expect(configOf({}, undefined, { disabled: true }).disabled).toBe(true);
    expect(configOf({ TIME_BUDGET_DISABLED: 'false' }, undefined, { disabled: true }).disabled).toBe(false);
    expect(configOf({ TIME_BUDGET_DISABLED: 'true' }, undefined, { disabled: false }).disabled).toBe(true);
  });

  test('anything but true or false is a problem', () => {
    expect(problemsOf({ TIME_BUDGET_DISABLED: 'yes' })).toEqual([
      'TIME_BUDGET_DISABLED: "yes" is not allowed; use true or false',
    ]);
  });
});

describe('precedence', () => {
  const file = yaml(
    'mode: propagate',
    'entry: {default_ms: 100, ceiling_ms: 900, floor_ms: 10}',
    'reserve_ms: 5',
  );

  test('the environment wins over the file, the file over the code, key by key', () => {
    const options: ConfigOptions = {
      mode: 'enforce',
      reserveMs: 1,
      deadlineToleranceMs: 20,
      entry: { role: 'edge', defaultMs: 50 },
      labels: { callers: 3 },
      operations: { a: { typicalMs: 3, reserveMs: 3 } },
    };
    const config = configOf(
      { TIME_BUDGET_DEFAULT_MS: '300', TIME_BUDGET_RESERVE_MS: '7' },
      `${file}\noperations: {a: {reserve_ms: 4}}`,
      options,
    );
    expect(config.mode).toBe('propagate');
    expect(config.entry).toMatchObject({ role: 'edge', defaultMs: 300, ceilingMs: 900, floorMs: 10 });
    expect(config.reserveMs).toBe(7);
    expect(config.deadlineToleranceMs).toBe(20);
    expect(config.labels).toEqual({ operations: 50, dependencies: 20, callers: 3 });
    expect(config.operationSettings('a')).toMatchObject({ typicalMs: 3, reserveMs: 4 });
  });

  test('a list is replaced as a whole', () => {
    const config = configOf({}, yaml('callers: [b]'), { callers: ['a', 'c'] });
    expect(config.callers).toEqual(['b']);
  });

  test('limits are compared over all sources, and each is named by its own', () => {
    expect(problemsOf({ TIME_BUDGET_CEILING_MS: '50' }, file)).toEqual([
      'budget.yaml: entry.default_ms: 100 is above TIME_BUDGET_CEILING_MS, which is 50',
    ]);
    expect(problemsOf({ TIME_BUDGET_FLOOR_MS: '1000' }, file)).toEqual([
      'TIME_BUDGET_FLOOR_MS: 1000 is above budget.yaml: entry.default_ms, which is 100',
      'TIME_BUDGET_FLOOR_MS: 1000 is above budget.yaml: entry.ceiling_ms, which is 900',
    ]);
    expect(problemsOf({}, undefined, { entry: { floorMs: 2, ceilingMs: 1 } })).toEqual([
      'entry.floorMs: 2 is above entry.ceilingMs, which is 1',
    ]);
  });

  test('equal limits are accepted', () => {
    const env = { TIME_BUDGET_DEFAULT_MS: '5', TIME_BUDGET_CEILING_MS: '5', TIME_BUDGET_FLOOR_MS: '5' };
    expect(problemsOf(env)).toEqual([]);
  });
});

describe('operations', () => {
  const entry = 'entry: {default_ms: 500, ceiling_ms: 1000, floor_ms: 20}';

  test('B-07, B-08: what is left out comes from the entry; a smaller ceiling cuts the inherited default', () => {
    const config = configOf(
      {},
      yaml(entry, 'reserve_ms: 8', 'operations: {a: {typical_ms: 40}, b: {ceiling_ms: 300, reserve_ms: 2}}'),
    );
    const inherited = { defaultMs: 500, ceilingMs: 1000, floorMs: 20, reserveMs: 8 };
    expect(config.operationSettings('a')).toEqual({ ...inherited, typicalMs: 40 });
    expect(config.operationSettings('b')).toEqual({
      defaultMs: 300,
      ceilingMs: 300,
      floorMs: 20,
      reserveMs: 2,
      typicalMs: undefined,
    });
    const unknown = { ...inherited, typicalMs: undefined };
    expect(config.operationSettings('constructor')).toEqual(unknown);
    expect(config.operationSettings(undefined)).toEqual(unknown);
  });

  test('its own ceiling may be above that of the entry; its default is compared with the one in force', () => {
    expect(
      configOf({}, yaml(entry, 'operations: {a: {ceiling_ms: 4000}}')).operationSettings('a').ceilingMs,
    ).toBe(4000);
    expect(problemsOf({}, yaml(entry, 'operations: {"GET /a": {default_ms: 1000}}'))).toEqual([]);
    expect(problemsOf({}, yaml(entry, 'operations: {"GET /a": {default_ms: 1001}}'))).toEqual([
      'budget.yaml: operations."GET /a".default_ms: 1001 is above budget.yaml: entry.ceiling_ms, which is 1000',
    ]);
    expect(problemsOf({}, yaml(entry, 'operations: {a: {default_ms: 301, ceiling_ms: 300}}'))).toEqual([
      'budget.yaml: operations.a.default_ms: 301 is above budget.yaml: operations.a.ceiling_ms, which is 300',
    ]);
    expect(problemsOf({}, yaml(entry, 'operations: {a: {default_ms: 19}, b: {ceiling_ms: 19}}'))).toEqual([
      'budget.yaml: entry.floor_ms: 20 is above budget.yaml: operations.a.default_ms, which is 19',
      'budget.yaml: entry.floor_ms: 20 is above budget.yaml: operations.b.ceiling_ms, which is 19',
    ]);
  });

  test('routes give a plain HTTP request its operation', () => {
    const config = configOf(
      {},
      yaml('routes:', ' - {method: GET, path: "/items/:id", operation: "GET /items/:id"}'),
    );
    expect(config.operationForPath('GET', '/items/7?x=1')).toBe('GET /items/:id');
    expect(config.operationForPath('POST', '/items/7')).toBeUndefined();
    expect(config.routes).toEqual([{ method: 'GET', path: '/items/:id', operation: 'GET /items/:id' }]);
  });
});

describe('dependencies', () => {
  test('B-13, B-14: every key; an unset term is absent, not 0', () => {
    const config = configOf(
      {},
      yaml(
        'mode: propagate',
        'dependencies:',
        '  orders:',
        '    match: [orders.internal, "127.0.0.1:4001", "*.svc.cluster.local", postgresql/orders]',
        '    mode: enforce',
        '    cap_ms: 300',
        '    reserve_ms: 5',
        '    minimum_ms: 300',
        '    latency_ms: 250.5',
        '    typical_ms: 20',
        '    headers: [x-request-timeout-ms, grpc-timeout, x-request-timeout-ms]',
        '    header: off',
        '  ledger: {}',
      ),
    );
    const orders = {
      name: 'orders',
      match: ['orders.internal', '127.0.0.1:4001', '*.svc.cluster.local', 'postgresql/orders'],
      mode: 'enforce',
      capMs: 300,
      reserveMs: 5,
      minimumMs: 300,
      latencyMs: 250.5,
      typicalMs: 20,
      headers: ['x-request-timeout-ms', 'grpc-timeout'],
      header: false,
    };
    expect(config.dependencies).toEqual({
      orders,
      ledger: {
        name: 'ledger',
        match: ['ledger'],
        mode: 'propagate',
        capMs: undefined,
        reserveMs: undefined,
        minimumMs: undefined,
        latencyMs: undefined,
        typicalMs: undefined,
        headers: [],
        header: undefined,
      },
    });
    for (const host of ['orders.internal', 'a.svc.cluster.local', 'postgresql/orders']) {
      expect(config.dependencyFor(host, undefined)?.name).toBe('orders');
    }
    expect(config.dependencyFor('127.0.0.1', 4001)?.name).toBe('orders');
    expect(config.dependencyFor('127.0.0.1', 4002)).toBeUndefined();
    expect(config.dependencyFor('ledger', 5432)?.name).toBe('ledger');
  });

  test('B-45: the mode is set as a whole, per direction and per dependency', () => {
    const { entry, calls, dependencies } = configOf(
      { TIME_BUDGET_MODE: 'propagate' },
      yaml('entry: {mode: enforce}', 'calls: {mode: observe}', 'dependencies: {a: {mode: enforce}, b: {}}'),
    );
    expect([entry.mode, calls.mode, dependencies.a?.mode, dependencies.b?.mode]).toEqual([
      'enforce',
      'observe',
      'enforce',
      'observe',
    ]);
  });

  test('B-12: the reserve is that of the dependency, else of the operation, else of the service', () => {
    const config = configOf(
      {},
      yaml('reserve_ms: 1', 'operations: {a: {reserve_ms: 2}}', 'dependencies: {d: {reserve_ms: 0}, e: {}}'),
    );
    const { d, e } = config.dependencies;
    expect(config.reserveMsFor('a', d)).toBe(0);
    expect(config.reserveMsFor('a', e)).toBe(2);
    expect(config.reserveMsFor('b', undefined)).toBe(1);
    expect(config.reserveMsFor(undefined, undefined)).toBe(1);
  });

  test('a minimum above the cap is refused, an equal one not', () => {
    expect(problemsOf({}, yaml('dependencies: {a: {minimum_ms: 5, cap_ms: 5}}'))).toEqual([]);
    expect(problemsOf({}, yaml('dependencies: {a: {minimum_ms: 5.5, cap_ms: 5}}'))).toEqual([
      'budget.yaml: dependencies.a.minimum_ms: 5.5 is above budget.yaml: dependencies.a.cap_ms, which is 5',
    ]);
  });

  test('a pattern cannot belong to two dependencies, however it is written', () => {
    expect(problemsOf({}, yaml('dependencies: {a: {match: [x.y, x.y]}, b: {match: ["X.Y."]}}'))).toEqual([
      'budget.yaml: dependencies.b.match: "X.Y." is not allowed; use a pattern that does not belong to a already',
    ]);
    expect(problemsOf({}, yaml('dependencies: {a: {match: ["x.y:1"]}, b: {match: [x.y]}}'))).toEqual([]);
    expect(problemsOf({}, yaml('dependencies: {a: {}, b: {match: [a]}}'))).toHaveLength(1);
  });

  test('P-22: our own header can be switched off, limited to hosts, and set per dependency', () => {
    const off = configOf({}, yaml('propagation: {header: off}', 'dependencies: {a: {header: on}}'));
    expect(off.sendsOwnHeader('a', 80)).toBe(true);
    expect(off.sendsOwnHeader('b', 80)).toBe(false);
    const some = configOf(
      {},
      yaml(
        'propagation: {hosts: ["*.internal", "b:81"]}',
        'dependencies: {x.internal: {header: off}, c: {header: true}}',
      ),
    );
    expect(some.sendsOwnHeader('y.internal', 80)).toBe(true);
    expect(some.sendsOwnHeader('x.internal', 80)).toBe(false);
    expect(some.sendsOwnHeader('b', 81)).toBe(true);
    expect(some.sendsOwnHeader('b', 80)).toBe(false);
    expect(some.sendsOwnHeader('c', 80)).toBe(true);
    expect(some.sendsOwnHeader('api.vendor.example', 443)).toBe(false);
  });
});

describe('trust', () => {
  test('P-06, P-07: all inside, nobody at the edge, unless it is said otherwise', () => {
    expect(configOf({}).isTrusted('203.0.113.7')).toBe(true);
    expect(configOf({ TIME_BUDGET_ENTRY_ROLE: 'edge' }).isTrusted('10.0.0.1')).toBe(false);
    const edge = configOf({ TIME_BUDGET_ENTRY_ROLE: 'edge', TIME_BUDGET_TRUST: 'Private' });
    expect(edge.isTrusted('10.0.0.1')).toBe(true);
    expect(edge.isTrusted('203.0.113.7')).toBe(false);
    expect(configOf({}, yaml('entry: {trust: none}')).isTrusted('10.0.0.1')).toBe(false);
    expect(configOf({}, yaml('entry: {trust: ["2001:db8::/32"]}')).isTrusted('2001:db8::1')).toBe(true);
  });

  test.each(['[]', '[all, 10.0.0.1]', '"10.0.0.0/8, x"', '5', '[5]', 'everyone', '["fe80::1%eth0"]'])(
    '%s is refused',
    (text) => {
      const problems = problemsOf({}, yaml(`entry: {trust: ${text}}`));
      expect(problems).toHaveLength(1);
      expect(problems[0]).toMatch(
        /^budget\.yaml: entry\.trust: .* is not allowed; use all, none, private, or IP/,
      );
    },
  );
});

describe('labels', () => {
  test('M-35, M-36: caps from 1 to 500', () => {
    for (const key of ['operations', 'dependencies', 'callers']) {
      for (const good of ['1', '500']) expect(problemsOf({}, yaml(`labels: {${key}: ${good}}`))).toEqual([]);
      for (const bad of ['0', '501', '1.5', '-1', '"8"', 'null', '.inf']) {
        const [problem, more] = problemsOf({}, yaml(`labels: {${key}: ${bad}}`));
        expect(problem).toMatch(
          new RegExp(`^budget\\.yaml: labels\\.${key}: .* use a whole number from 1 to 500$`),
        );
        expect(more).toBeUndefined();
      }
    }
  });

  test('a cap below what is configured is refused', () => {
    const file = (cap: number): string =>
      yaml(
        `labels: {operations: ${cap}, dependencies: ${cap}, callers: ${cap}}`,
        'operations: {a: {}}',
        'routes: [{path: /b, operation: b}, {path: /a, operation: a}]',
        'dependencies: {a: {}, b: {}}',
        'callers: [a, b, a]',
      );
    expect(problemsOf({}, file(2))).toEqual([]);
    expect(problemsOf({}, file(1))).toEqual([
      'budget.yaml: labels.operations: 1 is not allowed; use at least 2, as many as are configured',
      'budget.yaml: labels.dependencies: 1 is not allowed; use at least 2, as many as are configured',
      'budget.yaml: labels.callers: 1 is not allowed; use at least 2, as many as are configured',
    ]);
    expect(problemsOf({}, yaml('callers: [a, b, c, d, e, f, g, h, i]'))).toEqual([
      'labels.callers: 8 is not allowed; use at least 9, as many as are configured',
    ]);
  });

  test('names that metrics use for something else are refused', () => {
    for (const name of [
      'other',
      'unknown',
      'none',
      '__proto__',
      '" a"',
      '"a b\\nc"',
      '""',
      `x${'y'.repeat(128)}`,
    ]) {
      expect(problemsOf({}, yaml(`operations: {${name}: {}}`)), name).toHaveLength(1);
      expect(problemsOf({}, yaml(`dependencies: {${name}: {}}`)), name).toHaveLength(1);
      expect(problemsOf({}, yaml(`callers: [${name}]`)), name).toHaveLength(1);
    }
    for (const name of ['otherwise', 'A-1._b', 'constructor']) {
      const config = configOf(
        {},
        yaml(`operations: {${name}: {}}`, `dependencies: {${name}: {}}`, `callers: [${name}]`),
      );
      expect([Object.keys(config.operations), Object.keys(config.dependencies), config.callers]).toEqual([
        [name],
        [name],
        [name],
      ]);
    }
  });

  test('names at their last accepted and first rejected length', () => {
    const of = (length: number): string => 'x'.repeat(length);
    expect(problemsOf({}, yaml(`operations: {${of(128)}: {}}`))).toEqual([]);
    expect(problemsOf({}, yaml(`operations: {${of(129)}: {}}`))).toHaveLength(1);
    expect(problemsOf({}, yaml(`dependencies: {${of(64)}: {}}`, `callers: [${of(64)}]`))).toEqual([]);
    expect(problemsOf({}, yaml(`dependencies: {${of(65)}: {}}`, `callers: [${of(65)}]`))).toHaveLength(2);
  });
});

describe('policy version', () => {
  test('as given', () => {
    expect(configOf({}, yaml('policy_version: "2026-11-a"')).policyVersion).toBe('2026-11-a');
    expect(problemsOf({}, yaml(`policy_version: "${'v'.repeat(64)}"`))).toEqual([]);
    for (const bad of ['1.10', 'a b', '""', 'v'.repeat(65)]) {
      expect(problemsOf({}, yaml(`policy_version: ${bad}`))).toHaveLength(1);
    }
  });

  test('else a hash of the effective settings, whatever the source and the order', () => {
    const file = configOf({}, yaml('entry: {default_ms: 5, ceiling_ms: 6}', 'mode: enforce')).policyVersion;
    const reordered = configOf(
      {},
      yaml('mode: enforce', 'entry: {ceiling_ms: 6, default_ms: 5}'),
    ).policyVersion;
    const code = defaultConfig({ mode: 'enforce', entry: { defaultMs: 5, ceilingMs: 6 } }).policyVersion;
    const env = { TIME_BUDGET_MODE: 'enforce', TIME_BUDGET_DEFAULT_MS: '5', TIME_BUDGET_CEILING_MS: '6' };
    expect([reordered, code, configOf(env).policyVersion]).toEqual([file, file, file]);
    expect(configOf({ ...env, TIME_BUDGET_CEILING_MS: '7' }).policyVersion).not.toBe(file);
    expect(defaultConfig({ mode: 'observe' }).policyVersion).toBe(defaultConfig().policyVersion);
  });
});

describe('given in code', () => {
  test('the same checks, with the keys as they are written there', () => {
    // What a service in plain JavaScript can pass.
    const options = JSON.parse(
      '{"modes":"x","entry":{"default_ms":5,"floorMs":"5%"},"operations":{"a b":{"typical":1}},"bucketsS":[1,1],"version":1}',
    ) as ConfigOptions;
    expect(problemsOf({}, undefined, options)).toEqual([
      'entry.floorMs: "5%" is not allowed; use a number of milliseconds from 0 to 2^53; a percentage is refused ' +
        'because its size changes with what each caller sends',
      'entry: unknown key "default_ms", did you mean "defaultMs"?',
      'operations."a b": unknown key "typical", did you mean "typicalMs"?',
      'bucketsS: this list is not allowed; use a list of 1 to 40 rising numbers of seconds, each above 0',
      'unknown key "modes", did you mean "mode"?',
      'unknown key "version"; known here: disabled, mode, entry, calls, reserveMs, propagation, ' +
        'deadlineToleranceMs, operations, routes, dependencies, retryBudgets, degradedModes, callers, labels, bucketsS, policyVersion',
    ]);
    expect(() => defaultConfig(options)).toThrow(/did you mean "defaultMs"/);
  });

  test('keys that are undefined are not set', () => {
    const config = defaultConfig({ mode: undefined, entry: { defaultMs: undefined }, labels: undefined });
    expect(config.policyVersion).toBe(defaultConfig().policyVersion);
  });
});

describe('this process', () => {
  test('a file from the disk, and files that cannot be read', () => {
    const here = new URL('../../docs/configuration.md', import.meta.url);
    const folder = mkdtempSync(join(tmpdir(), 'config-'));
    const saved = process.env.TIME_BUDGET_CONFIG;
    const read = (path: string): readonly string[] => {
      process.env.TIME_BUDGET_CONFIG = path;
      const result = loadProcessConfig();
      return result.ok ? [] : result.problems;
    };
    try {
      expect(read('/does/not/exist.yaml')).toEqual([
        '/does/not/exist.yaml: cannot be read: there is no such file',
      ]);
      expect(read('/dev/null')).toEqual(['/dev/null: cannot be read: it is not a regular file']);
      expect(read('.')).toEqual(['.: cannot be read: it is not a regular file']);
      expect(read(here.pathname)[0]).toContain('is not valid YAML');
      const good = join(folder, 'good.yaml');
      writeFileSync(good, 'version: 1\n');
      expect(read(good)).toEqual([]);
      const long = join(folder, 'l.yaml');
      writeFileSync(long, `version: 1 #${'x'.repeat(1024 * 1024)}`);
      expect(read(long)).toEqual([`${long}: cannot be read: it is longer than 1048576 bytes`]);
    } finally {
      rmSync(folder, { recursive: true });
      if (saved === undefined) delete process.env.TIME_BUDGET_CONFIG;
      else process.env.TIME_BUDGET_CONFIG = saved;
    }
  });

  test('the example of the documentation is valid', () => {
    const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');
    const example = /```yaml\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
    const config = configOf({}, example);
    expect(config.dependencyFor('a.orders.svc.cluster.local', 80)).toMatchObject({
      name: 'orders',
      capMs: 600,
    });
    expect(config.dependencyFor('postgresql/ledger', undefined)?.mode).toBe('enforce');
    expect(config.sendsOwnHeader('api.maps.example', 443)).toBe(false);
    for (const block of text.match(/```text\n[\s\S]*?```/g) ?? []) expect(block).toContain('budget.yaml: ');
  });
});
