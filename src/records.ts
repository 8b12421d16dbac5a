/** The pure records with what belongs to this process: the span they are told on and the cells they fill. */
import type { Span } from '@opentelemetry/api';
import type { AllowanceTerms } from './core/allowance.ts';
import { Call, type CallTarget } from './core/call.ts';
import type { Attempt, Operations } from './core/operations.ts';
import type { Received } from './core/received.ts';
import {
  type AttemptOwner,
  type BreakerState,
  type CancelSource,
  type ExpiryCause,
  type InFlightState,
  UNKNOWN,
  type Workload,
} from './core/terms.ts';
import { TimeBudget } from './core/time-budget.ts';
import type { LiveRetryBudget } from './live-retry-budget.ts';
import type { PendingRepeat } from './pending-repeat.ts';
import type { DependencySettings } from './telemetry/config-settings.ts';
import type { DependencySeries, WhoSeries } from './telemetry/series.ts';

/** Why a budget's signal fired. `code` is the cancel source, or `deadline_exceeded`. */
export class BudgetError extends Error {
  readonly code: CancelSource | 'deadline_exceeded';

  constructor(code: CancelSource | 'deadline_exceeded') {
    super(code === 'deadline_exceeded' ? 'The time budget of the request is used up' : `Cancelled: ${code}`);
    this.name = 'BudgetError';
    this.code = code;
  }
}

/** What a piece of work sees: its request, and its own, perhaps shorter, deadline. */
export interface Scope {
  readonly request: RequestRecord;
  readonly deadlineAt: number;
  /** Marked as meant to outlive the request: stays out of post-cancel figures. */
  readonly detached: boolean;
  /** Left out where nothing is said of the calls made here, as in the scope of a request itself. */
  readonly mark?: Mark | undefined;
}

/** What a breaker, a fallback or a race of attempts says of the calls that are made inside it. */
export interface Mark {
  readonly breaker?: BreakerMark | undefined;
  readonly fallback?: FallbackMark | undefined;
  readonly race?: RaceMark | undefined;
}

/** One attempt of an operation of which others run beside it. */
export interface RaceMark {
  readonly dependency: string;
  /** 1 = the original, which the others are hedges of. */
  readonly ordinal: number;
  /** When another one had won. */
  lostAt: number | undefined;
}

export interface BreakerMark {
  readonly dependency: string;
  readonly state: BreakerState;
  readonly isProbe: boolean;
}

export interface FallbackMark {
  readonly name: string;
  /** The one that it stands in for. */
  readonly dependency: string;
  /** One of its calls went there. */
  sharesDependency: boolean;
}

/** What makes a scope's signal fire. */
export interface Aborter {
  readonly controller: AbortController;
  timer: NodeJS.Timeout | undefined;
}

/** What a request holds until its work has ended. */
export interface Hold {
  /** The request, its handler, or the last of its calls has ended. */
  settle(now: number): void;
}

export class RequestRecord extends TimeBudget implements Scope {
  readonly detached = false;
  span: Span | undefined;
  series: WhoSeries | undefined;
  cause: ExpiryCause | undefined;
  insufficient = false;
  /** A framework tells when the handler ends, so the end of the reply is not taken for it. */
  handlerTracked = false;
  /** What the operation's own handler runs in, where a framework tells its start. */
  handlerScope: Scope | undefined;
  /** What the framework's adapter keeps on its way to the handler. */
  routing: object | undefined;
  /** Taken where no other is known when the request ends: a route that may only have passed it on. */
  likelyOperation: string | undefined;
  /** Ordinal of the attempt that this request is, as its sender said; 1 = original. */
  attempt = 1;
  /** This or any ancestor attempt was a repeat. */
  repeated = false;
  /** Whose repeat this request is, where the service says so. */
  repeatOwner: AttemptOwner | undefined;
  /** Where somebody says it; else it follows from `repeated`. */
  workload: Workload | undefined;
  workloadCounted = false;
  /** What its calls are attempts of; made for the first of them. */
  operations: Operations | undefined;
  /** A repeat that repeats a call itself, which is counted once. */
  ownsRepeats = false;
  /** What arrived, kept until the operation and with it the entry policy is known. */
  received: Received | undefined;
  trusted = false;
  /** When a call of the request was last answered: tells the loser of a race. */
  lastAnswerAt: number | undefined;
  /** Repeats of its calls that were let through and have not been made yet. */
  repeats: PendingRepeat[] | undefined;
  /** Calls that ended before the operation was known. */
  early: CallRecord[] | undefined;

  /** Where it is counted among the requests in flight. */
  standing: InFlightState | undefined;
  /** It was let in by a gate. */
  isGranted = false;
  holds: Hold[] | undefined;
  /** Of the signals that were asked for, by scope; few, and none is kept once its scope is over. */
  aborters: Map<Scope, Aborter> | undefined;

  get request(): RequestRecord {
    return this;
  }

  override end(now: number, idleMs: number): void {
    super.end(now, idleMs);
    if (this.openCalls === 0) this.settle(now);
  }

  /** As far as it can be seen, nothing of it is running any more. */
  get isOver(): boolean {
    if (this.endedAt === undefined || this.openCalls > 0) return false;
    return !this.handlerTracked || this.handlerEndedAt !== undefined;
  }

  /** It has ended: what it was recorded with is not needed any more. */
  letGo(now: number): void {
    this.received = undefined;
    this.routing = undefined;
    this.span = undefined;
    this.forgetCalls();
    this.settle(now);
  }

  settle(now: number): void {
    if (this.holds === undefined) return;
    for (const hold of this.holds) hold.settle(now);
  }
}

export class CallRecord extends Call implements AllowanceTerms {
  readonly scope: Scope | undefined;
  readonly series: DependencySeries;
  readonly settings: DependencySettings | undefined;
  span: Span | undefined;
  postCancelMs: number | undefined;
  /** Whose request it was made for, when it was made. */
  readonly caller: string;
  /** Ordinal of this attempt at its operation; 1 = original. */
  attempt = 1;
  /** What is known of it as an attempt; undefined for a call that is not looked at as one, such as SQL. */
  tried: Attempt | undefined;
  /** What it began with has been counted. */
  beginCounted = false;
  attemptCounted = false;
  attemptEnded = false;
  /** HTTP status of the answer, from its head on. */
  status: number | undefined;
  /** Counted as open on its request; false for detached calls and for those after its end. */
  inRequest = false;
  /** False where the dependency was asked for no work (waiting for a pool, connecting): it teaches nothing usual. */
  teaches = true;
  /** Given up on without the server being told: the work may go on there. */
  mayStillRun = false;
  /** A COMMIT was sent and its answer never came. */
  commitUnknown = false;
  /** The retry budget of its dependency. */
  retryBudget: LiveRetryBudget | undefined;
  /** What was withdrawn for this repeat, 0 for an original; undefined until it is sent. */
  repeatPaid: number | undefined;
  /** An original, which feeds the retry budget. */
  paysIn = false;

  constructor(
    target: CallTarget,
    scope: Scope | undefined,
    series: DependencySeries,
    settings: DependencySettings | undefined,
    startedAt: number,
  ) {
    super(target, startedAt, scope?.deadlineAt ?? Infinity, scope?.detached ?? false);
    this.scope = scope;
    this.caller = scope?.request.caller ?? UNKNOWN;
    this.series = series;
    this.settings = settings;
  }

  // Its terms, as `decideAllowance` names them.

  get remainingMs(): number | undefined {
    return this.remainingBeforeMs;
  }

  get latencyMs(): number | undefined {
    return this.settings?.latencyMs;
  }

  get minimumMs(): number | undefined {
    return this.settings?.minimumMs;
  }
}
