import type { RouteOptions } from './config-settings.ts';

/** Patterns that give a plain `node:http` request its operation name, where no framework tells one. */

/** What a path pattern may be, in the words of a message. */
export const PATH_PATTERN_FORMS =
  'a path that starts with /, with :name for one segment and * at the end for all that follows';

const SEGMENT = /^[^\s\p{Cc}?#*:]*$/u;
const PARAMETER = /^:[A-Za-z_][A-Za-z0-9_]*$/;
const MAX_PATTERN_LENGTH = 512;
/** Longer paths have no operation: a path comes from outside, and matching it must not cost much. */
const MAX_PATH_LENGTH = 4096;

/** Whether a text is a path pattern: the check that `compileRoutes` relies on. */
export function isPathPattern(text: string): boolean {
  if (!text.startsWith('/') || text.length > MAX_PATTERN_LENGTH) return false;
  const segments = segmentsOf(text);
  return segments.every((segment, index) => {
    if (segment === '*') return index === segments.length - 1;
    return segment.startsWith(':') ? PARAMETER.test(segment) : SEGMENT.test(segment);
  });
}

/** Segments without the leading slash and one trailing slash: `/a/b/` and `/a/b` are the same place. */
function segmentsOf(path: string): string[] {
  const end = path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length;
  return path.slice(1, end).split('/');
}

interface CompiledRoute {
  readonly method: string | undefined;
  readonly segments: readonly string[];
  readonly open: boolean;
  readonly operation: string;
}

/**
 * Compiles routes into a lookup; of several that match the first holds. Nothing is remembered per path, since
 * paths are not bounded. Matching is by whole segments and case-sensitive, a query string is cut off, and
 * nothing is decoded.
 */
export function compileRoutes(
  routes: readonly RouteOptions[],
): (method: string, path: string) => string | undefined {
  if (routes.length === 0) return () => undefined;
  const compiled: CompiledRoute[] = routes.map(({ method, path, operation }) => {
    const segments = segmentsOf(path);
    const open = segments.at(-1) === '*';
    return {
      method: method?.toUpperCase(),
      segments: open ? segments.slice(0, -1) : segments,
      open,
      operation,
    };
  });

  return (method, path) => {
    if (!path.startsWith('/') || path.length > MAX_PATH_LENGTH) return undefined;
    const query = path.indexOf('?');
    const segments = segmentsOf(query === -1 ? path : path.slice(0, query));
    for (const route of compiled) {
      if (route.method !== undefined && route.method !== method) continue;
      if (fits(route, segments)) return route.operation;
    }
    return undefined;
  };
}

function fits(route: CompiledRoute, segments: readonly string[]): boolean {
  const wanted = route.segments;
  if (route.open ? segments.length <= wanted.length : segments.length !== wanted.length) return false;
  for (let index = 0; index < wanted.length; index += 1) {
    const want = wanted[index] ?? '';
    const have = segments[index] ?? '';
    if (want.startsWith(':') ? have === '' : want !== have) return false;
  }
  return true;
}
