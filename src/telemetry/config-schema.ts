import { degradedModes } from './config-schema-degraded.ts';
import { makeKit, type Schema, type SchemaKit, type Zod4 } from './config-schema-kit.ts';
import { retryBudgets } from './config-schema-retry.ts';
import {
  DEFAULTS,
  ENTRY_ROLES,
  FOREIGN_HEADERS,
  MAX_BUCKETS,
  MAX_ENTRIES,
  MAX_LABEL_CAP,
  MODES,
} from './config-settings.ts';
import { HOST_PATTERN_FORMS, parseHostPattern } from './host-pattern.ts';
import { isPathPattern, PATH_PATTERN_FORMS } from './route-pattern.ts';
import { parseTrust, TRUST_FORMS } from './trust.ts';

/** The schema of the configuration, one function per group, so that a new group is one more line below. */

/** Groups whose first level are free names, not keys. */
export const NAMED_GROUPS: readonly string[] = [
  'operations',
  'dependencies',
  'retry_budgets',
  'retryBudgets',
  'degraded_modes',
  'degradedModes',
];

// Label values with a meaning of their own (core/terms.ts) would mix with a real name.
const RESERVED = '(?!(?:other|unknown|none)$)';
const TOKEN = new RegExp(`^${RESERVED}[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}$`);
const TOKEN_FORM =
  'up to 64 letters, digits and _ . : / -, first a letter or digit; not other, unknown or none';
const DEPENDENCY_NAME = new RegExp(`^${RESERVED}[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`);
const DEPENDENCY_NAME_FORM =
  'up to 64 letters, digits and _ . -, first a letter or digit; not other, unknown or none';
const OPERATION = new RegExp(`^${RESERVED}(?!__proto__$)[!-~](?:[ -~]{0,126}[!-~])?$`);
const OPERATION_FORM =
  'up to 128 printable ASCII characters, no blank at either end; not other, unknown or none';
const VERSION_FORM = 'text (in quotes if it looks like a number) of up to 64 letters, digits and _ . + -';
const VERSION = /^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$/;
const METHOD = /^[A-Z][A-Z-]{0,31}$/;

const MODE_MEANING =
  'What the product may do: observe changes nothing, propagate also sends the headers that others act upon, ' +
  'enforce also refuses; so far only the guard of retries and admission gates.';

function mode(kit: SchemaKit, of: string): Schema {
  return kit.oneOf(`Mode of ${of}, instead of the mode of the whole.`, MODES);
}

function hosts(kit: SchemaKit, meaning: string): Schema {
  const item = kit.text('A pattern.', HOST_PATTERN_FORMS, {
    longest: 300,
    accepts: (text) => parseHostPattern(text).kind !== 'invalid',
  });
  const allowed = `a list of 1 to ${MAX_ENTRIES} patterns, each ${HOST_PATTERN_FORMS}`;
  return kit.list(meaning, allowed, item, { least: 1, most: MAX_ENTRIES });
}

function trust(kit: SchemaKit): Schema {
  const { z } = kit;
  const allowed = `${TRUST_FORMS}, as a word, a comma-separated text or a list`;
  const accepts = (given: string | string[]): boolean => 'trust' in parseTrust(given);
  return z
    .union([z.string(), z.array(z.string()).max(MAX_ENTRIES)], allowed)
    .refine(accepts, allowed)
    .meta({
      description:
        'Peers whose budget, caller name and priority are believed. Others only express a wish, under the ' +
        `ceiling. Unset: all for an internal entry, none for an edge. Allowed: ${allowed}.`,
    });
}

function entry(kit: SchemaKit): Schema {
  return kit.group('What holds where requests come in.', {
    mode: mode(kit, 'the incoming side'),
    role: kit.oneOf(
      'Place of this service: edge is the outermost trusted component, the only place where a budget below ' +
        'the floor is raised.',
      ENTRY_ROLES,
      DEFAULTS.role,
    ),
    trust: trust(kit),
    default_ms: kit.ms(
      'Budget of a request that brings none. Unset: such a request has no budget, and no expiry is invented.',
      'above zero',
    ),
    ceiling_ms: kit.ms('Largest budget that is accepted; a larger one is cut to it.', 'above zero'),
    floor_ms: kit.ms(
      'Smallest budget that still allows useful work. Below it an edge raises the budget, an internal entry ' +
        'refuses in enforce and counts otherwise.',
      'zero',
    ),
  });
}

function propagation(kit: SchemaKit): Schema {
  return kit.group('Our own time-budget header on outgoing calls.', {
    header: kit.toggle('Whether the header is sent at all.', 'on'),
    hosts: hosts(kit, 'Hosts that get the header. Unset: every host.'),
  });
}

function operations(kit: SchemaKit): Schema {
  const operation = kit.group('Settings of one operation; what is left out comes from the entry.', {
    default_ms: kit.ms('Budget of a request of this operation that brings none.', 'above zero'),
    ceiling_ms: kit.ms('Largest budget that is accepted for this operation.', 'above zero'),
    reserve_ms: kit.ms('Time kept back from every call this operation makes.', 'zero'),
    typical_ms: kit.ms('Usual duration, used for the verdict until enough was measured.', 'above zero'),
  });
  return kit.named('Settings by operation, such as "GET /orders/:id".', OPERATION_FORM, OPERATION, operation);
}

function routes(kit: SchemaKit): Schema {
  const route = kit.group(
    'One pattern and its operation.',
    {
      method: kit.text('Method. Unset: every method.', 'an HTTP method in capitals', { pattern: METHOD }),
      path: kit.text('Pattern of the path.', PATH_PATTERN_FORMS, { longest: 512, accepts: isPathPattern }),
      operation: kit.text('Name that matching requests get.', OPERATION_FORM, { pattern: OPERATION }),
    },
    ['path', 'operation'],
  );
  const allowed = `a list of up to ${MAX_ENTRIES} routes`;
  const meaning =
    'Operation names for plain HTTP servers, whose routes no framework tells. The first match holds.';
  return kit.list(meaning, allowed, route, { least: 0, most: MAX_ENTRIES });
}

function dependencies(kit: SchemaKit): Schema {
  const header = kit.oneOf('A header.', FOREIGN_HEADERS);
  const dependency = kit.group('Settings of one dependency.', {
    match: hosts(kit, 'What belongs to this dependency. Unset: the host that has its name.'),
    mode: mode(kit, 'calls to this dependency'),
    cap_ms: kit.ms('Most that one call may use, however much is left.', 'above zero'),
    reserve_ms: kit.ms(
      "Time kept back from calls to it, instead of the operation's or the service's.",
      'zero',
    ),
    minimum_ms: kit.ms(
      'Shortest time in which it does useful work; with less, a call is not started.',
      'above zero',
    ),
    latency_ms: kit.ms('Timeout derived from its measured latency, the third limit of a call.', 'above zero'),
    typical_ms: kit.ms(
      'Usual duration of a call, used for the verdict until enough was measured.',
      'above zero',
    ),
    headers: kit.list(
      'Headers that others act upon, sent from mode propagate on. Unset: none.',
      `a list of ${FOREIGN_HEADERS.join(', ')}`,
      header,
      { least: 0, most: FOREIGN_HEADERS.length },
    ),
    header: kit.toggle('Whether it gets our own time-budget header, whatever propagation says.'),
  });
  const meaning = 'Settings by dependency.';
  return kit.named(meaning, DEPENDENCY_NAME_FORM, DEPENDENCY_NAME, dependency);
}

function labels(kit: SchemaKit): Schema {
  const cap = (of: keyof typeof DEFAULTS.labels): Schema => {
    const meaning = `Most distinct ${of} in metrics; the rest is counted as other.`;
    return kit.integer(meaning, 1, MAX_LABEL_CAP, DEFAULTS.labels[of]);
  };
  return kit.group('Caps on label values.', {
    operations: cap('operations'),
    dependencies: cap('dependencies'),
    callers: cap('callers'),
  });
}

function callers(kit: SchemaKit): Schema {
  const meaning =
    'Names of callers that metrics may show. Unset or empty: learned from trusted senders, up to the cap.';
  const allowed = `a list of up to ${MAX_LABEL_CAP} names, each ${TOKEN_FORM}`;
  const item = kit.text('A caller.', TOKEN_FORM, { pattern: TOKEN });
  return kit.list(meaning, allowed, item, { least: 0, most: MAX_LABEL_CAP });
}

function buckets(kit: SchemaKit): Schema {
  const allowed = `a list of 1 to ${MAX_BUCKETS} rising numbers of seconds, each above 0`;
  const schema = kit.z
    .array(kit.z.number(allowed).gt(0, allowed), allowed)
    .min(1, allowed)
    .max(MAX_BUCKETS, allowed)
    .refine((bounds) => bounds.every((bound, at) => at === 0 || bound > (bounds[at - 1] ?? 0)), allowed);
  const description = `Bounds of the duration histograms, in seconds. Unset: the built-in ones. Allowed: ${allowed}.`;
  return schema.meta({ description });
}

function settings(kit: SchemaKit): Record<string, Schema> {
  return {
    mode: kit.oneOf(MODE_MEANING, MODES, DEFAULTS.mode),
    entry: entry(kit),
    calls: kit.group('What holds for all outgoing calls.', { mode: mode(kit, 'the outgoing side') }),
    reserve_ms: kit.ms(
      'Time kept back from every call for the way back: serialising, the network, cleaning up.',
      'zero',
      DEFAULTS.reserveMs,
    ),
    propagation: propagation(kit),
    deadline_tolerance_ms: kit.ms(
      'A reset by the peer this close to the deadline handed down counts as that deadline.',
      'zero',
      DEFAULTS.deadlineToleranceMs,
    ),
    operations: operations(kit),
    routes: routes(kit),
    dependencies: dependencies(kit),
    retry_budgets: retryBudgets(
      kit,
      { pattern: DEPENDENCY_NAME, form: DEPENDENCY_NAME_FORM },
      { pattern: VERSION, form: VERSION_FORM },
    ),
    degraded_modes: degradedModes(
      kit,
      { pattern: DEPENDENCY_NAME, form: DEPENDENCY_NAME_FORM },
      { pattern: OPERATION, form: OPERATION_FORM },
    ),
    callers: callers(kit),
    labels: labels(kit),
    buckets_s: buckets(kit),
    policy_version: kit.text(
      'Name of this policy, shown in policy_info. Unset: a short hash of the effective settings.',
      VERSION_FORM,
      { pattern: VERSION },
    ),
  };
}

/** The file: keys in snake_case, and a `version` so that a later form can be told apart. */
export function fileSchema(z: Zod4): Schema {
  const kit = makeKit(z, (key) => key);
  const version = z.literal(1, '1').meta({ description: 'Version of the form of this file. Allowed: 1.' });
  return kit.group('Configuration of otel-time-budget.', { version, ...settings(kit) }, ['version']);
}

/** The constructor's options: the same in camelCase, without `version`, with `disabled`. */
export function optionsSchema(z: Zod4): Schema {
  const kit = makeKit(z, camelCase);
  const disabled = z
    .boolean('true or false')
    .meta({ description: 'Switches our part off. Allowed: true or false.' });
  return kit.group('Options of otel-time-budget.', { disabled, ...settings(kit) });
}

/** `default_ms` → `defaultMs`. */
export function camelCase(key: string): string {
  return key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

/** `defaultMs` → `default_ms`. */
export function snakeCase(key: string): string {
  return key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
