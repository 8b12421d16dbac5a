import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { declaresSdk, isSdkPackage, packageOf } from '../../../instrumentation/sdk/foreign-sdk.ts';

describe('packages that bring an SDK', () => {
  test.each([
    '@opentelemetry/sdk-node',
    '@opentelemetry/sdk-trace-base',
    '@opentelemetry/auto-instrumentations-node',
    '@opentelemetry/instrumentation-http',
    '@azure/monitor-opentelemetry',
    '@elastic/opentelemetry-node',
    '@splunk/otel',
    '@vercel/otel',
    'bullmq-otel',
    '@sentry/node',
    'dd-trace',
    'newrelic',
  ])('%s', (name) => {
    expect(isSdkPackage(name)).toBe(true);
  });

  test.each([
    '@opentelemetry/api',
    '@opentelemetry/semantic-conventions',
    'otel-time-budget',
    'hotel-search',
    '@acme/motel',
    'express',
    'sentry-like',
    'dd-trace-x',
  ])('not %s', (name) => {
    expect(isSdkPackage(name)).toBe(false);
  });
});

test.each([
  ['express', 'express'],
  ['express/lib/router', 'express'],
  ['@opentelemetry/sdk-node', '@opentelemetry/sdk-node'],
  ['@opentelemetry/auto-instrumentations-node/register', '@opentelemetry/auto-instrumentations-node'],
  ['file:///app/node_modules/dd-trace/init.js', 'dd-trace'],
  ['/app/node_modules/a/node_modules/@sentry/node/build/index.js', '@sentry/node'],
  ['./tracing.js', undefined],
  ['../otel.js', undefined],
  ['/app/otel.js', undefined],
  ['file:///app/otel.js', undefined],
  ['node:http', undefined],
  ['data:text/javascript,otel', undefined],
])('%s asks for %s', (specifier, name) => {
  expect(packageOf(specifier)).toBe(name);
});

describe('a package.json', () => {
  const root = mkdtempSync(join(tmpdir(), 'time-budget-'));
  afterAll(() => rmSync(root, { recursive: true }));
  let count = 0;
  const service = (text: string): string => {
    const folder = join(root, String(++count), 'src', 'deep');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(root, String(count), 'package.json'), text);
    return folder;
  };

  test.each(['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'])(
    'that names an SDK in its %s',
    (group) => {
      expect(declaresSdk([service(JSON.stringify({ name: 'shop', [group]: { '@vercel/otel': '1' } }))])).toBe(
        true,
      );
    },
  );

  test.each([
    [
      'that names the API and us only',
      JSON.stringify({ dependencies: { '@opentelemetry/api': '1', 'otel-time-budget': '1' } }),
    ],
    [
      'of ours',
      JSON.stringify({ name: 'otel-time-budget', dependencies: { '@opentelemetry/sdk-node': '1' } }),
    ],
    ['with strange groups', JSON.stringify({ dependencies: 'dd-trace', devDependencies: null })],
    ['that is no object', '"dd-trace"'],
    ['that is null', 'null'],
    ['that is broken', '{'],
  ])('%s', (_what, text) => {
    expect(declaresSdk([service(text)])).toBe(false);
  });

  test('of any of the folders', () => {
    const plain = service('{}');
    const other = service(JSON.stringify({ dependencies: { newrelic: '1' } }));
    expect(declaresSdk([plain, other])).toBe(true);
    expect(declaresSdk([plain])).toBe(false);
  });
});
