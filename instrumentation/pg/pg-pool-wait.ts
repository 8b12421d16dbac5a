/** The wait for a connection of pg-pool, as part of a call and in the standard metrics of pools. */
import type { Target } from '../../src/call-recorder.ts';
import { currentScope } from '../../src/current.ts';
import type { CallRecord, Scope } from '../../src/records.ts';
import type { HistogramCell, NumberCell } from '../../src/telemetry/metrics.ts';
import type { Hooks } from '../adapter.ts';
import type { Opening, PgClient, PgConnections } from './pg-connection.ts';
import { connectError, isConnectTimeout, readFault } from './pg-ending.ts';
import type { PgSpans, SpanSubject } from './pg-spans.ts';
import { type LimitSource, limitMs, limitsOf, smallestMs } from './pg-statement.ts';

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
}

/** One ask for a connection of a pool, until there is one or none is to be had. */
export class PoolWait implements Opening, SpanSubject {
  readonly spanName = 'pg-pool.connect';
  readonly isToldLate = true;
  readonly scope: Scope | undefined = currentScope();
  readonly askedAt: number;
  /** The config of the `pool.query` that asks, in an object of its own as it may be anything. */
  readonly query: PoolQuery | undefined;
  call: CallRecord | undefined;
  openedAt: number | undefined;
  readonly #hooks: Hooks;
  readonly #connections: PgConnections;
  readonly #spans: PgSpans;
  readonly #options: PoolOptions | undefined;
  readonly #series: PoolSeries;
  #openingAt = 0;

  constructor(
    hooks: Hooks,
    connections: PgConnections,
    spans: PgSpans,
    pool: PgPool,
    series: PoolSeries,
    query: PoolQuery | undefined,
  ) {
    this.#hooks = hooks;
    this.#connections = connections;
    this.#spans = spans;
    this.#options = pool.options;
    this.#series = series;
    this.query = query;
    this.askedAt = hooks.now();
  }

  /** The pool has no client to give. */
  begin(target: Target): CallRecord {
    const waitMs = limitMs(this.#options?.connectionTimeoutMillis);
    const workMs = this.query && smallestMs(limitsOf(this.query.config, this.#options));
    const limit = this.query === undefined ? waitMs : sumMs(waitMs, workMs);
    const call = this.#hooks.calls.begin(target, this.askedAt, limit);
    if (waitMs !== undefined) this.#hooks.calls.granted(call, waitMs, this.askedAt);
    call.teaches = this.query !== undefined;
    this.call = call;
    this.#spans.expect(call, this);
    return call;
  }

  started(client: PgClient, at: number): CallRecord {
    this.#openingAt = at;
    const target = this.#connections.targetOf(client);
    this.#series.target = target;
    return this.call ?? this.begin(target);
  }

  opened(at: number): void {
    this.openedAt = at;
    this.#series.create.recordMs(at - this.#openingAt);
  }

  /** The wait is over: with a client, or with an error. */
  settle(error: unknown, now: number): void {
    if (!error) this.#series.wait.recordMs(now - this.askedAt);
    else if (isConnectTimeout(error)) this.#series.timeouts.add(1);
    this.#end(error, now);
  }

  /** The span of a wait that a statement follows ends with the wait; the call has the statement's span next. */
  spanEnds(error: unknown): void {
    if (!error && this.query !== undefined) return;
    const now = this.#hooks.now();
    const limit = limitMs(this.#options?.connectionTimeoutMillis);
    this.#end(connectError(error, this.askedAt, limit, now), now);
  }

  #end(error: unknown, now: number): void {
    const { call } = this;
    if (call === undefined || call.endedAt !== undefined) return;
    // The end of a connect was noticed at the socket, a client given back was not.
    const lagMs = this.openedAt === undefined ? 0 : this.#hooks.recorder.clock.waitMs(now);
    if (!error && this.query !== undefined) {
      call.enter('db_execution', now, lagMs);
      return;
    }
    const ending = error ? readFault(error, { connecting: true, limitReached: false }).ending : 'answered';
    if (ending === 'timed_out') {
      call.ownTimeoutMs = limitMs(this.#options?.connectionTimeoutMillis) ?? call.ownTimeoutMs;
    }
    this.#hooks.calls.end(call, ending, now, lagMs);
  }
}

/** One limit ends the wait, the other the statement: together they bound the call, one of them alone does not. */
function sumMs(waitMs: number | undefined, workMs: number | undefined): number | undefined {
  return waitMs === undefined || workMs === undefined ? undefined : waitMs + workMs;
}
