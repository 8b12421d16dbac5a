import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { schemaErrors } from '../support/kubernetes-schema.ts';
import { RULES } from '../support/promtool.ts';
import { findProgram } from '../support/real-program.ts';

const PROMTOOL = findProgram('promtool');

const FOLDER = fileURLToPath(new URL('../../deploy/kubernetes/', import.meta.url));
const DASHBOARDS = fileURLToPath(new URL('../../dashboards/json/', import.meta.url));

interface Resource {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec: unknown;
  readonly data?: Readonly<Record<string, string>>;
}

const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.yaml'))
  .sort();

function read(file: string): Resource[] {
  return parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')).map((document) => {
    expect(document.errors, file).toEqual([]);
    // The schemas say whether it is one.
    return document.toJS() as Resource;
  });
}

function only(file: string, kind: string): Resource {
  const found = read(file).filter((resource) => resource.kind === kind);
  expect(found, `${kind} in ${file}`).toHaveLength(1);
  // The line above has counted them.
  return found[0] as Resource;
}

/** A copy in which one place is another. */
function changed(resource: Resource, path: readonly (string | number)[], value: unknown): Resource {
  const copy = structuredClone(resource);
  // A walk through a tree of which only the test knows the shape.
  let at = copy as unknown as Record<string | number, unknown>;
  for (const key of path.slice(0, -1)) at = at[key] as Record<string | number, unknown>;
  at[path.at(-1) ?? ''] = value;
  return copy;
}

describe('deploy/kubernetes against the published schemas', () => {
  it.each(files)('%s', (file) => {
    const wrong = read(file).flatMap((resource) =>
      schemaErrors(resource).map((error) => `${resource.kind} ${resource.metadata.name}: ${error}`),
    );
    expect(wrong).toEqual([]);
  });

  it('one name of a kind in a namespace is there once', () => {
    const names = files
      .flatMap(read)
      .map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([]);
  });

  const container = ['spec', 'template', 'spec', 'containers', 0] as const;
  it.each([
    ['a field that does not exist', 'deployment.yaml', 'Deployment', [...container, 'imagee'], 'x'],
    [
      'a port that is a text',
      'deployment.yaml',
      'Deployment',
      [...container, 'ports'],
      [{ containerPort: 'x' }],
    ],
    ['no selector', 'deployment.yaml', 'Deployment', ['spec', 'selector'], undefined],
    [
      'a field of another spelling',
      'monitors.yaml',
      'PodMonitor',
      ['spec', 'podMetricsEndpoints', 0, 'honourLabels'],
      true,
    ],
    [
      'a duration that is none',
      'monitors.yaml',
      'PodMonitor',
      ['spec', 'podMetricsEndpoints', 0, 'interval'],
      '15 s',
    ],
    [
      'a rule without an expression',
      'rules.yaml',
      'PrometheusRule',
      ['spec', 'groups', 0, 'rules', 0, 'expr'],
      undefined,
    ],
    ['an unknown propagator', 'instrumentation.yaml', 'Instrumentation', ['spec', 'propagators'], ['w3c']],
    ['an unknown language', 'instrumentation.yaml', 'Instrumentation', ['spec', 'nodeJs'], {}],
  ] as const)('the check finds %s', (_, file, kind, path, value) => {
    const resource = only(file, kind);
    expect(schemaErrors(resource)).toEqual([]);
    // Through JSON, as undefined leaves a key behind.
    const broken = JSON.parse(JSON.stringify(changed(resource, path, value))) as Resource;
    expect(schemaErrors(broken)).not.toEqual([]);
  });
});

describe('what is made from other files', () => {
  it('the rules are those of dashboards/alerts, word for word', () => {
    expect(only('rules.yaml', 'PrometheusRule').spec).toEqual(parse(readFileSync(RULES, 'utf8')));
  });

  it.skipIf(PROMTOOL === undefined)('the rules in the PrometheusRule pass promtool', () => {
    const folder = mkdtempSync(join(tmpdir(), 'time-budget-rule-'));
    try {
      const file = join(folder, 'rules.yml');
      writeFileSync(file, stringify(only('rules.yaml', 'PrometheusRule').spec));
      const { status, stdout, stderr } = spawnSync(PROMTOOL ?? 'promtool', ['check', 'rules', file], {
        encoding: 'utf8',
      });
      expect(status, stdout + stderr).toBe(0);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('each dashboard is in a ConfigMap for the sidecar, and a GrafanaDashboard reads it from there', () => {
    const names = readdirSync(DASHBOARDS).sort();
    const maps = read('dashboards/configmaps.yaml');
    expect(maps.flatMap(({ data }) => Object.keys(data ?? {}))).toEqual(names);
    for (const map of maps) {
      expect(map.metadata.labels).toMatchObject({ grafana_dashboard: '1' });
      for (const [name, json] of Object.entries(map.data ?? {})) {
        const made = JSON.parse(readFileSync(join(DASHBOARDS, name), 'utf8'));
        expect(isDeepStrictEqual(JSON.parse(json), made), `${name}: run npm run docs`).toBe(true);
        // `kubectl apply` keeps what it applied in an annotation, and no annotations are longer than this.
        expect(JSON.stringify(map).length).toBeLessThan(256 * 1024);
      }
    }
    expect(read('dashboards/grafana-operator.yaml').map(({ spec }) => spec)).toEqual(
      maps.map(({ metadata, data }) => ({
        instanceSelector: { matchLabels: { dashboards: 'grafana' } },
        folder: 'Time budgets',
        configMapRef: { name: metadata.name, key: Object.keys(data ?? {})[0] },
      })),
    );
  });
});
