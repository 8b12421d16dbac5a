/** The same service as a child process, started in each way that is compared. */
import { cpSync, existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Child, REGISTER } from './child.ts';

const ROOT = new URL('../../', import.meta.url);
const OTEL = new URL('test/bench/otel.ts', ROOT).href;

export const VARIANTS = {
  plain: [],
  ours: ['--import', REGISTER],
  otel: ['--import', OTEL],
  'otel + ours': ['--import', OTEL, '--import', REGISTER],
} as const satisfies Record<string, readonly string[]>;
export type Variant = keyof typeof VARIANTS;

/** Nothing is exported: what an exporter does on its own port or connection is not the service's. */
const ENV = {
  OTEL_TRACES_EXPORTER: 'none',
  OTEL_METRICS_EXPORTER: 'none',
  OTEL_LOGS_EXPORTER: 'none',
  OTEL_NODE_RESOURCE_DETECTORS: 'none',
  OTEL_SERVICE_NAME: 'service',
};

export function startVariant(
  variant: Variant,
  script: string,
  env: Readonly<Record<string, string>> = {},
  args: readonly string[] = [],
): Child {
  return new Child([...VARIANTS[variant], script, ...args], { ...ENV, PACKAGES: versionsFolder(), ...env });
}

/** What is installed under another name, by its own. */
const ALIASES = { express4: 'express', undici6: 'undici', undici7: 'undici', undici8: 'undici' };

/**
 * A folder for each of several versions of a package, with the package under its own name and an `index` that hands
 * it on: instrumentations know a package by the name of its folder. Gives the folder of them all.
 */
export function versionsFolder(): string {
  const folder = fileURLToPath(new URL('.tmp/versions/', ROOT));
  for (const [alias, name] of Object.entries(ALIASES)) {
    if (existsSync(`${folder}${alias}/index.mjs`)) continue;
    // Made aside and moved, as two test files may do it at the same time.
    const aside = `${folder}${alias}-${process.pid}/`;
    const installed = fileURLToPath(new URL(`node_modules/${alias}`, ROOT));
    mkdirSync(`${aside}node_modules`, { recursive: true });
    cpSync(installed, `${aside}node_modules/${name}`, { recursive: true });
    writeFileSync(`${aside}index.cjs`, `module.exports = require('${name}');\n`);
    writeFileSync(`${aside}index.mjs`, `export * as all from '${name}';\n`);
    try {
      renameSync(aside, `${folder}${alias}`);
    } catch {
      rmSync(aside, { recursive: true });
    }
  }
  return folder;
}
