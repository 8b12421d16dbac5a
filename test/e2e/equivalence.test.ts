/**
 * A service behaves the same with the flag and without it, alone and beside OpenTelemetry. The one difference is the
 * request header `time-budget` that its peers get. What is compared, scene by scene, are the bytes on the wire in
 * both directions, the connections, and what the service itself sees and prints.
 */
import { beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../demo/free-port.ts';
import { testFile } from '../support/child.ts';
import { usePostgres } from '../support/postgres.ts';
import { type Play, type Seen, Stage } from '../support/stage.ts';
import { comparable } from '../support/stderr.ts';
import { startVariant, VARIANTS, type Variant } from '../support/variants.ts';
import { endings } from './apps/equivalence/endings.mjs';
import { EXPRESS } from './scenes/express.ts';
import { INCOMING } from './scenes/incoming.ts';
import { OUTGOING } from './scenes/outgoing.ts';
import { pgPlays } from './scenes/pg.ts';

const postgres = usePostgres();
const SCENES: Readonly<Record<string, Play>> = {
  ...INCOMING,
  ...EXPRESS,
  ...OUTGOING,
  ...pgPlays(() => postgres.connection.port),
};

interface Run {
  readonly scenes: ReadonlyMap<string, Seen>;
  /** Lines of no scene. */
  readonly otherLines: readonly string[];
  readonly stderr: string;
  readonly budgets: number;
  /** The page for Prometheus; '' where there is none. */
  readonly page: string;
}

async function run(variant: Variant, script: string): Promise<Run> {
  const port = String(await freePort());
  const child = startVariant(variant, testFile(`apps/equivalence/${script}`), {
    OTEL_METRICS_EXPORTER: 'prometheus',
    OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
    OTEL_EXPORTER_PROMETHEUS_PORT: port,
  });
  try {
    const stage = await Stage.open(child);
    await stage.perform(SCENES);
    const scenes = await stage.seen();
    const page = variant === 'plain' ? '' : await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    const otherLines = child.stdout
      .split('\n')
      .filter(
        (line) => !/^(ports|listening on) /.test(line) && !scenes.has(line.slice(0, line.lastIndexOf(': '))),
      )
      .filter((line) => ![...scenes.keys()].some((scene) => line.startsWith(`${scene}: `)));
    return { scenes, otherLines, stderr: comparable(child.stderr), budgets: stage.budgets, page };
  } finally {
    await child.stop('SIGKILL');
  }
}

function counter(page: string, name: string): number {
  const values = page.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (\\d+)$`, 'gm'));
  return [...values].reduce((sum, [, value]) => sum + Number(value), 0);
}

describe.each([
  ['an ES module', 'main.mjs', 'plain', 'ours'],
  ['CommonJS', 'main.cjs', 'plain', 'ours'],
  ['an ES module beside OpenTelemetry', 'main.mjs', 'otel', 'otel + ours'],
] as const)('%s', (_name, script, without, withUs) => {
  let expected: Run;
  let actual: Run;

  beforeAll(async () => {
    [expected, actual] = await Promise.all([run(without, script), run(withUs, script)]);
  }, 120_000);

  test.each(Object.keys(SCENES))('%s', (scene) => {
    const seen = expected.scenes.get(scene);
    expect(JSON.stringify(seen)).not.toContain('"failed');
    expect(actual.scenes.get(scene)).toEqual(seen);
  });

  test('warnings, and what else is printed', () => {
    expect(actual.otherLines).toEqual(expected.otherLines);
    expect(actual.stderr).toEqual(expected.stderr);
  });

  test('we were there: calls carried budgets, everything was counted, and no hook failed', () => {
    expect(expected.budgets).toBe(0);
    expect(actual.budgets).toBeGreaterThan(100);
    expect(counter(actual.page, 'time_budget_offered_total')).toBeGreaterThan(Object.keys(SCENES).length);
    expect(counter(actual.page, 'time_budget_calls_total')).toBeGreaterThan(200);
    expect(counter(actual.page, 'time_budget_internal_errors_total')).toBe(0);
  });
});

describe('how a process ends', () => {
  async function end(variant: Variant, name: string) {
    const child = startVariant(variant, testFile('apps/equivalence/endings.mjs'), {}, [name]);
    const ended = await child.ended;
    return { ...ended, stdout: child.stdout, stderr: comparable(child.stderr) };
  }

  test.each(Object.keys(endings))('%s', async (name) => {
    const [plain, ours] = await Promise.all([end('plain', name), end('ours', name)]);
    expect(ours).toEqual(plain);
  });

  test.each(['by itself', 'rejects in a handler', 'a signal that is heeded'])(
    '%s, beside OpenTelemetry',
    async (name) => {
      const [otel, both] = await Promise.all([end('otel', name), end('otel + ours', name)]);
      expect(both).toEqual(otel);
    },
  );

  test('every way to start is compared', () => {
    expect(Object.keys(VARIANTS)).toEqual(['plain', 'ours', 'otel', 'otel + ours']);
  });
});
