/** The wait for a connection of pg-pool, as part of a call and in the standard metrics of pools. */
import type { Target } from '../../src/call-recorder.ts';
import { currentScope } from '../../src/current.ts';
import type { CallRecord, Scope } from '../../src/records.ts';
import type { HistogramCell, NumberCell } from '../../src/telemetry/metrics.ts';
import type { Hooks } from '../adapter.ts';
import type { Attached } from '../shared/attached.ts';
import { callLag } from '../shared/call-lag.ts';
import { afterwards, callIn, type Opening, type PgClient, type PgConnections } from './pg-connection.ts';
import { connectError, isConnectTimeout, readFault } from './pg-ending.ts';
import type { PgSpans, SpanSubject } from './pg-spans.ts';
import { type LimitSource, limitMs, limitsOf, smallestMs } from './pg-statement.ts';
import type { Asker, PgStatements } from './pg-statements.ts';

export interface PoolOptions extends LimitSource {
  readonly host?: unknown;
  readonly port?: unknown;
  readonly database?: unknown;
  readonly max?: unknown;
  readonly connectionTimeoutMillis?: unknown;
}

export interface PgPool {
  readonly options?: PoolOptions;
  readonly Client?: { readonly prototype?: unknown };
  readonly connect?: unknown;
  readonly ending?: unknown;
  readonly idleCount?: number;
  readonly waitingCount?: number;
  readonly totalCount?: number;
  readonly _clients?: readonly PgClient[];
  readonly _pendingQueue?: readonly object[];
}

export interface PoolSeries {
  readonly wait: HistogramCell;
  readonly timeouts: NumberCell;
  readonly create: HistogramCell;
  readonly use: HistogramCell;
  /** Known from its first connection on: a pool's options may leave the host to the environment. */
  target: Target | undefined;
  /** Its clients are of a class that is wrapped: others (pg-native) would never take what a pool hands them. */
  readonly isFollowed: boolean;
}

/** A `pool.query` that asks; its first argument may be anything, hence an object around it. */
export interface PoolQuery {
  readonly config: unknown;
  /** Nothing of the application runs when it is answered: see `Asker`. Known once `query` has returned. */
  isPromised: boolean;
}

/** What all asks have in common. */
export interface PoolParts {
  readonly hooks: Hooks;
  readonly connections: PgConnections;
  readonly statements: PgStatements;
  readonly spans: PgSpans;
  /** When a client was taken, ms; undefined while nobody has it. */
  readonly takenAt: Attached<object, number>;
}

/** One ask for a connection of a pool, until there is one or none is to be had. */
export class PoolWait implements Opening, SpanSubject, Asker {
  readonly scope: Scope | undefined = currentScope();
  readonly askedAt: number;
  /** The `pool.query` that asks. */
  readonly query: PoolQuery | undefined;
  call: CallRecord | undefined;
  openedAt: number | undefined;
  readonly #parts: PoolParts;
  readonly #options: PoolOptions | undefined;
  readonly #series: PoolSeries;
  #openingAt = 0;

  constructor(parts: PoolParts, pool: PgPool, series: PoolSeries, query: PoolQuery | undefined) {
    this.#parts = parts;
    this.#options = pool.options;
    this.#series = series;
    this.query = query;
    this.askedAt = parts.hooks.now();
  }

  get spanName(): 'pg-pool.connect' {
    return 'pg-pool.connect';
  }

  get isToldLate(): boolean {
    return true;
  }

  get isPromised(): boolean {
    return this.query?.isPromised === true;
  }

  /** The pool has no client to give. */
  begin(target: Target): CallRecord {
    const waitMs = limitMs(this.#options?.connectionTimeoutMillis);
    const workMs = this.query && smallestMs(limitsOf(this.query.config, this.#options));
    const limit = this.query === undefined ? waitMs : sumMs(waitMs, workMs);
    const { hooks, spans } = this.#parts;
    const call = hooks.calls.begin(target, this.askedAt, limit);
    if (waitMs !== undefined) hooks.calls.granted(call, waitMs, this.askedAt);
    call.teaches = this.query !== undefined;
    this.call = call;
    spans.expect(call, this);
    return call;
  }

  started(client: PgClient, at: number): CallRecord {
    this.#openingAt = at;
    const target = this.#parts.connections.targetOf(client);
    this.#series.target = target;
    return this.call ?? this.begin(target);
  }

  opened(at: number): void {
    this.openedAt = at;
    this.#series.create.recordMs(at - this.#openingAt);
  }

  /** The promise in place of the one that `connect` has given. */
  settledBy(result: unknown): unknown {
    return afterwards(
      result,
      (client) => this.settle(undefined, client),
      (error) => this.settle(error, undefined),
    );
  }

  /** The wait is over: with a client, or with an error. */
  settle(error: unknown, client: unknown): void {
    const { hooks, takenAt } = this.#parts;
    try {
      const now = hooks.now();
      if (!error) this.#series.wait.recordMs(now - this.askedAt);
      else if (isConnectTimeout(error)) this.#series.timeouts.add(1);
      this.#end(error, now);
      if (!error && typeof client === 'object' && client !== null) takenAt.set(client, now);
    } catch (internal) {
      hooks.report(internal);
    }
  }

  /** Calls the asker back, in its own scope: it is whoever releases a client that calls the next waiter. */
  callBack(callback: CallableFunction, self: unknown, results: unknown[]): unknown {
    this.settle(results[0], results[1]);
    if (results[0] || this.query === undefined) return callIn(this.scope, callback, self, results);
    const { statements } = this.#parts;
    statements.asker = this;
    try {
      return callIn(this.scope, callback, self, results);
    } finally {
      if (statements.asker === this) {
        statements.asker = undefined;
        this.#leave();
      }
    }
  }

  /** The span of a wait that a statement follows ends with the wait; the call has the statement's span next. */
  spanEnds(error: unknown): void {
    if (!error && this.query !== undefined) return;
    const now = this.#parts.hooks.now();
    const limit = limitMs(this.#options?.connectionTimeoutMillis);
    this.#end(connectError(error, this.askedAt, limit, now), now);
  }

  /** It got its client, and asked nothing of it. */
  #leave(): void {
    const { hooks } = this.#parts;
    try {
      if (this.call !== undefined) hooks.calls.end(this.call, 'failed', hooks.now());
    } catch (error) {
      hooks.report(error);
    }
  }

  #end(error: unknown, now: number): void {
    const { call } = this;
    const { hooks } = this.#parts;
    if (call === undefined || call.endedAt !== undefined) return;
    // The end of a connect was noticed at the socket, a client given back was not.
    const lagMs = this.openedAt === undefined ? 0 : callLag(hooks, call, now);
    if (!error && this.query !== undefined) {
      call.enter('db_execution', now, lagMs);
      return;
    }
    const ending = error ? readFault(error, { connecting: true, limitReached: false }).ending : 'answered';
    if (ending === 'timed_out') {
      call.ownTimeoutMs = limitMs(this.#options?.connectionTimeoutMillis) ?? call.ownTimeoutMs;
    }
    hooks.calls.end(call, ending, now, lagMs);
  }
}

/** One limit ends the wait, the other the statement: together they bound the call, one of them alone does not. */
function sumMs(waitMs: number | undefined, workMs: number | undefined): number | undefined {
  return waitMs === undefined || workMs === undefined ? undefined : waitMs + workMs;
}
