import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { findObservers } from '../../demo/observers.ts';

let tools: string;

beforeEach(() => {
  tools = mkdtempSync(join(tmpdir(), 'observers-test-'));
  // Nothing is on the PATH but what a script itself needs.
  vi.stubEnv('PATH', join(tools, 'nothing'));
});

afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(tools, { recursive: true });
});

function program(name: string, script: string): string {
  const path = join(tools, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return path;
}

const COLLECTOR = '[ "$1" = --version ] && echo otelcol version 0.161.0 && exit';

test('none is there: a line for each says which and how to get it', () => {
  expect(findObservers(tools)).toEqual({
    prometheus: undefined,
    collector: undefined,
    notes: [
      'No prometheus in .tools/bin or on the PATH: scripts/real-parts.sh prometheus brings it.',
      'No otelcol in .tools/bin or on the PATH: scripts/real-parts.sh otelcol brings it.',
    ],
  });
});

test('both are there: nothing to say', () => {
  const prometheus = program('prometheus', 'echo "prometheus, version 3.0.0 (branch: main)"');
  const collector = program('otelcol', `${COLLECTOR}; [ "$1" = validate ]`);
  expect(findObservers(tools)).toEqual({
    prometheus: { path: prometheus, version: '3.0.0' },
    collector,
    notes: [],
  });
});

test('Prometheus 2, which says its version on stderr, is used and said to scrape only', () => {
  const path = program('prometheus', 'echo "prometheus, version 2.55.1+ds (branch: x)" >&2');
  const { prometheus, notes } = findObservers(tools);
  expect(prometheus).toEqual({ path, version: '2.55.1' });
  expect(notes[0]).toBe(
    'Prometheus 2.55.1 only scrapes here: scripts/real-parts.sh prometheus brings version 3, which takes OTLP too.',
  );
});

test('a Collector that lacks a component is not used, and said so', () => {
  const path = program('otelcol-contrib', `${COLLECTOR}; exit 1`);
  const { collector, notes } = findObservers(tools);
  expect(collector).toBeUndefined();
  expect(notes[1]).toBe(
    `${path} cannot run collector/gateway.yaml: scripts/real-parts.sh otelcol brings one that can.`,
  );
});

test('a program that fails is as good as none', () => {
  program('prometheus', 'exit 1');
  expect(findObservers(tools).prometheus).toBeUndefined();
});
