/**
 * Calls as attempts of operations: an original or a repeat, whose, and how it went. Adapters say which request a
 * call is, right after it began; the ordinal goes out in our header, so it is known before the send.
 */
import type { CallEnding } from './call-recorder.ts';
import { type AttemptFailure, failureOf, isErrorStatus } from './core/attempt-failure.ts';
import {
  type Asked,
  type Attempt,
  attemptOutside,
  type CallIdentity,
  type Declaration,
  declaredAttempt,
  loadsAgain,
  Operations,
} from './core/operations.ts';
import { type AttemptOwner, NO_OPERATION, REPEAT_RESULTS, type RepeatResult, UNKNOWN } from './core/terms.ts';
import { currentScope } from './current.ts';
import type { PendingRepeat, RepeatFacts } from './pending-repeat.ts';
import type { Recorder } from './recorder.ts';
import type { CallRecord, RequestRecord } from './records.ts';

/** Repeats that a library has announced and not made yet. The oldest is dropped: then it is only detected. */
const MAX_ANNOUNCED = 32;

/** A repeat that will be the next call with this address, method and path, in the request that announced it. */
interface Announced {
  readonly request: RequestRecord | undefined;
  readonly host: string;
  readonly method: string;
  readonly path: string;
  readonly declaration: Declaration;
}

export class AttemptRecorder {
  readonly #recorder: Recorder;
  readonly #announced: Announced[] = [];
  /** Operations by dependency whose series are there at 0. */
  readonly #prepared = new Map<string, Set<string>>();

  constructor(recorder: Recorder) {
    this.#recorder = recorder;
  }

  /**
   * A library is about to repeat the request to `host` (with its port, as a URL has it) in the current scope, and
   * says so elsewhere than on the request itself.
   */
  announce(host: string, method: string, path: string, declaration: Declaration): void {
    if (this.#announced.length >= MAX_ANNOUNCED) this.#announced.shift();
    this.#announced.push({ request: currentScope()?.request, host, method, path, declaration });
  }

  /** The declaration that was announced for this call; once. */
  takeAnnounced(call: CallRecord, host: string, method: string, path: string): Declaration | undefined {
    if (this.#announced.length === 0) return undefined;
    return this.#takeAnnounced(call.scope?.request, host, method, path);
  }

  /** Says which request a call is, before it is sent. */
  begin(call: CallRecord, identity: CallIdentity, declaration: Declaration | undefined): void {
    const request = call.scope?.request;
    const asked = request?.repeats === undefined ? undefined : askedOf(request.repeats, call.dependency);
    const attempt = attemptOf(request, identity, declaration ?? hedgeOf(call), call.startedAt, asked);
    call.tried = attempt;
    call.attempt = attempt.ordinal;
    if (declaration?.permitted !== undefined) {
      this.permitted(call.dependency, declaration.owner, declaration.permitted);
    }
    // It is counted with what it began with, unless that has been counted: a call may have waited in a pool since.
    if (call.beginCounted) this.countBegun(call);
    if (request === undefined || !loadsAgain(attempt) || !request.repeated || request.ownsRepeats) return;
    request.ownsRepeats = true;
    this.#recorder.families.violations.cell('double_owner').add(1);
  }

  /** An owner has said how many attempts it makes at the most. */
  permitted(dependency: string, owner: AttemptOwner, attempts: number): void {
    this.#recorder.families.permittedAttempts.cell(dependency, owner).value = attempts;
  }

  /**
   * The head of the answer has come. With an error the attempt is over for whoever repeats it, although the call is
   * not until its body has been read or let go of, which nobody need do.
   */
  head(call: CallRecord, status: number, now: number): void {
    call.status = status;
    if (isErrorStatus(status)) endAttempt(call, failureOf('answered', status, true), now);
  }

  /** The call has ended, and knows how. */
  end(call: CallRecord, ending: CallEnding, now: number): void {
    const lostAt = call.scope?.mark?.race?.lostAt;
    if (lostAt !== undefined) {
      const afterMs = now - Math.max(lostAt, call.startedAt);
      this.#recorder.families.hedgeLost.cell(call.dependency).add(Math.max(0, afterMs) / 1_000);
    }
    const { tried, status } = call;
    if (tried === undefined) return;
    const failure = failureOf(ending, status, call.dispatchedAt !== undefined);
    endAttempt(call, call.cancelSource === 'lost_race' ? 'ignored' : failure, now);
    if (!loadsAgain(tried)) return;
    const isLate = lostAt !== undefined || now >= (call.scope?.request.uselessAt() ?? Infinity);
    const result: RepeatResult = failure === undefined ? (isLate ? 'late' : 'useful') : RESULTS[ending];
    this.#recorder.families.repeatResults.cell(call.dependency, result).add(1);
  }

  /**
   * The call is a repeat that was asked for. A statement of SQL says nothing itself of the attempt that it is, and is
   * one only by this.
   */
  declare(call: CallRecord, { owner, attempt, kind, permitted }: RepeatFacts): void {
    if (call.tried !== undefined || owner === undefined) return;
    call.tried = declaredAttempt(owner, attempt, kind, permitted);
    call.attempt = attempt;
    this.countBegun(call);
  }

  /** Counts the attempt, unless the operation of its request is not known yet. */
  countBegun(call: CallRecord): void {
    const request = call.scope?.request;
    if (request === undefined || request.operation !== undefined) this.count(call, request?.operation);
  }

  /** Not counted yet, because the operation of its request was not known when it began. */
  isDue(call: CallRecord): boolean {
    return call.tried !== undefined && !call.attemptCounted;
  }

  /** Counts the attempt, once. `operation` is that of the request; undefined where it has none, or there is none. */
  count(call: CallRecord, operation: string | undefined): void {
    const { tried } = call;
    if (tried === undefined || call.attemptCounted) return;
    call.attemptCounted = true;
    const { attempts } = this.#recorder.families;
    const name = operation ?? NO_OPERATION;
    this.#prepare(call.dependency, name);
    attempts.cell(call.dependency, name, tried.kind, tried.owner).add(1);
  }

  /** A rate needs the 0 before the first repeat. */
  #prepare(dependency: string, operation: string): void {
    const operations = this.#prepared.get(dependency);
    if (operations?.has(operation) === true) return;
    if (operations === undefined) this.#prepared.set(dependency, new Set([operation]));
    else operations.add(operation);
    const { attempts, repeatResults } = this.#recorder.families;
    attempts.cell(dependency, operation, 'original', 'none');
    attempts.cell(dependency, operation, 'resend', UNKNOWN);
    attempts.cell(dependency, operation, 'reexecute', UNKNOWN);
    for (const result of REPEAT_RESULTS) repeatResults.cell(dependency, result);
  }

  /** A closure of its own, so that a call made while nothing is announced pays for none. */
  #takeAnnounced(
    request: RequestRecord | undefined,
    host: string,
    method: string,
    path: string,
  ): Declaration | undefined {
    const index = this.#announced.findIndex(
      (one) => one.path === path && one.method === method && one.host === host && one.request === request,
    );
    return index < 0 ? undefined : this.#announced.splice(index, 1)[0]?.declaration;
  }
}

function attemptOf(
  request: RequestRecord | undefined,
  identity: CallIdentity,
  declaration: Declaration | undefined,
  now: number,
  asked: Asked | undefined,
): Attempt {
  if (request === undefined) return attemptOutside(declaration, now);
  request.operations ??= new Operations();
  return request.operations.begin(identity, declaration, now, asked);
}

/** The repeat of a call to this dependency that was asked for and has not been made. */
function askedOf(repeats: readonly PendingRepeat[], name: string): Asked | undefined {
  return repeats.find(({ dependency }) => dependency === name);
}

const RESULTS: Readonly<Record<CallEnding, RepeatResult>> = {
  // With a failure: an error answer.
  answered: 'failed',
  failed: 'failed',
  timed_out: 'timed_out',
  aborted: 'aborted',
};

/** Once per call: at an error head, or at the end. */
function endAttempt(call: CallRecord, failure: AttemptFailure | undefined | 'ignored', now: number): void {
  if (call.tried === undefined || call.attemptEnded) return;
  call.attemptEnded = true;
  call.scope?.request.operations?.end(call.tried, failure, now);
}

/** A call to the raced dependency, in an attempt that runs beside the original. */
function hedgeOf(call: CallRecord): Declaration | undefined {
  const race = call.scope?.mark?.race;
  if (race === undefined || race.ordinal < 2 || race.dependency !== call.dependency) return undefined;
  return { owner: 'service', attempt: race.ordinal, kind: 'hedge' };
}
