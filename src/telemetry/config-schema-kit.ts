import type * as Zod from 'zod';
import { msAllowed, msRange, type ZeroRule } from './config-duration.ts';
import { unknownKey } from './config-problem.ts';
import { MAX_ENTRIES, MAX_MS, MAX_NAME_LENGTH } from './config-settings.ts';

/**
 * The building blocks of the schema. Each block takes the meaning of a setting and makes of it the check, the
 * message and the description that the published schema and the documentation show.
 *
 * zod is an argument because loading it costs tens of milliseconds: only who checks a file or given options
 * pays that. `spell` turns a key of the file into the key that is checked (the constructor's are camelCase).
 */
export type Zod4 = typeof Zod;
export type Schema = Zod.ZodType;

export interface SchemaKit {
  readonly z: Zod4;
  /** Duration in ms, fractions allowed. `zero` says whether 0 is a meaning of its own. */
  ms(meaning: string, zero: ZeroRule, fallback?: number): Schema;
  integer(meaning: string, least: number, most: number, fallback?: number): Schema;
  /** Any number within bounds that are both allowed. */
  number(meaning: string, least: number, most: number, fallback?: number): Schema;
  oneOf(meaning: string, words: readonly string[], fallback?: string): Schema;
  toggle(meaning: string, fallback?: 'on'): Schema;
  /** Text that a predicate accepts; `pattern` is the form of it that can stand in the published schema. */
  text(meaning: string, allowed: string, rule: TextRule): Schema;
  list(meaning: string, allowed: string, item: Schema, bounds: { least: number; most: number }): Schema;
  /** A fixed set of keys; others are refused with the nearest valid one. */
  group(meaning: string, shape: Readonly<Record<string, Schema>>, required?: readonly string[]): Schema;
  /** Free names, each with the same group. */
  named(meaning: string, allowed: string, name: RegExp, value: Schema): Schema;
}

export interface TextRule {
  readonly pattern?: RegExp;
  readonly longest?: number;
  readonly accepts?: (text: string) => boolean;
}

/** Separates several lines in one message of zod, which has one message per issue. */
export const LINE = '\n';

export function makeKit(z: Zod4, spell: (key: string) => string): SchemaKit {
  const describe = (schema: Schema, meaning: string, allowed: string, fallback?: unknown): Schema => {
    const description = `${meaning} Allowed: ${allowed}.`;
    return schema.meta(fallback === undefined ? { description } : { description, default: fallback });
  };

  const list: SchemaKit['list'] = (meaning, allowed, item, { least, most }) => {
    const schema = z.array(item, allowed).min(least, allowed).max(most, allowed);
    return describe(schema, meaning, allowed);
  };

  return {
    z,
    list,
    ms(meaning, zero, fallback) {
      const allowed = `a number of milliseconds ${msRange(zero)}`;
      const error = (issue: { input?: unknown }) => msAllowed(issue.input, allowed);
      const number = z.number({ error }).lte(MAX_MS, allowed);
      return describe(
        zero === 'zero' ? number.gte(0, allowed) : number.gt(0, allowed),
        meaning,
        allowed,
        fallback,
      );
    },
    integer(meaning, least, most, fallback) {
      const allowed = `a whole number from ${least} to ${most}`;
      return describe(z.int(allowed).gte(least, allowed).lte(most, allowed), meaning, allowed, fallback);
    },
    number(meaning, least, most, fallback) {
      const allowed = `a number from ${least} to ${most}`;
      return describe(z.number(allowed).gte(least, allowed).lte(most, allowed), meaning, allowed, fallback);
    },
    oneOf(meaning, words, fallback) {
      const allowed = words.join(', ').replace(/, ([^,]*)$/, ' or $1');
      return describe(z.enum([...words], allowed), meaning, allowed, fallback);
    },
    toggle(meaning, fallback) {
      return describe(z.literal(['on', 'off', true, false], 'on or off'), meaning, 'on or off', fallback);
    },
    text(meaning, allowed, { pattern, longest = MAX_NAME_LENGTH, accepts }) {
      const bounded = z.string(allowed).min(1, allowed).max(longest, allowed);
      const formed = pattern === undefined ? bounded : bounded.regex(pattern, allowed);
      return describe(accepts === undefined ? formed : formed.refine(accepts, allowed), meaning, allowed);
    },
    group(meaning, shape, required = []) {
      const entries = Object.entries(shape).map(([key, schema]) => [
        spell(key),
        required.includes(key) ? schema : schema.optional(),
      ]);
      const keys = Object.keys(shape).map(spell);
      return z
        .strictObject(Object.fromEntries(entries), {
          error: (issue) => {
            if (issue.code !== 'unrecognized_keys') return `a mapping with the keys ${keys.join(', ')}`;
            return issue.keys.map((key) => unknownKey(key, keys)).join(LINE);
          },
        })
        .meta({ description: meaning });
    },
    named(meaning, allowed, name, value) {
      return z
        .record(z.string().regex(name), value, {
          error: (issue) => (issue.code === 'invalid_key' ? allowed : 'a mapping from names to settings'),
        })
        .refine((record) => Object.keys(record).length <= MAX_ENTRIES, `at most ${MAX_ENTRIES} names`)
        .meta({ description: `${meaning} Names: ${allowed}.` });
    },
  };
}
