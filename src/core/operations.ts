/**
 * Which calls of one request are attempts of the same operation, without a word from the application: a call with
 * the identity of one that has failed, while none of that identity is in flight, is its next attempt. While one is
 * in flight another is one of its own (a fan-out), and after a success it is a new original. What a library says of
 * its own attempts comes before this.
 */
import type { AttemptFailure } from './attempt-failure.ts';
import type { AttemptKind, AttemptOwner, AttemptSource, RepeatReason } from './terms.ts';

/** Compared whole, so that a loop over different items is no repeat. Never exported. */
export interface CallIdentity {
  /** The dependency where it is configured, else host and port. */
  readonly origin: string;
  readonly method: string;
  /** With the query. */
  readonly path: string;
  /** Bytes of the body, and an idempotency key: they tell items apart that share a path. undefined = not known. */
  readonly size?: number | undefined;
  readonly key?: string | undefined;
}

/** What a library says of its own attempt. */
export interface Declaration {
  readonly owner: Exclude<AttemptOwner, 'none' | 'unknown'>;
  /** Ordinal by the library's count; 1 says that this is no repeat, whatever failed before. */
  readonly attempt: number;
  /** It runs beside the one before; left out where it takes its place. */
  readonly kind?: 'hedge' | undefined;
  /** Attempts that it may make in all, the original included. */
  readonly permitted?: number | undefined;
}

/** Who asked whether a call may be repeated, and how many attempts it makes at the most. */
export interface Asked {
  readonly owner: AttemptOwner | undefined;
  readonly permitted: number | undefined;
}

export interface Attempt {
  readonly kind: AttemptKind;
  readonly owner: AttemptOwner;
  /** undefined for an original. */
  readonly source: AttemptSource | undefined;
  /**
   * 1 = original. A reconnect has the ordinal of the attempt that it takes the place of: that one was never sent,
   * so the dependency sees one of the two.
   */
  readonly ordinal: number;
  /** Tries of this operation before this one, reconnects included. */
  readonly triesBefore: number;
  /** Why it ran; undefined for an original, and for a repeat whose attempt before was not seen. */
  readonly reason: RepeatReason | undefined;
  /** From the end of the attempt before until the start of this one, in ms; undefined as `reason` is. */
  readonly waitMs: number | undefined;
  /** Attempts that its owner may make in all, the original included; undefined where nobody said. */
  readonly permitted: number | undefined;
  /** undefined where there was no room to remember it. */
  readonly operation: Operation | undefined;
}

const ORIGINAL: Attempt = Object.freeze({
  kind: 'original',
  owner: 'none',
  source: undefined,
  ordinal: 1,
  triesBefore: 0,
  reason: undefined,
  waitMs: undefined,
  permitted: undefined,
  operation: undefined,
});

/**
 * Only calls in flight and calls whose last attempt has failed are remembered. As an attempt it is its own original,
 * of which nothing differs from one operation to the next: so the usual call makes one object and not two.
 */
class Operation implements Attempt {
  declare readonly kind: Attempt['kind'];
  declare readonly owner: Attempt['owner'];
  declare readonly source: Attempt['source'];
  declare readonly ordinal: number;
  declare readonly triesBefore: number;
  declare readonly reason: Attempt['reason'];
  declare readonly waitMs: Attempt['waitMs'];
  declare readonly permitted: Attempt['permitted'];
  static {
    Object.setPrototypeOf(Operation.prototype, ORIGINAL);
  }

  readonly identity: CallIdentity;
  inFlight = 0;
  /** Of the attempt that ended last, with what the next one needs of it. */
  last: { readonly attempt: Attempt; readonly failure: AttemptFailure; readonly endedAt: number } | undefined;
  /** The one that was remembered before it. */
  before: Operation | undefined;

  constructor(identity: CallIdentity, before: Operation | undefined) {
    this.identity = identity;
    this.last = undefined;
    this.before = before;
  }

  get operation(): Operation {
    return this;
  }
}

/** Identities remembered in one request. Beyond it the oldest failed one is forgotten: a repeat may go unseen. */
export const MAX_OPERATIONS = 16;

export class Operations {
  /** The head of a list: most requests have one at a time, for which an array is too much. */
  #newest: Operation | undefined;
  #size = 0;

  /** `asked`: somebody asked whether it may repeat a call to this dependency; it owns the repeat, if this is one. */
  begin(identity: CallIdentity, declaration: Declaration | undefined, now: number, asked?: Asked): Attempt {
    const found = this.#find(identity);
    const operation = found ?? this.#remember(identity);
    const attempt = attemptOf(found, operation, declaration, now, asked);
    if (operation === undefined) return attempt;
    operation.inFlight++;
    operation.last = undefined;
    return attempt;
  }

  /** `failure` is undefined for a success, and `ignored` for an end that says nothing: the loser of a race. */
  end(attempt: Attempt, failure: AttemptFailure | undefined | 'ignored', now: number): void {
    const { operation } = attempt;
    if (operation === undefined) return;
    operation.inFlight--;
    if (failure === undefined) operation.last = undefined;
    else if (failure !== 'ignored') operation.last = { attempt, failure, endedAt: now };
    if (operation.inFlight > 0 || operation.last !== undefined) return;
    this.#forget(operation);
  }

  /** Identities remembered now; at most MAX_OPERATIONS. */
  get size(): number {
    return this.#size;
  }

  #find(identity: CallIdentity): Operation | undefined {
    let operation = this.#newest;
    while (operation !== undefined && !isSame(operation.identity, identity)) operation = operation.before;
    return operation;
  }

  #remember(identity: CallIdentity): Operation | undefined {
    if (this.#size >= MAX_OPERATIONS && !this.#forgetOldest()) return undefined;
    this.#size++;
    this.#newest = new Operation(identity, this.#newest);
    return this.#newest;
  }

  #forgetOldest(): boolean {
    let oldest: Operation | undefined;
    for (let one = this.#newest; one !== undefined; one = one.before) if (one.inFlight === 0) oldest = one;
    if (oldest !== undefined) this.#forget(oldest);
    return oldest !== undefined;
  }

  #forget(operation: Operation): void {
    if (this.#newest === operation) this.#newest = operation.before;
    else {
      let after = this.#newest;
      while (after !== undefined && after.before !== operation) after = after.before;
      if (after === undefined) return;
      after.before = operation.before;
    }
    this.#size--;
    // The record of its call may live on.
    operation.before = undefined;
  }
}

/** An attempt of a call that belongs to no request: only what is declared is known. */
export function attemptOutside(declaration: Declaration | undefined, now: number): Attempt {
  return attemptOf(undefined, undefined, declaration, now);
}

/** An attempt of which nothing is known but what its owner says. */
export function declaredAttempt(
  owner: AttemptOwner,
  ordinal: number,
  kind: AttemptKind,
  permitted: number | undefined,
): Attempt {
  const before = { triesBefore: ordinal - 1, reason: undefined, waitMs: undefined, operation: undefined };
  return { kind, owner, source: 'declared', ordinal, permitted, ...before };
}

function attemptOf(
  found: Operation | undefined,
  operation: Operation | undefined,
  declaration: Declaration | undefined,
  now: number,
  asked?: Asked,
): Attempt {
  const isDetected = declaration === undefined && found?.inFlight === 0 && found.last !== undefined;
  if (!isDetected && (declaration === undefined || declaration.attempt <= 1))
    return original(operation, declaration?.permitted);
  const last = found?.last;
  const kind = declaration?.kind ?? last?.failure.next ?? 'resend';
  return {
    kind,
    owner: declaration?.owner ?? asked?.owner ?? 'unknown',
    source: isDetected && asked?.owner === undefined ? 'detected' : 'declared',
    ordinal: last === undefined ? (declaration?.attempt ?? 1) : ordinalAfter(last.attempt, kind),
    // What was seen counts before what a library counts, which begins anew where somebody repeats the library.
    triesBefore: last === undefined ? (declaration?.attempt ?? 1) - 1 : last.attempt.triesBefore + 1,
    reason: last?.failure.reason,
    waitMs: last === undefined ? undefined : now - last.endedAt,
    permitted: declaration?.permitted ?? asked?.permitted,
    operation,
  };
}

function ordinalAfter(before: Attempt, kind: AttemptKind): number {
  return kind === 'reconnect' ? before.ordinal : before.ordinal + 1;
}

function original(operation: Operation | undefined, permitted: number | undefined): Attempt {
  if (permitted === undefined) return operation ?? ORIGINAL;
  return { ...ORIGINAL, permitted, operation };
}

function isSame(a: CallIdentity, b: CallIdentity): boolean {
  return (
    a.path === b.path &&
    a.method === b.method &&
    a.origin === b.origin &&
    a.size === b.size &&
    a.key === b.key
  );
}

/** A repeat that the dependency sees as one: a reconnect takes the place of an attempt that it never saw. */
export function loadsAgain({ source, kind }: Attempt): boolean {
  return source !== undefined && kind !== 'reconnect';
}
