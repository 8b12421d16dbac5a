/**
 * Which request of undici waits for which connection. Its channels tell that a client connects, but not for whom;
 * that becomes certain only when the request is sent. Until then it is inferred: a client connects for the request
 * that it was just given, or that it has been holding longest.
 */
import { Socket } from 'node:net';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import { attached } from '../shared/attached.ts';
import { callLag } from '../shared/call-lag.ts';
import {
  type ConnectHistory,
  type ConnectWatch,
  enterRequest,
  INSTANT_MS,
  replay,
  waitsFrom,
  watchNewConnect,
} from '../shared/connect-watch.ts';

/** A request that has not been sent. */
export interface Waiter {
  readonly call: CallRecord;
  readonly origin: string;
  /** Its body is read piece by piece: then its client begins to connect a moment later, not in the same step. */
  readonly isDeferred: boolean;
  /** It was queued by a pool before its client got it. */
  readonly wasPooled: boolean;
  /** What it is taken to wait for. */
  attempt: Attempt | undefined;
}

/** A client that is connecting. */
interface Attempt {
  readonly connector: unknown;
  readonly startedAt: number;
  /** Since when its waiter has waited for it. */
  readonly from: number;
  waiter: Waiter | undefined;
  /** undefined for a connector of the application's own that makes its socket later, or none of Node's. */
  watch: ConnectWatch | undefined;
}

/** What is known of a connection of undici. */
interface Use {
  readonly history: ConnectHistory | undefined;
  /** When it was established, as undici sees it. */
  readonly readyAt: number;
  /** When a request on it was last over; undefined until its first one is. */
  freeAt: number | undefined;
}

/** Attempts kept: a client that is destroyed while it connects does not say how that ended. */
const MAX_ATTEMPTS = 256;

export class UndiciConnects {
  readonly #hooks: Hooks;
  /** Requests that were not sent at once, in order, by origin. The newest is kept apart until another comes. */
  readonly #waiting = new Map<string, Set<Waiter>>();
  #newest: Waiter | undefined;
  readonly #attempts = new Set<Attempt>();
  /** Begun in this step: the socket that is made next is its own. */
  #starting: Attempt | undefined;
  readonly #uses = attached<object, Use>();
  #lastError: unknown;

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
  }

  add(waiter: Waiter): void {
    const before = this.#newest;
    this.#newest = waiter;
    if (before === undefined) return;
    const waiting = this.#waiting.get(before.origin);
    if (waiting === undefined) this.#waiting.set(before.origin, new Set([before]));
    else waiting.add(before);
  }

  /** Sent, or given up. */
  remove(waiter: Waiter): void {
    const { attempt } = waiter;
    if (attempt?.waiter === waiter) attempt.waiter = undefined;
    attempt?.watch?.unfollow(waiter.call);
    if (this.#newest === waiter) {
      this.#newest = undefined;
      return;
    }
    const waiting = this.#waiting.get(waiter.origin);
    waiting?.delete(waiter);
    if (waiting?.size === 0) this.#waiting.delete(waiter.origin);
  }

  beforeConnect(origin: string, connector: unknown): void {
    const waiter = this.#nextFor(origin);
    const now = this.#hooks.now();
    // A wait for a slot of a pool stays what it was.
    const from = waiter === undefined || waiter.wasPooled ? now : waitsFrom(waiter.call, now);
    const attempt: Attempt = { connector, startedAt: now, from, waiter, watch: undefined };
    this.#add(attempt);
    this.#starting = attempt;
    if (waiter === undefined) return;
    waiter.attempt = attempt;
    waiter.call.enter('connect', from);
  }

  /** Any client socket of the process; undici makes its own in the step in which it begins to connect. */
  socketMade(socket: unknown): void {
    const attempt = this.#starting;
    this.#starting = undefined;
    if (attempt === undefined || !(socket instanceof Socket)) return;
    const watch = watchNewConnect(this.#hooks, socket, attempt.startedAt);
    attempt.watch = watch;
    // Whether a name has to be looked up is known once the socket has been told where to connect to.
    queueMicrotask(
      this.#hooks.guard(() => {
        if (attempt.waiter !== undefined) watch.follow(attempt.waiter.call, attempt.from);
      }),
    );
  }

  connected(connector: unknown, socket: object): void {
    const attempt = this.#finish(connector, (watch) => watch.socket === socket);
    this.#uses.set(socket, {
      history: attempt?.watch?.history,
      readyAt: this.#hooks.now(),
      freeAt: undefined,
    });
  }

  connectFailed(connector: unknown, error: unknown): void {
    this.#lastError = error;
    const attempt = this.#finish(connector, (watch) => watch.hasFailed);
    if (attempt?.waiter !== undefined) attempt.waiter.attempt = undefined;
  }

  /** Whether this is the error of the last attempt that failed, which its requests get as well. */
  hasFailedWith(error: unknown): boolean {
    return error !== undefined && error === this.#lastError;
  }

  /** The request goes out on this connection: now it is certain what it waited for. */
  sent(waiter: Waiter, socket: object, now: number): void {
    const { call, wasPooled, attempt } = waiter;
    const use = this.#uses.get(socket);
    this.remove(waiter);
    const isMistaken = attempt !== undefined && attempt.watch?.history !== use?.history;
    const hasWaitedForIt = use !== undefined && use.freeAt === undefined && use.readyAt >= call.startedAt;
    if (
      hasWaitedForIt &&
      !wasPooled &&
      use.history !== undefined &&
      use.history !== attempt?.watch?.history
    ) {
      replay(use.history, call);
    }
    if (hasWaitedForIt) {
      call.enter('request', now, callLag(this.#hooks, call, now));
      return;
    }
    const hasQueued = wasPooled || (use?.freeAt !== undefined && use.freeAt >= call.startedAt);
    if (!hasQueued || now - call.startedAt < INSTANT_MS) {
      enterRequest(call, now);
      return;
    }
    if (isMistaken) call.enter('pool_wait', call.startedAt);
    call.enter('request', now, callLag(this.#hooks, call, now));
  }

  /** The request that went out on this connection is over. */
  freed(socket: object, now: number): void {
    const use = this.#uses.get(socket);
    if (use !== undefined) use.freeAt = now;
  }

  #nextFor(origin: string): Waiter | undefined {
    const newest = this.#newest?.origin === origin && isFree(this.#newest) ? this.#newest : undefined;
    if (newest !== undefined && !newest.isDeferred) return newest;
    let oldest: Waiter | undefined;
    for (const waiter of this.#waiting.get(origin) ?? []) {
      if (!isFree(waiter)) continue;
      if (waiter.isDeferred) return waiter;
      oldest ??= waiter;
    }
    return newest ?? oldest;
  }

  #add(attempt: Attempt): void {
    if (this.#attempts.size >= MAX_ATTEMPTS) {
      for (const oldest of this.#attempts) {
        this.#attempts.delete(oldest);
        break;
      }
    }
    this.#attempts.add(attempt);
  }

  /** One connector serves all clients of a pool, so it takes the socket to tell whose attempt is over. */
  #finish(connector: unknown, isIt: (watch: ConnectWatch) => boolean): Attempt | undefined {
    let found: Attempt | undefined;
    for (const attempt of this.#attempts) {
      if (attempt.connector !== connector) continue;
      if (attempt.watch === undefined) found ??= attempt;
      else if (isIt(attempt.watch)) {
        found = attempt;
        break;
      }
    }
    if (found !== undefined) this.#attempts.delete(found);
    return found;
  }
}

function isFree(waiter: Waiter): boolean {
  return waiter.attempt === undefined && waiter.call.endedAt === undefined;
}
