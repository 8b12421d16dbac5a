import { isIPv6 } from 'node:net';

/** Patterns for the far side of a call, and the table that looks a host up in them. */

export type HostPattern =
  | { readonly kind: 'host'; readonly host: string; readonly port: number | undefined }
  | { readonly kind: 'suffix'; readonly suffix: string }
  | { readonly kind: 'invalid'; readonly reason: string };

/** What a pattern may be, in the words of a message. */
export const HOST_PATTERN_FORMS =
  'a host, host:port, *.suffix, or system/name such as postgresql/orders, without scheme or path';

const HOST_NAME = /^[A-Za-z0-9_](?:[A-Za-z0-9_.-]{0,251}[A-Za-z0-9_])?\.?$/;
const SYSTEM_NAME = /^[a-z][a-z0-9_]{0,31}\/[^\s\p{Cc}/]{1,128}$/u;
const PORT = /^[0-9]{1,5}$/;
const BRACKETED = /^\[([^\]]*)\](?::(.*))?$/;

/** Longest name looked at; a name of a host has at most 253 characters. */
const MAX_HOST_LENGTH = 256;
/** Names remembered. A service that calls more hosts than this pays the slow way now and then. */
export const MAX_CACHED_HOSTS = 1024;

/** Reads one pattern. Letter case of hosts does not matter; that of `system/name` does. */
export function parseHostPattern(text: string): HostPattern {
  if (text.includes('://')) return invalid('a scheme does not belong here');
  if (text.includes('/')) {
    return SYSTEM_NAME.test(text) ? host(text, undefined) : invalid('this is neither a host nor system/name');
  }
  if (text.startsWith('*.')) {
    const rest = text.slice(2);
    return HOST_NAME.test(rest)
      ? { kind: 'suffix', suffix: normaliseHost(rest) }
      : invalid('after *. comes a host name without a port');
  }
  if (text.includes('*')) return invalid('a star is only read in *.suffix');
  const bracketed = BRACKETED.exec(text);
  if (bracketed !== null) return withPort(bracketed[1] ?? '', bracketed[2], isIPv6(bracketed[1] ?? ''));
  if (isIPv6(text)) return host(normaliseHost(text), undefined);
  const colon = text.indexOf(':');
  if (colon === -1) return withPort(text, undefined, HOST_NAME.test(text));
  const name = text.slice(0, colon);
  return withPort(name, text.slice(colon + 1), HOST_NAME.test(name));
}

function withPort(name: string, port: string | undefined, isHost: boolean): HostPattern {
  if (!isHost) return invalid('this is not the name of a host');
  if (port === undefined) return host(normaliseHost(name), undefined);
  const number = PORT.test(port) ? Number(port) : 0;
  if (number < 1 || number > 65_535) return invalid('a port is a number from 1 to 65535');
  return host(normaliseHost(name), number);
}

function host(name: string, port: number | undefined): HostPattern {
  return { kind: 'host', host: name, port };
}

function invalid(reason: string): HostPattern {
  return { kind: 'invalid', reason };
}

/** Lower case, without the brackets of IPv6 and the dot of a fully qualified name. */
function normaliseHost(name: string): string {
  if (name.includes('/')) return name;
  const bare = name.startsWith('[') && name.endsWith(']') ? name.slice(1, -1) : name;
  const lower = bare.toLowerCase();
  return lower.endsWith('.') ? lower.slice(0, -1) : lower;
}

/** The same text for two patterns that match the same hosts, to find double claims. */
export function patternKey(pattern: HostPattern): string {
  if (pattern.kind === 'suffix') return `*.${pattern.suffix}`;
  if (pattern.kind === 'invalid') return '';
  return pattern.port === undefined ? pattern.host : `${pattern.host} ${pattern.port}`;
}

interface Found<T> {
  byPort: Map<number, T> | undefined;
  any: T | undefined;
}

export type HostLookup<T> = (host: string, port: number | undefined) => T | undefined;

/**
 * Compiles patterns into a lookup: `host:port` first, then `host`, then the longest `*.suffix`, which needs
 * at least one more label. Of two equal patterns the first holds. Invalid patterns are left out: they were
 * reported where they were read. A second lookup of the same text allocates nothing.
 */
export function compileHosts<T>(patterns: Iterable<readonly [HostPattern, T]>): HostLookup<T> {
  const exact = new Map<string, Found<T>>();
  const suffixes = new Map<string, T>();
  for (const [pattern, value] of patterns) {
    if (pattern.kind === 'suffix' && !suffixes.has(pattern.suffix)) suffixes.set(pattern.suffix, value);
    if (pattern.kind !== 'host') continue;
    const found = exact.get(pattern.host) ?? { byPort: undefined, any: undefined };
    exact.set(pattern.host, found);
    if (pattern.port === undefined) {
      found.any ??= value;
      continue;
    }
    found.byPort ??= new Map();
    if (!found.byPort.has(pattern.port)) found.byPort.set(pattern.port, value);
  }
  if (exact.size === 0 && suffixes.size === 0) return () => undefined;

  const bySuffix = (name: string): T | undefined => {
    if (suffixes.size === 0 || name.includes('/')) return undefined;
    for (let dot = name.indexOf('.'); dot !== -1; dot = name.indexOf('.', dot + 1)) {
      const value = suffixes.get(name.slice(dot + 1));
      if (value !== undefined && dot > 0) return value;
    }
    return undefined;
  };
  // A host with ports of its own still belongs to a suffix on its other ports.
  for (const [name, found] of exact) found.any ??= bySuffix(name);

  const cache = new Map<string, Found<T>>();
  const resolve = (name: string): Found<T> => {
    const bare = normaliseHost(name.length > MAX_HOST_LENGTH ? '' : name);
    const found = exact.get(bare) ?? { byPort: undefined, any: bySuffix(bare) };
    // Names can come from outside (a proxy's targets): the cache starts again instead of growing.
    if (cache.size >= MAX_CACHED_HOSTS) cache.clear();
    if (name.length <= MAX_HOST_LENGTH) cache.set(name, found);
    return found;
  };

  return (name, port) => {
    const found = exact.get(name) ?? cache.get(name) ?? resolve(name);
    if (port === undefined) return found.any;
    return found.byPort?.get(port) ?? found.any;
  };
}
