import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { documentText, publishedSchema, schemaText } from '../../scripts/config-schema.ts';
import { defaultConfig } from '../../src/telemetry/config.ts';
import { camelCase, fileSchema, optionsSchema, snakeCase } from '../../src/telemetry/config-schema.ts';
import { makeKit } from '../../src/telemetry/config-schema-kit.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';

interface Node {
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly additionalProperties?: Node | boolean;
  readonly items?: Node;
}

/** Paths of all keys of a JSON Schema, with a star for a free name or an item. */
function schemaKeys(node: Node, prefix = ''): string[] {
  const keys = Object.entries(node.properties ?? {}).flatMap(([key, child]) => [
    `${prefix}${key}`,
    ...schemaKeys(child, `${prefix}${key}.`),
  ]);
  if (typeof node.additionalProperties === 'object')
    keys.push(...schemaKeys(node.additionalProperties, `${prefix}*.`));
  if (node.items !== undefined) keys.push(...schemaKeys(node.items, `${prefix}*.`));
  return keys;
}

type Full<T> = T extends readonly (infer Item)[]
  ? readonly Full<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]-?: Full<Exclude<T[Key], undefined>> }
    : T;

/** The compiler wants every key of the interface here; the test below wants every key of the schema. */
const FULL: Full<ConfigOptions> = {
  disabled: false,
  mode: 'propagate',
  entry: { mode: 'enforce', role: 'edge', trust: 'private', defaultMs: 2, ceilingMs: 3, floorMs: 1 },
  calls: { mode: 'observe' },
  reserveMs: 4,
  propagation: { header: true, hosts: ['a'] },
  deadlineToleranceMs: 5,
  operations: { '*': { defaultMs: 2, ceilingMs: 3, reserveMs: 6, typicalMs: 7 } },
  routes: [{ method: 'GET', path: '/a', operation: 'a' }],
  dependencies: {
    star: {
      match: ['b'],
      mode: 'enforce',
      capMs: 9,
      reserveMs: 8,
      minimumMs: 7,
      latencyMs: 6,
      typicalMs: 5,
      headers: ['grpc-timeout'],
      header: false,
    },
  },
  retryBudgets: {
    bucket: {
      dependencies: ['star'],
      model: 'token_bucket',
      ratio: 0.2,
      reservePerSecond: 1,
      ttlMs: 10_000,
      feed: 'success',
      maxTokens: 10,
      tokenRatio: 0.1,
      percent: 20,
      minimum: 3,
      capacity: 500,
      successAmount: 1,
      attemptCost: 10,
      unit: 'requests',
      floor: { attempts: 1, everyMs: 10_000 },
      onEmpty: 'degrade',
      policyVersion: 'r1',
    },
  },
  degradedModes: {
    cached: {
      trigger: {
        metric: 'time_budget_queue_depth',
        labels: ['queue=a'],
        enterAt: 2,
        exitAt: 1,
        windowMs: 10,
      },
      leastMs: 0,
      nonDegradable: ['a'],
    },
  },
  callers: ['c'],
  labels: { operations: 5, dependencies: 6, callers: 7 },
  bucketsS: [1, 2],
  policyVersion: 'v1',
};

function sampleKeys(value: unknown, prefix = '', named = false): string[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, child]) => {
    const path = `${prefix}${named ? '*' : key}`;
    const names =
      Array.isArray(child) ||
      (prefix === '' && ['operations', 'dependencies', 'retryBudgets', 'degradedModes'].includes(key));
    return [...(named ? [] : [path]), ...sampleKeys(child, `${path}.`, names)];
  });
}

describe('the schema', () => {
  test('the options have the keys of the interface, the file the same in snake_case and `version`', () => {
    const options = schemaKeys(JSON.parse(JSON.stringify(z.toJSONSchema(optionsSchema(z), { io: 'input' }))));
    const withoutScalars = sampleKeys(FULL).filter(
      (key) =>
        !/^(callers|bucketsS|propagation\.hosts)\.|match\.|labels\.\d|nonDegradable\.|headers\.|\.dependencies\./.test(
          key,
        ),
    );
    expect(withoutScalars.sort()).toEqual(options.toSorted());
    const file = schemaKeys(publishedSchema());
    expect(file.map(camelCase).sort()).toEqual(
      [...options.filter((key) => key !== 'disabled'), 'version'].sort(),
    );
    expect(file).toEqual(file.map(snakeCase));
  });

  test('a sample with every key is taken over', () => {
    // No model of a retry budget takes all its keys.
    const config = defaultConfig({ ...FULL, retryBudgets: {} });
    expect(config).toMatchObject({
      mode: 'propagate',
      entry: { mode: 'enforce', role: 'edge', trust: ['private'], defaultMs: 2, ceilingMs: 3, floorMs: 1 },
      calls: { mode: 'observe' },
      reserveMs: 4,
      propagation: FULL.propagation,
      deadlineToleranceMs: 5,
      operations: { '*': { defaultMs: 2, ceilingMs: 3, floorMs: 1, reserveMs: 6, typicalMs: 7 } },
      routes: FULL.routes,
      dependencies: { star: { name: 'star', ...FULL.dependencies.star } },
      callers: ['c'],
      labels: FULL.labels,
      bucketsS: [1, 2],
      policyVersion: 'v1',
    });
  });

  test('every key has a description, and no object takes unknown keys', () => {
    const walk = (node: Node, path: string): void => {
      expect(node.description, path).toMatch(/\.$/);
      if (node.properties !== undefined) expect(node.additionalProperties, path).toBe(false);
      for (const [key, child] of Object.entries(node.properties ?? {})) walk(child, `${path}.${key}`);
      if (typeof node.additionalProperties === 'object') walk(node.additionalProperties, `${path}.*`);
    };
    walk(publishedSchema(), 'root');
  });

  test('a new group is one more line: the blocks make checks, messages and descriptions alike', () => {
    const kit = makeKit(z, (key) => key);
    const group = kit.group('A later stage.', { ratio_ms: kit.ms('A time.', 'zero') }, ['ratio_ms']);
    expect(group.safeParse({ ratio_ms: 1 }).success).toBe(true);
    expect(group.safeParse({ ratio_mz: 1 }).error?.issues.map((issue) => issue.message)).toEqual([
      'a number of milliseconds from 0 to 2^53',
      'unknown key "ratio_mz", did you mean "ratio_ms"?',
    ]);
  });
});

describe('what is published', () => {
  const script = fileURLToPath(new URL('../../scripts/config-schema.ts', import.meta.url));
  const read = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

  test('the committed files are up to date', () => {
    expect(read('schema/time-budget.schema.json')).toBe(schemaText());
    expect(read('docs/configuration.md')).toBe(documentText(read('docs/configuration.md')));
    expect(execFileSync(process.execPath, [script, '--check'], { encoding: 'utf8' })).toBe('');
  });

  test('the document without its markers is an error, not an empty table', () => {
    expect(() => documentText('# nothing')).toThrow(/markers/);
  });

  test('the published schema accepts what the file accepts, in its own words', () => {
    const schema = z.fromJSONSchema(JSON.parse(read('schema/time-budget.schema.json')));
    for (const [value, ok] of [
      [{ version: 1 }, true],
      [{ version: 1, entry: { default_ms: 0 } }, false],
      [{ version: 1, entry: { floor_ms: 0 } }, true],
      [{ version: 1, labels: { callers: 501 } }, false],
      [{ version: 1, modes: 'x' }, false],
      [{ version: 1, callers: ['other'] }, false],
      [{ version: 1, propagation: { header: 'off' } }, true],
      [{}, false],
    ] as const) {
      expect(schema.safeParse(value).success, JSON.stringify(value)).toBe(ok);
      expect(fileSchema(z).safeParse(value).success, JSON.stringify(value)).toBe(ok);
    }
  });
});
