import { hash } from 'node:crypto';
import type { Config, DependencySettings, OperationSettings, Settings } from './config-settings.ts';
import { compileHosts, type HostPattern, parseHostPattern } from './host-pattern.ts';
import { compileRoutes } from './route-pattern.ts';
import { compileTrust } from './trust.ts';

/** Makes the frozen object that the rest of the product reads: the settings and their lookups. */
export function compileConfig(settings: Settings, policyVersion: string | undefined): Config {
  const dependencyFor = compileHosts(dependencyPatterns(settings));
  const { header, hosts } = settings.propagation;
  const isListedHost = compileHosts((hosts ?? []).map((text) => [parseHostPattern(text), true] as const));
  // A Map, since a name at run time may be `constructor`.
  const operations = new Map(Object.entries(settings.operations));
  const { defaultMs, ceilingMs, floorMs } = settings.entry;
  const anyOperation: OperationSettings = {
    defaultMs,
    ceilingMs,
    floorMs,
    reserveMs: settings.reserveMs,
    typicalMs: undefined,
  };
  const operationSettings = (name: string | undefined): OperationSettings =>
    (name === undefined ? undefined : operations.get(name)) ?? anyOperation;

  deepFreeze(anyOperation);
  return deepFreeze({
    ...settings,
    policyVersion: policyVersion ?? settingsHash(settings),
    dependencyFor,
    operationSettings,
    operationForPath: compileRoutes(settings.routes),
    isTrusted: compileTrust(settings.entry.trust),
    sendsOwnHeader: (host, port) => {
      const own = dependencyFor(host, port)?.header;
      if (own !== undefined) return own;
      return header && (hosts === undefined || isListedHost(host, port) === true);
    },
    reserveMsFor: (operation, dependency) => dependency?.reserveMs ?? operationSettings(operation).reserveMs,
  } satisfies Config);
}

function dependencyPatterns(settings: Settings): (readonly [HostPattern, DependencySettings])[] {
  return Object.values(settings.dependencies).flatMap((dependency) =>
    dependency.match.map((text) => [parseHostPattern(text), dependency] as const),
  );
}

/** Eight hex digits: enough to see that two processes run different policies, and short in a label. */
function settingsHash(settings: Settings): string {
  return hash('sha256', JSON.stringify(sorted(settings)), 'hex').slice(0, 8);
}

/** The same text for the same settings, in whatever order the keys were written. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, child]) => [key, sorted(child)]));
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const child of Object.values(value)) deepFreeze(child);
  return Object.freeze(value);
}
