/**
 * Where the load of this process is counted: what is in flight, what was let in and what was not, and everything that
 * is read when it is collected: gates, queues, bulkheads and degraded modes.
 */
import { activeRecorder } from './active.ts';
import { type Ending, shedReasonOf } from './core/outcome.ts';
import { IN_FLIGHT_STATES, type InFlightState, type Outcome } from './core/terms.ts';
import { guarded } from './guarded.ts';
import { LiveDegradedMode } from './live-degraded-mode.ts';
import type { Recorder } from './recorder.ts';
import type { RequestRecord } from './records.ts';
import type { NumberCell } from './telemetry/metrics.ts';
import { ATTR, MAX_MODES, MAX_QUEUES } from './telemetry/names.ts';

/** Something with a name of its own in metrics, which tells its state when it is asked. */
export interface Watched {
  readonly kind: 'queue' | 'mode';
  readonly name: string;
  /** The function that made it, for what is wrong with its name. */
  readonly madeBy: 'admission' | 'watchQueue' | 'watchBulkhead' | 'degradedMode';
  /** Makes its series at 0. Once for each recorder. */
  connect(recorder: Recorder): void;
  /** Brings up to date what nothing else does. */
  refresh(now: number): void;
}

const early: Watched[] = [];

/** Read from now on, or from when the package is started; as `LoadRecorder.add`. */
export function watch(watched: Watched): () => void {
  const recorder = activeRecorder();
  if (recorder !== undefined) return recorder.load.add(watched);
  refuseExcess(early, watched);
  early.push(watched);
  return () => remove(early, watched);
}

export class LoadRecorder {
  readonly #recorder: Recorder;
  readonly #inFlight: Readonly<Record<InFlightState, NumberCell>>;
  readonly #watched: Watched[] = [];
  /** Names that have series, those after their undo as well. */
  readonly #names: Readonly<Record<Watched['kind'], Set<string>>> = { queue: new Set(), mode: new Set() };
  #isRefreshing = false;

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
    const { families, config } = recorder;
    // Built from IN_FLIGHT_STATES itself, so every state is there.
    this.#inFlight = Object.fromEntries(
      IN_FLIGHT_STATES.map((state) => [state, families.inFlight.cell(state)]),
    ) as Record<InFlightState, NumberCell>;
    for (const settings of Object.values(config.degradedModes)) this.add(new LiveDegradedMode(settings));
    for (const watched of early.splice(0))
      if (this.get(watched.kind, watched.name) === undefined) this.add(watched);
    const refresh = () => this.#refresh();
    for (const family of [
      families.queueDepth,
      families.queueOldest,
      families.queueUsefulLife,
      families.queueWork,
      families.recovering,
      families.modelDrains,
      families.modelTimeToDrain,
      families.modelBreakEven,
      families.concurrencyUsed,
      families.concurrencyLimit,
      families.degradedActive,
    ]) {
      family.refresh = refresh;
    }
  }

  /** Takes a request from one state to another; undefined: it has ended. */
  move(record: RequestRecord, to: InFlightState | undefined): void {
    const from = record.standing;
    if (from !== undefined) this.#inFlight[from].value--;
    if (to !== undefined) this.#inFlight[to].value++;
    record.standing = to;
  }

  /** The arrival is counted: its operation is known. */
  offer(record: RequestRecord): void {
    this.move(record, 'undecided');
    if (record.isGranted) this.#admit(record);
  }

  /** It was given a permit: this is when it is counted as admitted, unless its operation is still to be found. */
  grant(record: RequestRecord): void {
    if (record.isGranted || record.endedAt !== undefined) return;
    record.isGranted = true;
    if (record.series !== undefined) this.#admit(record);
  }

  #admit(record: RequestRecord): void {
    record.series?.admitted.add(1);
    this.move(record, 'admitted');
  }

  /**
   * The request has ended. Without a permit its answer is the first to say whether it was let in, so that it is
   * counted as admitted, shed or refused only now. What was let in and is refused after all stays admitted, with
   * the outcome `shed`.
   */
  decide(record: RequestRecord, ending: Ending, outcome: Outcome): void {
    const said = record.disposition;
    if (!record.isGranted) {
      if (outcome === 'shed') {
        const reason = (said?.kind === 'shed' ? said.reason : shedReasonOf(record, ending)) ?? 'capacity';
        record.series?.shed(reason).add(1);
        record.span?.setAttribute(ATTR.shedReason, reason);
      } else if (outcome !== 'refused') record.series?.admitted.add(1);
    }
    this.move(record, undefined);
    if (said?.kind !== 'degraded' || (outcome !== 'degraded' && outcome !== 'late')) return;
    const mode = this.get('mode', said.mode);
    if (mode instanceof LiveDegradedMode && mode.isForbidden(record.operation)) {
      this.#recorder.families.violations.cell('degraded_non_degradable').add(1);
    }
  }

  get(kind: Watched['kind'], name: string): Watched | undefined {
    return find(this.#watched, kind, name);
  }

  /**
   * Its series are there from now on, until the undo; after it they stand still. Throws RangeError for a name that is
   * taken, and for one too many.
   */
  add(watched: Watched): () => void {
    refuseExcess(this.#watched, watched, this.#names[watched.kind]);
    this.#watched.push(watched);
    this.#names[watched.kind].add(watched.name);
    watched.connect(this.#recorder);
    return () => remove(this.#watched, watched);
  }

  /** A mode reads the metric it is tied to, which may be one of those that are being refreshed. */
  #refresh(): void {
    if (this.#isRefreshing) return;
    this.#isRefreshing = true;
    const now = this.#recorder.clock.now();
    for (const watched of this.#watched) guarded(() => watched.refresh(now), this.#recorder);
    this.#isRefreshing = false;
  }
}

/** `names`: those that cannot be taken back. */
function refuseExcess(
  list: readonly Watched[],
  { kind, name, madeBy }: Watched,
  names: ReadonlySet<string> = new Set(list.filter((each) => each.kind === kind).map((each) => each.name)),
): void {
  if (find(list, kind, name) !== undefined)
    throw new RangeError(`${madeBy}: there is a ${kind} ${name} already`);
  const most = kind === 'mode' ? MAX_MODES : MAX_QUEUES;
  if (names.size < most || names.has(name)) return;
  throw new RangeError(`${madeBy}: at most ${most} names of one kind, ${name} is one too many`);
}

function find(list: readonly Watched[], kind: Watched['kind'], name: string): Watched | undefined {
  return list.find((each) => each.kind === kind && each.name === name);
}

function remove(list: Watched[], watched: Watched): void {
  const at = list.indexOf(watched);
  if (at >= 0) list.splice(at, 1);
}
