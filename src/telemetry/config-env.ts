import { msAllowed, msRange, type ZeroRule } from './config-duration.ts';
import { nearestKey, oneLine, shorten, wrongValue } from './config-problem.ts';
import { type ConfigOptions, ENTRY_ROLES, MAX_MS, MODES } from './config-settings.ts';
import { parseTrust, TRUST_FORMS } from './trust.ts';

/** The settings that the environment can give. An empty or blank value is the same as none. */

export type Environment = Readonly<Record<string, string | undefined>>;

const PREFIX = 'TIME_BUDGET_';
export const ENV_CONFIG = 'TIME_BUDGET_CONFIG';
export const ENV_DISABLED = 'TIME_BUDGET_DISABLED';
const ENV_SDK = 'TIME_BUDGET_SDK';

/** Whether `register` starts an SDK: when nobody else does, at once, or never. */
const SDK_CHOICES = ['auto', 'on', 'off'] as const;
export type SdkChoice = (typeof SDK_CHOICES)[number];

/** Each variable and the setting it gives; the documentation and the messages read this list. */
export const ENV_SETTINGS = {
  TIME_BUDGET_MODE: 'mode',
  TIME_BUDGET_ENTRY_ROLE: 'entry.role',
  TIME_BUDGET_TRUST: 'entry.trust',
  TIME_BUDGET_DEFAULT_MS: 'entry.defaultMs',
  TIME_BUDGET_CEILING_MS: 'entry.ceilingMs',
  TIME_BUDGET_FLOOR_MS: 'entry.floorMs',
  TIME_BUDGET_RESERVE_MS: 'reserveMs',
} as const;

/** The variable that gives a setting; undefined where only the file can. */
export function variableFor(path: string): string | undefined {
  return Object.entries(ENV_SETTINGS).find(([, setting]) => setting === path)?.[0];
}

export interface EnvReading {
  readonly options: ConfigOptions;
  readonly problems: readonly string[];
}

/** `TIME_BUDGET_DISABLED`; undefined where it says nothing. */
export function readDisabled(
  env: Environment,
): { readonly disabled: boolean | undefined } | { readonly problem: string } {
  const text = given(env, ENV_DISABLED)?.toLowerCase();
  if (text === undefined) return { disabled: undefined };
  if (text === 'true' || text === 'false') return { disabled: text === 'true' };
  return { problem: wrongValue(ENV_DISABLED, env[ENV_DISABLED], 'true or false') };
}

/** `TIME_BUDGET_SDK`; `auto` where it says nothing. */
export function readSdk(env: Environment): { readonly sdk: SdkChoice } | { readonly problem: string } {
  const text = given(env, ENV_SDK)?.toLowerCase() ?? 'auto';
  const sdk = SDK_CHOICES.find((each) => each === text);
  return sdk === undefined
    ? { problem: wrongValue(ENV_SDK, env[ENV_SDK], SDK_CHOICES.join(' or ')) }
    : { sdk };
}

/** Path of the file, as given; undefined where none is named. */
export function readConfigPath(env: Environment): string | undefined {
  return given(env, ENV_CONFIG);
}

/** Reads the settings. Words may be in any case; durations are plain decimal digits with a fraction or none. */
export function readEnv(env: Environment): EnvReading {
  const problems = misspelt(env);
  const word = <T extends string>(variable: string, words: readonly T[]): T | undefined => {
    const text = given(env, variable)?.toLowerCase();
    const known = words.find((each) => each === text);
    if (text !== undefined && known === undefined) {
      problems.push(wrongValue(variable, env[variable], words.join(' or ')));
    }
    return known;
  };
  const ms = (variable: string, zero: ZeroRule): number | undefined => {
    const text = given(env, variable);
    if (text === undefined) return undefined;
    const value = decimal(text);
    if (value !== undefined && value <= MAX_MS && (zero === 'zero' || value > 0)) return value;
    const allowed = `milliseconds in decimal digits, such as 500 or 0.5, ${msRange(zero)}`;
    problems.push(wrongValue(variable, env[variable], msAllowed(text, allowed)));
    return undefined;
  };
  const trust = (): string | undefined => {
    const text = given(env, 'TIME_BUDGET_TRUST');
    if (text === undefined) return undefined;
    const lower = text.toLowerCase();
    const result = parseTrust(lower);
    if ('trust' in result) return lower;
    problems.push(wrongValue('TIME_BUDGET_TRUST', result.invalid, `${TRUST_FORMS}, separated by commas`));
    return undefined;
  };

  const options: ConfigOptions = {
    mode: word('TIME_BUDGET_MODE', MODES),
    entry: {
      role: word('TIME_BUDGET_ENTRY_ROLE', ENTRY_ROLES),
      trust: trust(),
      defaultMs: ms('TIME_BUDGET_DEFAULT_MS', 'above zero'),
      ceilingMs: ms('TIME_BUDGET_CEILING_MS', 'above zero'),
      floorMs: ms('TIME_BUDGET_FLOOR_MS', 'zero'),
    },
    reserveMs: ms('TIME_BUDGET_RESERVE_MS', 'zero'),
  };
  return { options, problems };
}

function given(env: Environment, variable: string): string | undefined {
  const text = env[variable]?.trim();
  return text === undefined || text === '' ? undefined : text;
}

const DECIMAL = /^[0-9]+(?:\.[0-9]+)?$/;

/** Digits only: `Number()` alone would also take `5e3`, `0x10` and `Infinity`. */
function decimal(text: string): number | undefined {
  return DECIMAL.test(text) ? Number(text) : undefined;
}

/**
 * Variables that look like one of ours with a mistake in it. Others with our prefix are left alone: for a
 * service called `time-budget`, Kubernetes sets TIME_BUDGET_PORT, TIME_BUDGET_SERVICE_HOST and more.
 */
function misspelt(env: Environment): string[] {
  const known = [...Object.keys(ENV_SETTINGS), ENV_CONFIG, ENV_DISABLED, ENV_SDK];
  const valid = known.map((each) => each.slice(PREFIX.length));
  const problems: string[] = [];
  for (const variable of Object.keys(env)) {
    if (!variable.startsWith(PREFIX) || known.includes(variable)) continue;
    const near = nearestKey(variable.slice(PREFIX.length), valid);
    if (near === undefined) continue;
    problems.push(`${shorten(oneLine(variable), 80)}: unknown variable, did you mean ${PREFIX}${near}?`);
  }
  return problems;
}
