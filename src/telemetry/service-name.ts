import type { Environment } from './config-env.ts';

const MAX_NAME_LENGTH = 128;

/**
 * The service's name as its peers and its telemetry see it: `OTEL_SERVICE_NAME`, else `service.name` of
 * `OTEL_RESOURCE_ATTRIBUTES`, else the name in its package.json without the scope. undefined where none is given.
 */
export function serviceName(env: Environment, packageName: string | undefined): string | undefined {
  return givenServiceName(env) ?? text(packageName?.replace(/^@[^/]*\//, ''));
}

/** The name that the standard variables give. */
export function givenServiceName(env: Environment): string | undefined {
  return text(env.OTEL_SERVICE_NAME) ?? text(attribute(env.OTEL_RESOURCE_ATTRIBUTES, 'service.name'));
}

/** A value of `key=value,key=value`, percent-decoded; undefined where it is missing or cannot be decoded. */
function attribute(list: string | undefined, key: string): string | undefined {
  for (const entry of list?.split(',') ?? []) {
    const at = entry.indexOf('=');
    if (at < 0 || entry.slice(0, at).trim() !== key) continue;
    try {
      return decodeURIComponent(entry.slice(at + 1).trim());
    } catch {
      return undefined;
    }
  }
  return undefined;
}

function text(value: string | undefined): string | undefined {
  const trimmed = value?.trim().slice(0, MAX_NAME_LENGTH);
  return trimmed === undefined || trimmed === '' ? undefined : trimmed;
}
