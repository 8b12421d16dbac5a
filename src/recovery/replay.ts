/**
 * Old work that is let run again, item by item: no faster than its limit and than live work leaves room for, and not
 * at all while one of four signals says that it hurts.
 */
import { activeRecorder } from '../active.ts';
import { checkName } from '../admission/options.ts';
import {
  type ReplayFacts,
  type ReplayLimits,
  replayRate,
  replayStops,
  spareOf,
} from '../core/replay-limit.ts';
import { REPLAY_STOPS, type ReplayStop } from '../core/terms.ts';
import { currentScope } from '../current.ts';
import { guarded } from '../guarded.ts';
import type { Recorder } from '../recorder.ts';
import { ATTR, EVENT, MAX_QUEUES } from '../telemetry/names.ts';
import { textOf } from '../text-of.ts';

export interface ReplayOptions extends ReplayLimits {
  /** Says what is seen now; asked before each release and at each collection, so it must be quick. */
  readonly read?: (() => ReplayFacts) | undefined;
}

export interface ReplayAnswer {
  readonly isAllowed: boolean;
  /** When to ask again, ms; 0 where allowed. */
  readonly waitMs: number;
  /** What holds it back; empty where that is the rate alone. */
  readonly stops: readonly ReplayStop[];
}

export interface Replay {
  /** Asked before each item; where it is allowed, the item counts as released. */
  tryRelease(): ReplayAnswer;
  /** Ends it: its series stand still, and its name is free again. */
  close(): void;
}

/** How soon to look again while it is stopped or nothing is spare. */
const LOOK_AGAIN_MS = 1_000;
/** Live demand is reckoned over at least this long. */
const DEMAND_MS = 1_000;

const replays = new Map<string, PacedReplay>();

/**
 * The replay of the queue of this name. Releases are at least 1 / rate apart, where the rate is the smaller of
 * `maxPerSecond` and what is spare: capacity less live demand, where `read` tells the capacity. Live demand, if it is
 * not told, is what this process admits of workloads `live` and `retry`. Where `read` throws or is async, nothing is
 * released, and the fault is counted. Run the items with `withBudget(ms, work, { workload: 'replay' })`.
 * Throws RangeError for a name that cannot be a label, that is taken, or is one too many, and for limits that are no
 * numbers > 0.
 */
export function replay(name: string, options: ReplayOptions): Replay {
  checkName('replay', name);
  if (typeof options !== 'object' || options === null)
    throw new RangeError(`replay: options must be an object, got ${textOf(options)}`);
  for (const key of ['maxPerSecond', 'latencyLimitMs', 'liveUsefulLifeMs'] as const) {
    if (options[key] === undefined && key !== 'maxPerSecond') continue;
    check(key, options[key], (value) => value > 0 && value < Infinity, 'a number > 0');
  }
  if (options.duplicateLimit !== undefined)
    check('duplicateLimit', options.duplicateLimit, (value) => value >= 0 && value <= 1, 'in 0..1');
  if (options.read !== undefined && typeof options.read !== 'function')
    throw new RangeError(`replay: read must be a function, got ${textOf(options.read)}`);
  if (replays.has(name)) throw new RangeError(`replay: there is a replay ${name} already`);
  // The series of one that was closed are still there.
  const cells = activeRecorder()?.families.replayReleased.cells ?? [];
  const isNew = !cells.some(({ attributes }) => attributes.queue === name);
  if (replays.size >= MAX_QUEUES || (isNew && cells.length >= MAX_QUEUES))
    throw new RangeError(`replay: at most ${MAX_QUEUES}, ${name} is one too many`);
  const paced = new PacedReplay(name, options);
  replays.set(name, paced);
  return paced;
}

interface Demand {
  readonly at: number;
  /** Admitted until then. */
  readonly count: number;
  readonly perSecond: number | undefined;
}

class PacedReplay implements Replay {
  readonly #name: string;
  readonly #options: ReplayOptions;
  #recorder: Recorder | undefined;
  #releasedAt = -Infinity;
  #stops: readonly ReplayStop[] = [];
  #demand: Demand = { at: -Infinity, count: 0, perSecond: undefined };

  constructor(name: string, options: ReplayOptions) {
    this.#name = name;
    this.#options = options;
    this.#connect();
  }

  tryRelease(): ReplayAnswer {
    const now = this.#now();
    const facts = this.#look(now);
    if (facts === undefined) return { isAllowed: false, waitMs: LOOK_AGAIN_MS, stops: [] };
    const rate = replayRate(facts, this.#options);
    if (!(rate > 0)) return { isAllowed: false, waitMs: LOOK_AGAIN_MS, stops: this.#stops };
    const waitMs = this.#releasedAt + 1_000 / rate - now;
    // What is spare may be more by then, so that a rate near 0 is no reason to look away for hours.
    if (waitMs > 0) return { isAllowed: false, waitMs: Math.min(waitMs, LOOK_AGAIN_MS), stops: [] };
    this.#releasedAt = now;
    this.#recorder?.families.replayReleased.cell(this.#name).add(1);
    return { isAllowed: true, waitMs: 0, stops: [] };
  }

  close(): void {
    if (replays.get(this.#name) === this) replays.delete(this.#name);
  }

  /** Brings the gauges up to date; undefined where nothing can be seen. */
  look(): void {
    this.#look(this.#now());
  }

  #now(): number {
    return activeRecorder()?.clock.now() ?? performance.now();
  }

  #look(now: number): ReplayFacts | undefined {
    this.#connect();
    const recorder = this.#recorder;
    const read = guarded(() => factsOf(this.#options.read?.() ?? {}), recorder);
    if (read === undefined) return undefined;
    const facts = { ...read, livePerSecond: read.livePerSecond ?? this.#livePerSecond(now) };
    const stops = replayStops(facts, this.#options);
    this.#note(stops);
    if (recorder === undefined) return facts;
    const { replayLimit, replaySpare, replayStop } = recorder.families;
    replayLimit.cell(this.#name).value = replayRate(facts, this.#options);
    replaySpare.cell(this.#name).value = spareOf(facts) ?? Number.NaN;
    for (const stop of REPLAY_STOPS) replayStop.cell(this.#name, stop).value = Number(stops.includes(stop));
    return facts;
  }

  /** Counts what stops it from now on, and says so on the span of the work that asked. */
  #note(stops: readonly ReplayStop[]): void {
    for (const stop of stops) {
      if (this.#stops.includes(stop)) continue;
      this.#recorder?.families.replayPauses.cell(this.#name, stop).add(1);
      currentScope()?.request.span?.addEvent(EVENT.replayPaused, { [ATTR.replayStop]: stop });
    }
    this.#stops = stops;
  }

  /** What this process has admitted of live work per second since the last look that is old enough. */
  #livePerSecond(now: number): number | undefined {
    const admitted = this.#recorder?.families.workloadAdmitted;
    if (admitted === undefined) return undefined;
    const count = admitted.cell('live').value + admitted.cell('retry').value;
    const { at } = this.#demand;
    if (now - at < DEMAND_MS) return this.#demand.perSecond;
    const perSecond = at === -Infinity ? undefined : ((count - this.#demand.count) * 1_000) / (now - at);
    this.#demand = { at: now, count, perSecond };
    return perSecond;
  }

  /** Makes its series at 0, in the recorder that is there now. */
  #connect(): void {
    const recorder = activeRecorder();
    if (recorder === undefined || recorder === this.#recorder) return;
    this.#recorder = recorder;
    const { families } = recorder;
    families.replayReleased.cell(this.#name);
    for (const stop of REPLAY_STOPS) families.replayPauses.cell(this.#name, stop);
    const refresh = () => {
      for (const each of replays.values()) each.look();
    };
    for (const family of [families.replayLimit, families.replaySpare, families.replayStop])
      family.refresh = refresh;
  }
}

/** A `read` of plain JavaScript may be async: what it will say then is not known now, and nothing is released on it. */
function factsOf(facts: ReplayFacts): ReplayFacts {
  if (!(facts instanceof Promise)) return facts;
  facts.catch(() => {});
  throw new TypeError('read: it must not be async');
}

function check(key: string, value: unknown, holds: (value: number) => boolean, allowed: string): void {
  if (typeof value === 'number' && holds(value)) return;
  throw new RangeError(`replay: ${key} must be ${allowed}, got ${textOf(value)}`);
}
