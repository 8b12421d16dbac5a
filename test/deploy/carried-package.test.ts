/**
 * The package as a pod has it: copied to a folder of its own, named by NODE_OPTIONS, with the service elsewhere. What
 * the files in deploy/kubernetes say is what is set here, with the folder of this test in place of theirs.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { freePort } from '../../demo/free-port.ts';
import { parseExposition } from '../../demo/scrape.ts';
import { Child } from '../support/child.ts';
import { OtlpCollector } from '../support/otlp-collector.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SERVICE = `
const server = require('node:http').createServer((request, response) => response.end('ok'));
server.listen(0, '127.0.0.1', () => console.log('listening on ' + server.address().port));
`;

interface Variable {
  readonly name: string;
  readonly value?: string;
}

let mounted: string;
let service: string;
let folder: string;
let child: Child | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'time-budget-pod-'));
  mounted = join(folder, 'mounted');
  // As deploy/image/Dockerfile lays it.
  const own = join(mounted, 'otel-time-budget');
  mkdirSync(own, { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(own, 'package.json'));
  cpSync(join(ROOT, 'dist'), join(own, 'dist'), { recursive: true });
  symlinkSync(join(ROOT, 'node_modules'), join(own, 'node_modules'));
  cpSync(join(ROOT, 'deploy/image/autoinstrumentation.cjs'), join(mounted, 'autoinstrumentation.js'));
  service = join(folder, 'service.cjs');
  writeFileSync(service, SERVICE);
});

afterEach(async () => {
  await child?.stop();
  child = undefined;
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The variables with a value that a file sets, by a path into its first document. */
function variables(file: string, ...path: readonly (string | number)[]): Record<string, string> {
  const [document] = parseAllDocuments(readFileSync(join(ROOT, 'deploy/kubernetes', file), 'utf8'));
  // A walk to a list of variables: kubernetes.test.ts holds these files to their schemas.
  const found = path.reduce<unknown>(
    (at, key) => (at as Record<string | number, unknown>)[key],
    document?.toJS(),
  );
  return Object.fromEntries(
    (found as readonly Variable[]).flatMap(({ name, value }) => (value === undefined ? [] : [[name, value]])),
  );
}

function inThisFolder(variable: string, mountPath: string): string {
  return variable.replaceAll(`${mountPath}/`, `${mounted}/`);
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 20_000;
  while (!(await holds())) {
    if (performance.now() > giveUpAt) throw new Error('too late');
    await sleep(20);
  }
}

it('an init container and NODE_OPTIONS (deployment.yaml): the page is there to be scraped', async () => {
  const env = variables('deployment.yaml', 'spec', 'template', 'spec', 'containers', 0, 'env');
  const page = await freePort();
  child = new Child([service], {
    NODE_OPTIONS: inThisFolder(env.NODE_OPTIONS ?? '', '/time-budget'),
    OTEL_SERVICE_NAME: 'orders',
    OTEL_METRICS_EXPORTER: env.OTEL_METRICS_EXPORTER ?? '',
    OTEL_EXPORTER_PROMETHEUS_HOST: env.OTEL_EXPORTER_PROMETHEUS_HOST ?? '',
    OTEL_EXPORTER_PROMETHEUS_PORT: String(page),
  });
  const port = await child.port();
  await (await fetch(`http://127.0.0.1:${port}/`)).text();
  const offered = async () => {
    const text = await fetch(`http://127.0.0.1:${page}/metrics`).then(
      (answer) => answer.text(),
      () => '',
    );
    return parseExposition(text).some(
      ({ name, value }) => name === 'time_budget_offered_total' && value === 1,
    );
  };
  await until(offered);
  expect(child.stderr).toBe('');
});

it('the operator (instrumentation.yaml): metrics are pushed, and its own flag does no harm', async () => {
  const env = variables('instrumentation.yaml', 'spec', 'nodejs', 'env');
  const collector = new OtlpCollector();
  await collector.start();
  try {
    child = new Child([service], {
      ...env,
      // What the operator appends to it.
      NODE_OPTIONS: inThisFolder(
        `${env.NODE_OPTIONS} --require /otel-auto-instrumentation-nodejs/autoinstrumentation.js`,
        '/otel-auto-instrumentation-nodejs',
      ),
      OTEL_SERVICE_NAME: 'orders',
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json',
      OTEL_METRIC_EXPORT_INTERVAL: '100',
    });
    const port = await child.port();
    await (await fetch(`http://127.0.0.1:${port}/`)).text();
    await collector.until(
      () => collector.value('orders', 'time_budget.offered') === 1,
      () => collector.metricNames('orders').join(', '),
    );
    expect(child.stderr).toBe('');
  } finally {
    collector.stop();
  }
});

it('a container with a NODE_OPTIONS of its own: says what is missing, and the service runs', async () => {
  child = new Child([service], {
    NODE_OPTIONS: `--max-old-space-size=200 --require ${join(mounted, 'autoinstrumentation.js')}`,
  });
  const port = await child.port();
  expect(await (await fetch(`http://127.0.0.1:${port}/`)).text()).toBe('ok');
  expect(child.stderr).toBe(
    'otel-time-budget: not loaded: the container has a NODE_OPTIONS of its own; add --import /otel-auto-instrumentation-nodejs/otel-time-budget/dist/instrumentation/register.js\n',
  );
});
