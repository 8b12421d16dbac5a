import { readFileSync, statSync } from 'node:fs';
import { compileConfig } from './config-compile.ts';
import { type Environment, readConfigPath, readDisabled, readEnv, variableFor } from './config-env.ts';
import {
  checkOptions,
  fileKey,
  MAX_FILE_LENGTH,
  type OptionsReading,
  type ReadFile,
  readConfigFile,
} from './config-file.ts';
import { bounded } from './config-problem.ts';
import { type Layer, resolveSettings } from './config-resolve.ts';
import { keyText } from './config-schema-issue.ts';
import type { Config, ConfigOptions, ConfigResult } from './config-settings.ts';

export type { Config, ConfigOptions, ConfigResult } from './config-settings.ts';

/** The configuration of the product, and the only place that reads the process's environment. */

/**
 * Reads the environment, the file it names and the options given in code, in this order of precedence, key by
 * key. Nothing throws: a problem is a line with the key, the value and what is allowed. Switched off, nothing
 * else is looked at, so that a broken file cannot stand in the way of switching off.
 */
export function loadConfig(env: Environment, readFile: ReadFile, options: ConfigOptions = {}): ConfigResult {
  const off = readDisabled(env);
  if ('disabled' in off && (off.disabled ?? options.disabled === true)) {
    return finish([{ options: { disabled: true }, label: keyText }]);
  }
  const problems: string[] = 'problem' in off ? [off.problem] : [];
  const layers: Layer[] = [];
  const add = (reading: OptionsReading, label: Layer['label']): void => {
    if ('problems' in reading) problems.push(...reading.problems);
    else layers.push({ options: reading.options, label });
  };

  // An empty object needs no check, and so no zod.
  if (Object.keys(options).length > 0) add(checkOptions(options), keyText);
  const path = readConfigPath(env);
  if (path !== undefined) add(readConfigFile(path, readFile), (key) => fileKey(path, key));
  const fromEnv = readEnv(env);
  problems.push(...fromEnv.problems);
  // Reached only when it is on, so a `disabled` of the code was overruled.
  layers.push({
    options: { ...fromEnv.options, disabled: false },
    label: (key) => variableFor(key.join('.')) ?? keyText(key),
  });
  return problems.length > 0 ? { ok: false, problems: bounded(problems) } : finish(layers);
}

function finish(layers: readonly Layer[]): ConfigResult {
  const resolution = resolveSettings(layers);
  if ('problems' in resolution) return { ok: false, problems: bounded(resolution.problems) };
  return { ok: true, config: compileConfig(resolution.settings, resolution.policyVersion) };
}

/** `loadConfig` with this process's environment and its files. */
export function loadProcessConfig(options: ConfigOptions = {}): ConfigResult {
  return loadConfig(environment(), readTextFile, options);
}

/** The environment, for the standard `OTEL_*` variables that `register` honours. */
export function environment(): Environment {
  return process.env;
}

/**
 * The configuration of an empty environment with these settings, for tests and for code that has checked its
 * own.
 *
 * @throws {Error} naming every wrong setting
 */
export function defaultConfig(overrides: ConfigOptions = {}): Config {
  const result = loadConfig({}, () => '', overrides);
  if (result.ok) return result.config;
  throw new Error(result.problems.join('\n'));
}

/** Refuses what is no plain file or too long before it is read: a pipe or a device might never end. */
function readTextFile(path: string): string {
  const stats = statSync(path);
  if (!stats.isFile()) throw new Error('it is not a regular file');
  if (stats.size > MAX_FILE_LENGTH) throw new Error(`it is longer than ${MAX_FILE_LENGTH} bytes`);
  return readFileSync(path, 'utf8');
}
