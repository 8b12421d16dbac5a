/**
 * The question that every loop of repeats asks after a failed attempt, and its answer: the class of the error, the
 * attempts of this operation, the caller, the time, and last the retry budget (design rule 12).
 */
import { activeRecorder } from '../active.ts';
import { mayRetry as decide, isRetryable, type RetryDecision } from '../core/attempt.ts';
import type { CallTarget } from '../core/call.ts';
import {
  type AttemptOwner,
  type EmptyBehaviour,
  type ErrorClass,
  OTHER,
  type RefusalReason,
  UNKNOWN,
} from '../core/terms.ts';
import { currentScope } from '../current.ts';
import type { LiveRetryBudget } from '../live-retry-budget.ts';
import type { PendingRepeat } from '../pending-repeat.ts';
import type { Recorder } from '../recorder.ts';
import type { Scope } from '../records.ts';
import type { Mode } from '../telemetry/config-settings.ts';
import { ATTR, EVENT } from '../telemetry/names.ts';
import { type Failure, readFailure } from './failure.ts';
import { handOver, type OwedRepeat } from './owed-repeat.ts';
import { findTarget } from './target.ts';

/** What holds for all repeats of a loop or of a client. */
export interface RetryPolicy {
  /** Name of the dependency, as configured, or its host. */
  readonly dependency: string;
  /**
   * Doing the work twice does no harm. True unless said otherwise: who writes the loop says that it may be repeated.
   * With false a failure of unknown outcome is not repeated.
   */
  readonly isSafe?: boolean | undefined;
  /** The class of a failure, where the service knows better than its status and code tell. */
  readonly classify?: ((error: unknown) => ErrorClass | undefined) | undefined;
  /** What an attempt realistically takes, ms. Left out: the learned or configured p95 of the dependency. */
  readonly expectedAttemptMs?: number | undefined;
  /** Cost of a repeat in the unit of the budget; left out for a usual one. */
  readonly cost?: number | undefined;
  /**
   * Takes over a repeat that an empty budget refuses, where the budget's `on_empty` is `managed_background`. The
   * caller gets the error at hand all the same. Left out: nobody takes over, and that error is all there is.
   */
  readonly background?: ((repeat: OwedRepeat) => void) | undefined;
}

/** One failed attempt. */
export interface RetryAsk extends RetryPolicy {
  /** What was thrown, or an answer that counts as a failure. */
  readonly error: unknown;
  /** Attempts made of this operation, the original included: 1 after the original has failed. */
  readonly attempt: number;
  /** Attempts that may be made in all, the original included; "two retries" are three attempts. */
  readonly maxAttempts: number;
  /** Planned wait before the next attempt, with its jitter. 0 by default. */
  readonly backoffMs?: number | undefined;
  /** What the peer asked to wait. Left out: read from the `Retry-After` of the error or answer. */
  readonly retryAfterMs?: number | undefined;
  /** A breaker lets nothing through: no token is taken. */
  readonly isBlocked?: boolean | undefined;
}

export interface RetryAnswer extends Omit<RetryDecision, 'refusal'> {
  /** What to do. In `observe` and `propagate` no repeat is refused for lack of time, of a caller or of a token. */
  readonly isAllowed: boolean;
  /** Why it is refused; where `isAllowed`, why it would have been. */
  readonly refusal: RefusalReason | undefined;
  /** Refusals hold: the mode of the calls to this dependency is `enforce`. */
  readonly isEnforced: boolean;
  /** What the service declared to do where the budget cannot pay. undefined unless that is the refusal. */
  readonly onEmpty: EmptyBehaviour | undefined;
  /** Wait before the next attempt, no shorter than what the peer asked for. */
  readonly backoffMs: number;
  readonly policyVersion: string | undefined;
}

/** What an answer stands on. Not in the answer: it is printed and compared by its users. */
export interface Grounds {
  readonly recorder: Recorder;
  readonly scope: Scope | undefined;
  readonly pending: PendingRepeat;
}

const groundsOf = new WeakMap<RetryAnswer, Grounds>();

export function groundsFor(answer: RetryAnswer): Grounds | undefined {
  return groundsOf.get(answer);
}

/**
 * Asked once per failed attempt, before the wait. Where it says no, throw the error at hand. A repeat that is let
 * through and then not made pays its token back: `backoff(answer)` and the end of the request see to that.
 * Outside a request there is no deadline; where the package is not started, only class and attempts count.
 * Never throws: it stands where a request has an error at hand, which must not be replaced. What plain JavaScript leaves
 * out, or gives as a number and is none, was not said; without attempts the answer is no.
 */
export function mayRetry(ask: RetryAsk): RetryAnswer {
  return askIn(currentScope(), ask ?? NOTHING_ASKED, 'service');
}

/**
 * As mayRetry, for a library whose callbacks do not run in the request. `owner` of the repeat, where it is known.
 * `isRunning`: the attempt at hand has not failed, another one is to join it.
 */
export function askIn(
  scope: Scope | undefined,
  ask: RetryAsk,
  owner?: AttemptOwner,
  isRunning = false,
): RetryAnswer {
  const failure = readSafely(ask);
  const errorClass = classOf(ask, failure);
  const isSafe = ask.isSafe ?? true;
  const backoffMs = Math.max(waitOf(ask.backoffMs), waitOf(ask.retryAfterMs ?? failure.retryAfterMs));
  const cost = numberIn(ask.cost);
  const question = {
    errorClass,
    isSafe,
    attempts: numberIn(ask.attempt) ?? Number.NaN,
    maxAttempts: numberIn(ask.maxAttempts) ?? Number.NaN,
    backoffMs,
    cost: cost !== undefined && cost > 0 ? cost : undefined,
    isBlocked: ask.isBlocked,
    hasFailed: !failure.isBlocked && !isRunning,
  };
  const recorder = activeRecorder();
  if (recorder === undefined) return plainAnswer(decide({ ...question, reserveMs: 0 }, undefined, 0));

  const now = recorder.clock.now();
  const { target, settings } = findTarget(recorder, ask.dependency);
  const permitted = Number.isFinite(question.maxAttempts) ? question.maxAttempts : undefined;
  if (permitted !== undefined)
    recorder.calls.attempts.permitted(target.dependency, owner ?? UNKNOWN, permitted);
  const known = recorder.retries.of(target.name);
  const budget = known?.isDerived === true ? undefined : known;
  const decision = decide(
    {
      ...question,
      remainingMs: scope === undefined || scope.deadlineAt === Infinity ? undefined : scope.deadlineAt - now,
      expectedAttemptMs:
        numberIn(ask.expectedAttemptMs) ?? recorder.typical.dependency(target.dependency, now)?.p95Ms,
      reserveMs: recorder.config.reserveMsFor(scope?.request.operation, settings),
      isCallerGone: scope?.request.cancelSource !== undefined && !scope.detached,
    },
    budget,
    now,
  );
  const mode = settings?.mode ?? recorder.config.calls.mode;
  const isEnforced = mode === 'enforce';
  const isOwnLimit = !isRetryable(errorClass, isSafe) || !(question.attempts < question.maxAttempts);
  const isAllowed = decision.isAllowed || (!decision.isBlocked && !isEnforced && !isOwnLimit);
  if (decision.refusal !== undefined) recordRefusal(recorder, scope, target, decision, mode);
  if (!isAllowed && decision.refusal === 'retry_budget_empty' && budget !== undefined) {
    handOver(recorder, { target, budget, ask, cost: question.cost, attempt: decision.attempt });
  }
  const answer = answerOf(decision, isAllowed, isEnforced, budget);
  if (!isAllowed) return answer;
  const paid = decision.paidBy === 'retry_budget' ? (question.cost ?? budget?.attemptCost ?? 0) : 0;
  const pending = recorder.retries.expect(scope, target, paid, backoffMs, now, {
    owner,
    attempt: decision.attempt,
    permitted,
    kind: failure.next,
  });
  groundsOf.set(answer, { recorder, scope, pending });
  return answer;
}

function answerOf(
  decision: RetryDecision,
  isAllowed: boolean,
  isEnforced: boolean,
  budget: LiveRetryBudget | undefined,
): RetryAnswer {
  return {
    ...decision,
    isAllowed,
    isEnforced,
    onEmpty: decision.refusal === 'retry_budget_empty' ? budget?.onEmpty : undefined,
    policyVersion: budget?.policyVersion,
  };
}

function plainAnswer(decision: RetryDecision): RetryAnswer {
  return { ...decision, isEnforced: false, onEmpty: undefined, policyVersion: undefined };
}

function recordRefusal(
  recorder: Recorder,
  scope: Scope | undefined,
  target: CallTarget,
  decision: RetryDecision,
  mode: Mode,
): void {
  const { dependency } = target;
  const { refusal, attempt, remainingMs, reserveMs, neededMs } = decision;
  if (refusal === undefined) return;
  recorder.retries.prepare(dependency);
  recorder.families.refused.cell(dependency, 'repeat', refusal).add(1);
  scope?.request.span?.addEvent(EVENT.refused, {
    [ATTR.refusalReason]: refusal,
    [ATTR.dependency]: dependency,
    [ATTR.attempt]: attempt,
    [ATTR.mode]: mode,
    [ATTR.reserve]: reserveMs,
    [ATTR.needed]: neededMs,
    ...(remainingMs === undefined ? {} : { [ATTR.remaining]: remainingMs }),
  });
}

/** A text or a BigInt is the number that it says; a Symbol or an object, with which no sum can be made, is none. */
function numberIn(value: unknown): number | undefined {
  const number = typeof value === 'string' || typeof value === 'bigint' ? Number(value) : value;
  return typeof number === 'number' && !Number.isNaN(number) ? number : undefined;
}

/** What is no number is no wait: as a timer, NaN would be the longest there is. */
function waitOf(ms: unknown): number {
  return Math.max(0, numberIn(ms) ?? 0);
}

const NOTHING_ASKED: RetryAsk = {
  dependency: OTHER,
  error: undefined,
  attempt: Number.NaN,
  maxAttempts: Number.NaN,
};

const NOTHING_READ: Failure = {
  errorClass: 'unknown_outcome',
  status: undefined,
  isBlocked: false,
  next: 'resend',
  retryAfterMs: undefined,
};

/** What a library throws may have getters that throw. */
function readSafely({ error }: RetryAsk): Failure {
  try {
    return readFailure(error);
  } catch {
    return NOTHING_READ;
  }
}

/** A `classify` that throws has said nothing: it must not take the place of the error at hand. */
function classOf({ classify, error }: RetryAsk, failure: Failure): ErrorClass {
  try {
    return classify?.(error) ?? failure.errorClass;
  } catch {
    return failure.errorClass;
  }
}
