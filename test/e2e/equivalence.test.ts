/** Every service behaves the same with the flag and without it, alone and beside OpenTelemetry. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { testFile } from '../support/child.ts';
import { Stage } from '../support/stage.ts';
import { startVariant, type Variant } from '../support/variants.ts';
import { INCOMING, type Play } from './scenes/incoming.ts';

interface Seen {
  readonly outside: unknown;
  readonly inside: readonly string[];
}

/** Plays all scenes one after another against one service. */
async function play(variant: Variant, script: string, scenes: Readonly<Record<string, Play>>) {
  const child = startVariant(variant, testFile(script));
  const seen = new Map<string, Seen>();
  const stage = await Stage.open(child);
  for (const [scene, run] of Object.entries(scenes)) {
    const t = performance.now();
    const outside = await run(stage, scene).catch((error: unknown) => `failed: ${String(error)}`);
    seen.set(scene, { outside, inside: stage.lines(scene) });
    if (process.env.SHOW && performance.now() - t > 100)
      console.log(scene, Math.round(performance.now() - t));
  }
  for (const scene of Object.keys(scenes))
    seen.set(scene, { outside: seen.get(scene)?.outside, inside: stage.lines(scene) });
  await child.stop('SIGKILL');
  return { seen, child };
}

describe('a plain server', () => {
  const runs = new Map<Variant, Awaited<ReturnType<typeof play>>>();
  beforeAll(async () => {
    for (const variant of ['plain', 'ours', 'otel', 'otel + ours'] as const) {
      runs.set(variant, await play(variant, 'apps/equivalence/main.mjs', INCOMING));
    }
    if (process.env.SHOW) console.log(runs.get('plain')?.seen, runs.get('plain')?.child.stderr);
  }, 120_000);
  test.each(Object.keys(INCOMING))('%s', (scene) => {
    expect(runs.get('ours')?.seen.get(scene)).toEqual(runs.get('plain')?.seen.get(scene));
    expect(runs.get('otel + ours')?.seen.get(scene)).toEqual(runs.get('otel')?.seen.get(scene));
  });
});
afterAll(() => {});
