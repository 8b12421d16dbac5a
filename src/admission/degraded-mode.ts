/** Degraded modes by name, declared in code or in the configuration file. */
import { diag } from '@opentelemetry/api';
import { activeRecorder } from '../active.ts';
import { currentScope } from '../current.ts';
import { LiveDegradedMode } from '../live-degraded-mode.ts';
import { watch } from '../load-recorder.ts';
import { degradedModeSettings } from '../telemetry/config-resolve-degraded.ts';
import type { DegradedModeDefinition } from '../telemetry/config-settings.ts';
import { ATTR } from '../telemetry/names.ts';
import { checkDefinition } from './degraded-definition.ts';
import { checkName } from './options.ts';

/** What is known of a degraded answer. */
export interface DegradedFacts {
  /** How old its oldest part may be, ms. */
  readonly ageMs?: number | undefined;
  /** Something is left out of it. */
  readonly isPartial?: boolean | undefined;
}

export interface DegradedMode {
  readonly name: string;
  /** The metric that it is on by, or `manual`. */
  readonly trigger: string;
  /** Whether to give a degraded answer now: it is on, and the operation of this request is not one that never may. */
  isActive(): boolean;
  /** Says that the answer to this request is a degraded one: its outcome is `degraded` and not `useful`. */
  answer(facts?: DegradedFacts): void;
  /** By hand; with a trigger the next look at its metric may undo it. */
  enter(): void;
  exit(): void;
}

const early = new Map<string, LiveDegradedMode>();
const complained = new Set<string>();

/**
 * The one degraded mode of this name. One of the configuration file stands before what the code says, so that its
 * points can be changed without a release. Throws RangeError for what cannot work, and where neither has it. While the
 * package is not started, the file is not read: a mode without a definition is then off until it is.
 */
export function degradedMode(name: string, definition?: DegradedModeDefinition): DegradedMode {
  checkName('degradedMode', name);
  const made = find(name) ?? create(name, definition);
  // Asked each time: the package may start later, with a mode of the file in its place.
  const live = () => find(name) ?? made;
  const now = () => activeRecorder()?.clock.now() ?? performance.now();
  return {
    name,
    get trigger() {
      return live().trigger;
    },
    isActive: () => !live().isForbidden(currentScope()?.request.operation) && live().isOn(now()),
    answer: (facts) => markAnswer(live(), facts ?? {}),
    enter: () => void live().set(true, now()),
    exit: () => void live().set(false, now()),
  };
}

function find(name: string): LiveDegradedMode | undefined {
  const known = activeRecorder()?.load.get('mode', name) ?? early.get(name);
  return known instanceof LiveDegradedMode ? known : undefined;
}

function create(name: string, definition: DegradedModeDefinition | undefined): LiveDegradedMode {
  const recorder = activeRecorder();
  if (definition === undefined) {
    if (recorder !== undefined)
      throw new RangeError(`degradedMode: there is no mode ${name}, and no definition`);
    return new LiveDegradedMode(degradedModeSettings({}, name));
  }
  checkDefinition(name, definition);
  const live = new LiveDegradedMode(degradedModeSettings(definition, name));
  watch(live);
  if (recorder === undefined) early.set(name, live);
  return live;
}

function markAnswer(live: LiveDegradedMode, { ageMs, isPartial }: DegradedFacts): void {
  const request = currentScope()?.request;
  if (request === undefined || request.endedAt !== undefined) return;
  if (request.disposition?.kind === 'shed' || request.disposition?.kind === 'refused') return;
  request.disposition = { kind: 'degraded', mode: live.name };
  request.span?.setAttribute(ATTR.degradedMode, live.name);
  if (ageMs !== undefined) request.span?.setAttribute(ATTR.degradedAge, ageMs);
  if (isPartial !== undefined) request.span?.setAttribute(ATTR.degradedPartial, isPartial);
  if (!live.isForbidden(request.operation) || complained.has(live.name)) return;
  complained.add(live.name);
  diag.warn(
    `otel-time-budget: ${request.operation} must not be degraded, and answers in the mode ${live.name}`,
  );
}
