import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { nodeComplaint } from '../../instrumentation/process/node-version.ts';
import { VERSION } from '../../src/version.ts';

const manifest = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
  readonly version: string;
  readonly engines: { readonly node: string };
};
const path = '../../scripts/check-node.js';
// It has no types because it must run on a Node that cannot read any.
const { satisfies } = (await import(path)) as { satisfies(version: string, range: string): boolean };

test('what is complained about is what `engines` of package.json excludes', () => {
  for (const major of [8, 16, 18, 20, 21, 22, 23, 24, 25, 26, 27, 30]) {
    for (const minor of [0, 10, 11, 12, 21, 22, 23, 99]) {
      for (const patch of [0, 1, 2, 3, 4, 99]) {
        const version = `${major}.${minor}.${patch}`;
        expect(nodeComplaint(version) === undefined, version).toBe(satisfies(version, manifest.engines.node));
      }
    }
  }
});

test('the complaint is one line that says what to do', () => {
  expect(nodeComplaint('24.11.0')).toBe(
    `needs Node ${manifest.engines.node}, this is 24.11.0: update Node; until then the service runs without it`,
  );
  expect(nodeComplaint('26.0.0-nightly20260101')).toBeUndefined();
});

test('the version in the source is that of package.json', () => {
  expect(VERSION).toBe(manifest.version);
});
