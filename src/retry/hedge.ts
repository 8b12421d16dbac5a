/**
 * Attempts that overlap: where the first takes longer than usual, another one joins it, and the first answer counts.
 * That is bought with capacity of the dependency, so a hedge asks what every repeat asks.
 */
import { timerMs } from '../core/deadline.ts';
import { checkWhole } from '../core/retry-budget.ts';
import { HEDGE_RESULTS, type HedgeResult } from '../core/terms.ts';
import { currentScope } from '../current.ts';
import { runMarked } from '../marked-scope.ts';
import { BudgetError, type RaceMark, type Scope } from '../records.ts';
import { signalOf } from '../scope-signal.ts';
import { textOf } from '../text-of.ts';
import { askSafely, withRecorder } from './adapter.ts';
import { inCall } from './in-call.ts';
import { findTarget } from './target.ts';

export interface HedgeOptions {
  /** Name of the dependency, as configured, or its host. */
  readonly dependency: string;
  /** How long an attempt is waited for before another one joins it, ms. Its p95, so that one of twenty is hedged. */
  readonly afterMs: number;
  /** Attempts that may be made in all, the original included; 2 by default. */
  readonly maxAttempts?: number | undefined;
  /** What an attempt realistically takes, and what it costs: as for `mayRetry`. */
  readonly expectedAttemptMs?: number | undefined;
  readonly cost?: number | undefined;
}

const MAX_ATTEMPTS = 10;
const now = (): number => performance.now();

/**
 * The answer of the attempt that succeeds first. Give `signal` to the calls of the attempt: it stops those that have
 * lost, with a BudgetError of code `lost_race`, and fires with the request as well. Where no attempt succeeds, the
 * error of the one that failed first; a failure alone starts nothing. Hedges ask the guard: what does not fit the
 * time, or what the retry budget cannot pay for, is not sent in `enforce`, and counted everywhere. Inside a request,
 * their calls to the dependency are attempts of kind `hedge`. Throws RangeError for an option out of its bounds.
 */
export function hedge<T>(
  options: HedgeOptions,
  attempt: (signal: AbortSignal, ordinal: number) => Promise<T>,
): Promise<T> {
  // Plain JavaScript can leave it out, or give a Symbol, which no comparison takes.
  const { afterMs, maxAttempts = 2 } = options ?? {};
  if (typeof afterMs !== 'number' || !(afterMs >= 0))
    throw new RangeError(`hedge: afterMs must be a number >= 0, got ${textOf(afterMs)}`);
  inCall('hedge', () => checkWhole('maxAttempts', maxAttempts, 1, MAX_ATTEMPTS));
  return new Promise((resolve, reject) =>
    new Race({ ...options, maxAttempts }, attempt, resolve, reject).start(),
  );
}

interface Racer {
  readonly controller: AbortController;
  readonly mark: RaceMark;
  isRunning: boolean;
}

class Race<T> {
  readonly #options: HedgeOptions & { readonly maxAttempts: number };
  readonly #attempt: (signal: AbortSignal, ordinal: number) => Promise<T>;
  readonly #resolve: (value: T) => void;
  readonly #reject: (error: unknown) => void;
  readonly #scope: Scope | undefined = currentScope();
  readonly #dependency: string;
  readonly #racers: Racer[] = [];
  readonly #errors: unknown[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(
    options: HedgeOptions & { readonly maxAttempts: number },
    attempt: (signal: AbortSignal, ordinal: number) => Promise<T>,
    resolve: (value: T) => void,
    reject: (error: unknown) => void,
  ) {
    this.#options = options;
    this.#attempt = attempt;
    this.#resolve = resolve;
    this.#reject = reject;
    const label = withRecorder((recorder) => {
      const { dependency } = findTarget(recorder, options.dependency).target;
      for (const result of HEDGE_RESULTS) recorder.families.hedges.cell(dependency, result);
      recorder.families.hedgeLost.cell(dependency);
      return dependency;
    });
    this.#dependency = label ?? options.dependency;
  }

  start(): void {
    const mark: RaceMark = {
      dependency: this.#dependency,
      ordinal: this.#racers.length + 1,
      lostAt: undefined,
    };
    const racer: Racer = { controller: new AbortController(), mark, isRunning: true };
    this.#racers.push(racer);
    if (this.#racers.length < this.#options.maxAttempts) {
      this.#timer = setTimeout(() => this.#join(), timerMs(this.#options.afterMs));
      this.#timer.unref();
    }
    const own = racer.controller.signal;
    const signal = this.#scope === undefined ? own : AbortSignal.any([own, signalOf(this.#scope, now)]);
    // A throw is a failure like any other.
    const result = new Promise<T>((settle) => {
      settle(runMarked({ race: mark }, () => this.#attempt(signal, mark.ordinal)));
    });
    result.then(
      (value) => this.#win(racer, value),
      (error: unknown) => this.#fail(racer, error),
    );
  }

  /** The time of the one that runs is up: another one joins it, if it may. */
  #join(): void {
    const ask = {
      ...this.#options,
      error: undefined,
      attempt: this.#racers.length,
      classify: () => 'transient' as const,
    };
    if (askSafely(this.#scope, ask, 'service', true)?.isAllowed !== false) this.start();
    else this.#count('suppressed');
  }

  #win(winner: Racer, value: T): void {
    if (!winner.isRunning) return;
    clearTimeout(this.#timer);
    const lostAt = now();
    for (const racer of this.#racers) {
      if (!racer.isRunning) continue;
      racer.isRunning = false;
      if (racer.mark.ordinal > 1) this.#count(racer === winner ? 'won' : 'lost');
      if (racer === winner) continue;
      racer.mark.lostAt = lostAt;
      racer.controller.abort(new BudgetError('lost_race'));
    }
    this.#resolve(value);
  }

  #fail(racer: Racer, error: unknown): void {
    if (!racer.isRunning) return;
    racer.isRunning = false;
    this.#errors.push(error);
    if (racer.mark.ordinal > 1) this.#count('failed');
    if (this.#racers.some(({ isRunning }) => isRunning)) return;
    clearTimeout(this.#timer);
    this.#reject(this.#errors[0]);
  }

  #count(result: HedgeResult): void {
    withRecorder(({ families }) => families.hedges.cell(this.#dependency, result).add(1));
  }
}
