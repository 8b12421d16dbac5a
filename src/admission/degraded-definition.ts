/** A degraded mode declared in code, checked as one of the configuration file is. */
import { isTriggerMetric } from '../live-degraded-mode.ts';
import type { DegradedModeDefinition } from '../telemetry/config-settings.ts';
import { textOf } from '../text-of.ts';
import { isWithin } from './options.ts';

const WINDOW_MS = { least: 10, most: 3_600_000 } as const;

/** Throws RangeError that names the mode, the key and what is allowed. */
export function checkDefinition(mode: string, definition: DegradedModeDefinition): void {
  const check = (holds: boolean, key: string, allowed: string, value: unknown): void => {
    if (!holds)
      throw new RangeError(`degradedMode: ${mode}: ${key} must be ${allowed}, got ${textOf(value)}`);
  };
  check(isObject(definition), 'the definition', 'an object', definition);
  const { trigger, leastMs, nonDegradable } = definition;
  check(leastMs === undefined || isWithin(leastMs, 0, Infinity), 'leastMs', 'a number >= 0', leastMs);
  check(
    nonDegradable === undefined || isTexts(nonDegradable),
    'nonDegradable',
    'a list of operations',
    nonDegradable,
  );
  if (trigger === undefined) return;
  check(isObject(trigger), 'trigger', 'an object', trigger);
  const { metric, labels, enterAt, exitAt, windowMs } = trigger;
  check(
    isTriggerMetric(metric),
    'trigger.metric',
    'a metric of docs/signals.md, as Prometheus has it',
    metric,
  );
  check(Number.isFinite(enterAt), 'trigger.enterAt', 'a finite number', enterAt);
  check(
    Number.isFinite(exitAt) && exitAt !== enterAt,
    'trigger.exitAt',
    'a finite number other than enterAt',
    exitAt,
  );
  const areLabels = labels === undefined || (isTexts(labels) && labels.every((label) => label.includes('=')));
  check(areLabels, 'trigger.labels', 'a list of texts of the form label=value', labels);
  const { least, most } = WINDOW_MS;
  const isWindow = windowMs === undefined || isWithin(windowMs, least, most);
  check(isWindow, 'trigger.windowMs', `a number in ${least}..${most}`, windowMs);
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
