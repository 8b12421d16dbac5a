import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { loadConfig } from '../../src/telemetry/config.ts';
import { Child, REGISTER } from '../support/child.ts';

const page = readFileSync(new URL('../../docs/load.md', import.meta.url), 'utf8');

function example(language: string, word: string): string {
  const found = [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].find(
    ([, is, code = '']) => is === language && code.includes(word),
  );
  return found?.[2] ?? '';
}

function run(code: string): Child {
  const args = ['--import', REGISTER, '--input-type=module', '--eval', code];
  return new Child(args, { OTEL_SDK_DISABLED: 'true', TIME_BUDGET_MODE: 'enforce' });
}

describe('the examples of docs/load.md', () => {
  test('the gate lets a request in', async () => {
    const ask = `.listen(0, async function () {
      console.log(await (await fetch('http://127.0.0.1:' + this.address().port)).text());
      process.exit();
    })`;
    const { stdout, code } = await run(example('js', 'gate.handler').replace('.listen(8080)', ask)).output();
    expect({ stdout, code }).toEqual({ stdout: 'done\n', code: 0 });
  });

  test('bulkheads and queues are watched, and nothing keeps the process alive', async () => {
    const before =
      "import { bulkhead } from 'cockatiel'; const queue = { size: 1 }; const oldestAt = undefined;";
    const after = "console.log(await stock.execute(() => 'stocked'));";
    const { stdout, code } = await run(before + example('js', 'watchBulkhead') + after).output();
    expect({ stdout, code }).toEqual({ stdout: 'stocked\n', code: 0 });
  });

  test('the degraded mode is one', () => {
    const env = { TIME_BUDGET_CONFIG: 'time-budget.yaml' };
    const result = loadConfig(env, () => example('yaml', 'degraded_modes'));
    expect(result).toMatchObject({ ok: true });
    expect(result.ok && result.config.degradedModes['cached-prices']?.nonDegradable).toEqual([
      'POST /payments',
    ]);
  });
});
