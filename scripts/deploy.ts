/**
 * Writes what deploy/ holds of other files of this repository: the rules as a PrometheusRule and with the addresses of
 * docker-compose.yml, the dashboards for Grafana's sidecar and for its operator, the collectors' configuration. With
 * --check, fails when one of them is not what would be written.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { parse, stringify } from 'yaml';
import { readOptions } from '../rules/options.ts';
import { rulesFile } from '../rules/rules-file.ts';

const ROOT = new URL('..', import.meta.url);
const HEAD = '# Made by `npm run docs`; do not edit.\n';
/** Of everything that this repository brings to a cluster. */
const LABELS = { 'app.kubernetes.io/part-of': 'otel-time-budget' };

interface Dashboard {
  readonly uid: string;
}

function text(path: string): string {
  return readFileSync(new URL(path, ROOT), 'utf8');
}

/** Lines are never folded: an expression stays as it is in its own file. */
function documents(objects: readonly object[]): string {
  return HEAD + objects.map((object) => stringify(object, { lineWidth: 0 })).join('---\n');
}

function prometheusRule(): object {
  return {
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata: { name: 'time-budget', labels: LABELS },
    spec: parse(text('dashboards/alerts/time-budget.rules.yml')),
  };
}

function dashboards(): Dashboard[] {
  const folder = 'dashboards/json/';
  return (
    readdirSync(new URL(folder, ROOT))
      .filter((name) => name.endsWith('.json'))
      .sort()
      // The generator of the dashboards writes nothing else into this folder.
      .map((name) => JSON.parse(text(folder + name)) as Dashboard)
  );
}

/** One each, so that none comes near the 256 KiB that `kubectl apply` can write into an annotation. */
function configMap(dashboard: Dashboard): object {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: dashboard.uid,
      labels: { ...LABELS, grafana_dashboard: '1' },
      annotations: { grafana_folder: 'Time budgets' },
    },
    // The line end makes it a block, without quotes to escape.
    data: { [`${dashboard.uid}.json`]: `${JSON.stringify(dashboard)}\n` },
  };
}

/** Reads the ConfigMap of the same name, so that the JSON is in the cluster once. */
function grafanaDashboard({ uid }: Dashboard): object {
  return {
    apiVersion: 'grafana.integreatly.org/v1beta1',
    kind: 'GrafanaDashboard',
    metadata: { name: uid, labels: LABELS },
    spec: {
      instanceSelector: { matchLabels: { dashboards: 'grafana' } },
      folder: 'Time budgets',
      configMapRef: { name: uid, key: `${uid}.json` },
    },
  };
}

/** Each by the name that its pods mount. */
function collectorConfig(name: string, files: readonly string[]): object {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name,
      namespace: 'observability',
      labels: { ...LABELS, 'app.kubernetes.io/name': name },
    },
    data: Object.fromEntries(files.map((file) => [file, text(`collector/${file}`)])),
  };
}

/** The alerts of docker-compose.yml lead to its own Grafana. */
function composeRules(): string {
  const read = readOptions({ 'dashboard-url': ['http://localhost:3000'] });
  if ('problems' in read) throw new Error(read.problems.join('; '));
  return rulesFile(read.options, 'otel-time-budget rules --dashboard-url http://localhost:3000');
}

const boards = dashboards();
const wanted: Readonly<Record<string, string>> = {
  'deploy/kubernetes/rules.yaml': documents([prometheusRule()]),
  'deploy/kubernetes/dashboards/configmaps.yaml': documents(boards.map(configMap)),
  'deploy/kubernetes/collector/config.yaml': documents([
    collectorConfig('time-budget-agent', ['agent.yaml']),
    collectorConfig('time-budget-gateway', ['gateway.yaml', 'metrics-page.yaml']),
  ]),
  'deploy/compose/time-budget.rules.yml': composeRules(),
  'deploy/kubernetes/dashboards/grafana-operator.yaml': documents(boards.map(grafanaDashboard)),
};
for (const [path, content] of Object.entries(wanted)) {
  if (!process.argv.includes('--check')) writeFileSync(new URL(path, ROOT), content);
  else if (text(path) !== content) {
    console.error(`${path} is not what its sources say: run \`npm run docs\``);
    process.exitCode = 1;
  }
}
