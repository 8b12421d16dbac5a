/** What every circuit breaker is looked at for, whichever library's it is: its state, and what it stops and lets through. */
import type { NamedTarget } from '../core/call.ts';
import type { BreakerState } from '../core/terms.ts';
import { BREAKER_STATES } from '../core/terms.ts';
import { currentScope } from '../current.ts';
import { runMarked } from '../marked-scope.ts';
import type { Recorder } from '../recorder.ts';
import type { Scope } from '../records.ts';
import type { HistogramCell, NumberCell } from '../telemetry/metrics.ts';
import { ATTR, EVENT } from '../telemetry/names.ts';
import { withRecorder } from './adapter.ts';
import { findTarget } from './target.ts';

/** Attempts after a close are looked at for so long. */
const AFTER_CLOSE_MS = 10_000;

interface Cells {
  readonly recorder: Recorder;
  readonly target: NamedTarget;
  readonly states: Readonly<Record<BreakerState, NumberCell>>;
  readonly transitions: Readonly<Record<BreakerState, NumberCell>>;
  readonly blocked: NumberCell;
  readonly probes: NumberCell;
  readonly afterClose: HistogramCell;
}

export class WatchedBreaker {
  readonly #name: string;
  #state: BreakerState;
  #closedAt = -Infinity;
  #isGone = false;
  #cells: Cells | undefined;

  /** `dependency` is the name of the dependency, as configured, or its host. */
  constructor(dependency: string, state: BreakerState) {
    this.#name = dependency;
    this.#state = state;
    withRecorder((recorder) => this.#cellsOf(recorder));
  }

  /** It is in another state now. */
  changed(state: BreakerState): void {
    withRecorder((recorder) => {
      const cells = this.#cellsOf(recorder);
      if (state === this.#state) return;
      cells.states[this.#state].add(-1);
      cells.states[state].add(1);
      cells.transitions[state].add(1);
      if (state === 'closed') this.#closedAt = recorder.clock.now();
    });
    this.#state = state;
  }

  /** It has stopped an attempt, in `scope`. What was paid for that comes back. */
  blocked(scope: Scope | undefined): void {
    withRecorder((recorder) => {
      const cells = this.#cellsOf(recorder);
      cells.blocked.add(1);
      recorder.retries.blocked(scope, cells.target, recorder.clock.now());
      scope?.request.span?.addEvent(EVENT.blocked, {
        [ATTR.dependency]: cells.target.dependency,
        [ATTR.breakerState]: this.#state,
      });
    });
  }

  /** Runs an attempt that it has let through. */
  run<T>(attempt: () => T): T {
    const mark = withRecorder((recorder) => {
      const cells = this.#cellsOf(recorder);
      const isProbe = this.#state === 'half_open';
      if (isProbe) cells.probes.add(1);
      const sinceMs = recorder.clock.now() - this.#closedAt;
      if (sinceMs < AFTER_CLOSE_MS) cells.afterClose.recordMs(sinceMs);
      return { breaker: { dependency: cells.target.dependency, state: this.#state, isProbe } };
    });
    return mark === undefined || currentScope() === undefined ? attempt() : runMarked(mark, attempt);
  }

  /** It was shut down, and is in no state any more. */
  gone(): void {
    if (!this.#isGone) this.#cells?.states[this.#state].add(-1);
    this.#isGone = true;
  }

  /** Every series is there at 0, once the package has started; it may come after the breaker. */
  #cellsOf(recorder: Recorder): Cells {
    if (this.#cells?.recorder === recorder) return this.#cells;
    const { families } = recorder;
    const { target } = findTarget(recorder, this.#name);
    const { dependency } = target;
    const byState = (cell: (state: BreakerState) => NumberCell) => ({
      closed: cell(BREAKER_STATES[0]),
      half_open: cell(BREAKER_STATES[1]),
      open: cell(BREAKER_STATES[2]),
    });
    this.#cells = {
      recorder,
      target,
      states: byState((state) => families.breakerState.cell(dependency, state)),
      transitions: byState((state) => families.breakerTransitions.cell(dependency, state)),
      blocked: families.breakerBlocked.cell(dependency),
      probes: families.breakerProbes.cell(dependency),
      afterClose: families.breakerAfterClose.cell(dependency),
    };
    if (!this.#isGone) this.#cells.states[this.#state].add(1);
    return this.#cells;
  }
}
