import { wrongValue } from './config-problem.ts';
import { degradedModeProblems, degradedModeSettings } from './config-resolve-degraded.ts';
import { retryBudgetProblems, retryBudgetSettings } from './config-resolve-retry.ts';
import {
  type ConfigOptions,
  DEFAULTS,
  type DependencySettings,
  type LabelCaps,
  type OperationSettings,
  type Settings,
  type Switch,
} from './config-settings.ts';
import { parseHostPattern, patternKey } from './host-pattern.ts';
import { parseTrust } from './trust.ts';

/** Lays the sources over each other, checks what only the whole can show, and fills in the defaults. */

/** One source of settings, already checked value by value. `label` names a setting as its author wrote it. */
export interface Layer {
  readonly options: ConfigOptions;
  readonly label: (path: readonly string[]) => string;
}

export type Resolution =
  | { readonly settings: Settings; readonly policyVersion: string | undefined }
  | { readonly problems: readonly string[] };

/** Later layers win, key by key; lists are replaced as a whole. */
export function resolveSettings(layers: readonly Layer[]): Resolution {
  // Merging objects of this shape gives an object of this shape.
  const options = layers.reduce<unknown>(
    (below, { options: above }) => merge(below, above),
    {},
  ) as ConfigOptions;
  const label = (...path: string[]): string => {
    const owner = layers.findLast((layer) => valueAt(layer.options, path) !== undefined);
    return owner?.label(path) ?? path.join('.');
  };
  const settings = settingsOf(options);
  const problems = [
    ...orderProblems(options, settings, label),
    ...capProblems(settings, label),
    ...matchProblems(settings, label),
    ...retryBudgetProblems(options.retryBudgets ?? {}, label),
    ...degradedModeProblems(options.degradedModes ?? {}, label),
  ];
  return problems.length === 0 ? { settings, policyVersion: options.policyVersion } : { problems };
}

function settingsOf(options: ConfigOptions): Settings {
  const mode = options.mode ?? DEFAULTS.mode;
  const role = options.entry?.role ?? DEFAULTS.role;
  const given = options.entry?.trust;
  const trust = given === undefined ? undefined : parseTrust(given);
  const entry = {
    mode: options.entry?.mode ?? mode,
    role,
    trust: trust !== undefined && 'trust' in trust ? trust.trust : role === 'edge' ? 'none' : 'all',
    defaultMs: options.entry?.defaultMs,
    ceilingMs: options.entry?.ceilingMs,
    floorMs: options.entry?.floorMs,
  } as const;
  const calls = { mode: options.calls?.mode ?? mode };
  const reserveMs = options.reserveMs ?? DEFAULTS.reserveMs;
  return {
    disabled: options.disabled ?? false,
    mode,
    entry,
    calls,
    reserveMs,
    propagation: {
      header: isOn(options.propagation?.header) ?? true,
      hosts: options.propagation?.hosts,
    },
    deadlineToleranceMs: options.deadlineToleranceMs ?? DEFAULTS.deadlineToleranceMs,
    operations: mapped(options.operations, (operation): OperationSettings => {
      const ceilingMs = operation.ceilingMs ?? entry.ceilingMs;
      return {
        // An inherited default gives way to the operation's own, smaller ceiling.
        defaultMs: operation.defaultMs ?? least(entry.defaultMs, ceilingMs),
        ceilingMs,
        floorMs: entry.floorMs,
        reserveMs: operation.reserveMs ?? reserveMs,
        typicalMs: operation.typicalMs,
      };
    }),
    routes: (options.routes ?? []).map(({ method, path, operation }) =>
      method === undefined ? { path, operation } : { method, path, operation },
    ),
    dependencies: mapped(
      options.dependencies,
      (dependency, name): DependencySettings => ({
        name,
        match: dependency.match ?? [name],
        mode: dependency.mode ?? calls.mode,
        capMs: dependency.capMs,
        reserveMs: dependency.reserveMs,
        minimumMs: dependency.minimumMs,
        latencyMs: dependency.latencyMs,
        typicalMs: dependency.typicalMs,
        headers: [...new Set(dependency.headers)],
        header: isOn(dependency.header),
      }),
    ),
    retryBudgets: mapped(options.retryBudgets, retryBudgetSettings),
    degradedModes: mapped(options.degradedModes, degradedModeSettings),
    callers: [...new Set(options.callers)],
    labels: { ...DEFAULTS.labels, ...defined(options.labels) },
    bucketsS: options.bucketsS,
  };
}

type Label = (...path: string[]) => string;
interface Limit {
  readonly path: readonly string[];
  readonly value: number | undefined;
}

function orderProblems(options: ConfigOptions, { entry }: Settings, label: Label): string[] {
  const problems: string[] = [];
  const notAbove = (low: Limit, high: Limit): void => {
    if (low.value === undefined || high.value === undefined || low.value <= high.value) return;
    problems.push(
      `${label(...low.path)}: ${low.value} is above ${label(...high.path)}, which is ${high.value}`,
    );
  };
  const floor = { path: ['entry', 'floorMs'], value: entry.floorMs };
  const ceiling = { path: ['entry', 'ceilingMs'], value: entry.ceilingMs };
  const fallback = { path: ['entry', 'defaultMs'], value: entry.defaultMs };
  notAbove(fallback, ceiling);
  notAbove(floor, fallback);
  notAbove(floor, ceiling);
  for (const [name, operation] of Object.entries(options.operations ?? {})) {
    const ownCeiling = { path: ['operations', name, 'ceilingMs'], value: operation.ceilingMs };
    const ownDefault = { path: ['operations', name, 'defaultMs'], value: operation.defaultMs };
    notAbove(ownDefault, ownCeiling.value === undefined ? ceiling : ownCeiling);
    notAbove(floor, ownDefault);
    notAbove(floor, ownCeiling);
  }
  for (const [name, dependency] of Object.entries(options.dependencies ?? {})) {
    const minimum = { path: ['dependencies', name, 'minimumMs'], value: dependency.minimumMs };
    notAbove(minimum, { path: ['dependencies', name, 'capMs'], value: dependency.capMs });
  }
  return problems;
}

/** A name that was configured must not be folded into `other`. */
function capProblems(settings: Settings, label: Label): string[] {
  const operations = [...Object.keys(settings.operations), ...settings.routes.map((each) => each.operation)];
  const counts: LabelCaps = {
    operations: new Set(operations).size,
    dependencies: new Set(Object.keys({ ...settings.dependencies, ...settings.retryBudgets })).size,
    callers: settings.callers.length,
  };
  const names = ['operations', 'dependencies', 'callers'] as const;
  return names
    .filter((name) => counts[name] > settings.labels[name])
    .map((name) =>
      wrongValue(
        label('labels', name),
        settings.labels[name],
        `at least ${counts[name]}, as many as are configured`,
      ),
    );
}

function matchProblems(settings: Settings, label: Label): string[] {
  const owners = new Map<string, string>();
  const problems: string[] = [];
  for (const { name, match } of Object.values(settings.dependencies)) {
    for (const text of match) {
      const key = patternKey(parseHostPattern(text));
      const owner = owners.get(key);
      if (owner !== undefined && owner !== name) {
        const where = label('dependencies', name, 'match');
        problems.push(wrongValue(where, text, `a pattern that does not belong to ${owner} already`));
      }
      owners.set(key, owner ?? name);
    }
  }
  return problems;
}

function isOn(value: Switch | undefined): boolean | undefined {
  return value === undefined ? undefined : value === 'on' || value === true;
}

function least(left: number | undefined, right: number | undefined): number | undefined {
  return left === undefined || right === undefined ? left : Math.min(left, right);
}

function mapped<A, B>(
  record: Readonly<Record<string, A>> | undefined,
  map: (value: A, name: string) => B,
): Record<string, B> {
  return Object.fromEntries(Object.entries(record ?? {}).map(([name, value]) => [name, map(value, name)]));
}

function defined<T extends object>(value: T | undefined): Partial<T> {
  // Entries of an object are a part of that object; `Object.fromEntries` cannot say so.
  return Object.fromEntries(
    Object.entries(value ?? {}).filter(([, each]) => each !== undefined),
  ) as Partial<T>;
}

function merge(below: unknown, above: unknown): unknown {
  if (above === undefined) return below;
  if (!isMapping(below) || !isMapping(above)) return above;
  const keys = new Set([...Object.keys(below), ...Object.keys(above)]);
  return Object.fromEntries([...keys].map((key) => [key, merge(own(below, key), own(above, key))]));
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A name may be `constructor`; only what the object itself holds counts. */
function own(value: Record<string, unknown>, key: string): unknown {
  return Object.hasOwn(value, key) ? value[key] : undefined;
}

function valueAt(value: unknown, path: readonly string[]): unknown {
  let found = value;
  for (const key of path) found = isMapping(found) ? own(found, key) : undefined;
  return found;
}
