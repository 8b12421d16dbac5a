import { snakeCase } from './config-schema.ts';
import type { DegradedModeDefinition, DegradedModeSettings } from './config-settings.ts';
import { MAX_MODES } from './names.ts';

/** Degraded modes as they were given: what only two keys together can tell, and their effective settings. */

export function degradedModeSettings(definition: DegradedModeDefinition, name: string): DegradedModeSettings {
  const { trigger, leastMs, nonDegradable } = definition;
  return {
    name,
    trigger: trigger && {
      metric: trigger.metric,
      labels: (trigger.labels ?? []).map(splitLabel),
      enterAt: trigger.enterAt,
      exitAt: trigger.exitAt,
      windowMs: trigger.windowMs,
    },
    leastMs,
    nonDegradable: [...new Set(nonDegradable)],
  };
}

function splitLabel(text: string): readonly [string, string] {
  const at = text.indexOf('=');
  return [text.slice(0, at), text.slice(at + 1)];
}

export function degradedModeProblems(
  definitions: Readonly<Record<string, DegradedModeDefinition>>,
  label: (...path: string[]) => string,
): string[] {
  const names = Object.keys(definitions);
  const problems = names.length > MAX_MODES ? [`${label('degradedModes')}: at most ${MAX_MODES} modes`] : [];
  for (const [name, { trigger }] of Object.entries(definitions)) {
    if (trigger === undefined || trigger.enterAt !== trigger.exitAt) continue;
    const where = label('degradedModes', name, 'trigger', 'exitAt');
    problems.push(`${where}: it must differ from ${snakeCase('enterAt')}, which is ${trigger.enterAt}`);
  }
  return problems;
}
