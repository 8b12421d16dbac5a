import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Child, REGISTER } from '../support/child.ts';
import { type FailingServer, startFailingServer } from '../support/retry-stage.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const page = readFileSync(`${ROOT}/docs/retries.md`, 'utf8');
const examples = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code);
const NAMES = [
  'managed_background',
  'mayRetry',
  'p-retry',
  'cockatiel',
  'got',
  'axios-retry',
  'interceptors.retry',
  'RetryAgent',
  'watchCockatielBreaker',
  'watchOpossumBreaker',
];
/** Examples behind these, which repeat nothing. */
const OTHERS = ['hedge', 'watchAwsRetries'];
const named = NAMES.map((name, at) => [name, examples[at] ?? ''] as const);

let server: FailingServer;

beforeEach(async () => {
  server = await startFailingServer();
});

afterEach(() => server.close());

/** The example as a service would run it: from the built package, with the flag, in this folder's libraries. */
function run(code: string): Child {
  const source = code.replaceAll("from 'undici'", "from 'undici8'");
  return new Child(['--import', REGISTER, '--input-type=module', '--eval', source], {
    STOCK_URL: server.url,
    OTEL_SDK_DISABLED: 'true',
  });
}

describe('the examples of docs/retries.md', () => {
  test('there is one for each library', () => {
    expect(examples).toHaveLength(NAMES.length + OTHERS.length);
    for (const [name, code] of named) expect(code).toContain(name);
  });

  test.each(named)('%s: one failure is repeated, and the process ends', async (_, code) => {
    server.failures = 1;
    const { code: exitCode, stdout, stderr } = await run(code).output();
    expect({ exitCode, stdout, stderr }).toEqual({ exitCode: 0, stdout: 'stocked\n', stderr: '' });
    expect(server.arrivals).toBe(2);
  });

  test.each(named)('%s: three attempts and no more', async (_, code) => {
    server.failures = 9;
    const { code: exitCode } = await run(code).output();
    expect(exitCode).toBe(1);
    expect(server.arrivals).toBe(3);
  });

  test.each(OTHERS)('%s: runs, and the process ends', async (name) => {
    const code = examples[NAMES.length + OTHERS.indexOf(name)] ?? '';
    expect(code).toContain(name);
    const { code: exitCode, stdout, stderr } = await run(code).output();
    expect({ exitCode, stdout, stderr }).toEqual({
      exitCode: 0,
      stdout: name === 'hedge' ? 'stocked\n' : '',
      stderr: '',
    });
  });
});
