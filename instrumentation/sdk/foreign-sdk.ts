/** Signs that the service brings an SDK of its own. */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import { dirname, join } from 'node:path';
import type { Undo } from '../adapter.ts';

const OWN_NAME = 'otel-time-budget';
const API_ONLY = /^@opentelemetry\/(api|api-logs|api-events|semantic-conventions)$/;
const SDK =
  /opentelemetry|(^|[@/._-])otel([/._-]|$)|^@sentry\/|^(dd-trace|elastic-apm-node|newrelic|applicationinsights)$/;

/** Whether a package of this name is, or brings, an SDK or instrumentations of one. */
export function isSdkPackage(name: string): boolean {
  return SDK.test(name) && !API_ONLY.test(name) && name !== OWN_NAME;
}

/** The name of the package that a specifier asks for, by name or by a path into it; undefined for anything else. */
export function packageOf(specifier: string): string | undefined {
  const at = specifier.lastIndexOf(IN_PACKAGES);
  const path = at < 0 ? specifier : specifier.slice(at + IN_PACKAGES.length);
  return /^(@[^/:]+\/[^/:]+|[^@./:][^/:]*)(\/|$)/.exec(path)?.[1];
}

const IN_PACKAGES = '/node_modules/';

/** Whether a service's package.json, of any of these folders or above, names such a package. */
export function declaresSdk(folders: readonly string[]): boolean {
  return folders.some((folder) => {
    const manifest = manifestAbove(folder);
    if (manifest === undefined || manifest.name === OWN_NAME) return false;
    return ['dependencies', 'devDependencies', 'optionalDependencies', 'peerDependencies'].some((group) => {
      const packages = manifest[group];
      return typeof packages === 'object' && packages !== null && Object.keys(packages).some(isSdkPackage);
    });
  });
}

/**
 * Calls `onSeen` once, at the moment when the service, or a package of its own, first asks for an SDK, and so
 * before that SDK has run. What the SDKs load among themselves, ours included, is no sign.
 */
export function watchForSdk(onSeen: () => void): Undo {
  let isWatching = true;
  const hooks = registerHooks({
    resolve(specifier, context, nextResolve) {
      if (isWatching && isForeign(specifier, context.parentURL)) {
        isWatching = false;
        onSeen();
      }
      return nextResolve(specifier, context);
    },
  });
  return () => {
    isWatching = false;
    hooks.deregister();
  };
}

/** Where this package lies: what is loaded from here is loaded for us. */
const OWN_ROOT = new URL(import.meta.url.endsWith('.js') ? '../../../' : '../../', import.meta.url).href;

function isForeign(specifier: string, parentURL: string | undefined): boolean {
  const name = packageOf(specifier);
  if (name === undefined || !isSdkPackage(name)) return false;
  if (parentURL === undefined) return true;
  return !parentURL.includes(`${IN_PACKAGES}@opentelemetry/`) && !isOwnFile(parentURL);
}

function isOwnFile(url: string): boolean {
  return ['dist/', 'src/', 'instrumentation/'].some((folder) => url.startsWith(OWN_ROOT + folder));
}

function manifestAbove(folder: string): Record<string, unknown> | undefined {
  for (let at = folder; ; at = dirname(at)) {
    const manifest = readManifest(join(at, 'package.json'));
    if (manifest !== undefined || dirname(at) === at) return manifest;
  }
}

function readManifest(path: string): Record<string, unknown> | undefined {
  try {
    const manifest: unknown = JSON.parse(readFileSync(path, 'utf8'));
    // Every object is a record of unknown values.
    return typeof manifest === 'object' && manifest !== null
      ? (manifest as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}
