/**
 * Connections of pg-pool: who waits for one, how long, and for what. A `pool.query` is one call, its wait included.
 * A `pool.connect` that has to wait is a call of its own, which asks for no work: the wait is in the ledger once,
 * and the statements that follow begin with what it has left them. One that finds an idle client is no call.
 */
import { types } from 'node:util';
import { LabelSet } from '../../src/telemetry/series.ts';
import type { Hooks, Undo } from '../adapter.ts';
import { attached } from '../shared/attached.ts';
import { isClaimed, type Method, wrapMethods } from '../shared/plain-wrap.ts';
import { memberOf } from '../shared/wrapped-module.ts';
import type { PgConnections } from './pg-connection.ts';
import {
  type PgPool,
  type PoolOptions,
  type PoolParts,
  type PoolQuery,
  type PoolSeries,
  PoolWait,
} from './pg-pool-wait.ts';
import type { PgSpans } from './pg-spans.ts';
import type { PgStatements } from './pg-statements.ts';

/** What is known when a connection is asked for: one is idle, one will be opened, or neither can be now. */
type Outlook = 'idle' | 'open' | 'wait';

export class PgPools {
  readonly #hooks: Hooks;
  readonly #parts: PoolParts;
  readonly #names: LabelSet;
  readonly #series = attached<object, PoolSeries>();
  readonly #pending = attached<object, PoolWait>();
  /** The wrapped `connect` of every class of pools. */
  readonly #connects = new Set<unknown>();
  /** The `pool.query` that is just calling `pool.connect`. */
  #query: PoolQuery | undefined;
  /** The wait whose `pool.connect` is just running. */
  #asking: PoolWait | undefined;

  constructor(hooks: Hooks, connections: PgConnections, statements: PgStatements, spans: PgSpans) {
    this.#hooks = hooks;
    this.#parts = { hooks, connections, statements, spans, takenAt: attached<object, number>() };
    const { config, families } = hooks.recorder;
    // A pool is one of a dependency's, so the same bound holds.
    this.#names = new LabelSet(config.labels.dependencies, families.labelOverflow.cell('dependency'), []);
  }

  wrapPool(prototype: object): Undo {
    const undo = wrapMethods(prototype, {
      around: {
        query: (pool, args, inner) => this.#onQuery(pool, args, inner),
        connect: (pool, args, inner) => this.#onConnect(pool, args, inner),
        newClient: (pool, args, inner) => this.#onNewClient(pool, args, inner),
      },
      before: { _release: (pool, client) => this.#released(pool, client) },
    });
    this.#connects.add(memberOf(prototype, 'connect'));
    return undo;
  }

  /** `pool.query` calls `pool.connect` itself, synchronously and once, unless its arguments are wrong. */
  #onQuery(pool: PgPool, args: unknown[], inner: Method): unknown {
    const query: PoolQuery = { config: args[0], isPromised: false };
    this.#query = query;
    try {
      const result = inner.apply(pool, args);
      // With a callback there is none. A promise of another library runs what waits for it where it is settled, and
      // a `connect` of the application may ask for more than pg-pool does.
      query.isPromised = types.isPromise(result) && this.#connects.has(pool.connect);
      return result;
    } finally {
      this.#query = undefined;
    }
  }

  #onConnect(pool: PgPool, args: unknown[], inner: Method): unknown {
    const query = this.#query;
    this.#query = undefined;
    const outlook = outlookOf(pool);
    const wait = this.#ask(pool, query, outlook);
    if (wait === undefined) return inner.apply(pool, args);
    const callback = args[0];
    const hasCallback = typeof callback === 'function';
    this.#asking = wait;
    let result: unknown;
    try {
      result = hasCallback ? inner.call(pool, bind(wait, callback)) : inner.apply(pool, args);
    } catch (error) {
      wait.settle(error, undefined);
      throw error;
    } finally {
      this.#asking = undefined;
    }
    const pending = outlook === 'wait' ? pool._pendingQueue?.at(-1) : undefined;
    if (pending !== undefined) this.#pending.set(pending, wait);
    return hasCallback ? result : wait.settledBy(result);
  }

  #ask(pool: PgPool, query: PoolQuery | undefined, outlook: Outlook): PoolWait | undefined {
    try {
      const series = this.#seriesOf(pool);
      if (pool.ending || !series.isFollowed) return undefined;
      const wait = new PoolWait(this.#parts, pool, series, query);
      if (outlook === 'wait') {
        const target = series.target ?? this.#parts.connections.targetOf(pool._clients?.[0] ?? {});
        wait.begin(target).enter('pool_wait', wait.askedAt);
      } else if (outlook === 'open' && series.target !== undefined) {
        wait.begin(series.target);
      }
      return wait;
    } catch (error) {
      this.#hooks.report(error);
      return undefined;
    }
  }

  /** Runs within `connect`, or when a client is gone and the next waiter gets a new one. */
  #onNewClient(pool: object, args: unknown[], inner: Method): unknown {
    const [pending] = args;
    const isKnown = typeof pending === 'object' && pending !== null;
    const { connections } = this.#parts;
    connections.opening = this.#asking ?? (isKnown ? this.#pending.get(pending) : undefined);
    this.#asking = undefined;
    try {
      return inner.apply(pool, args);
    } finally {
      connections.opening = undefined;
    }
  }

  #released(pool: object, client: unknown): void {
    const { hooks, takenAt } = this.#parts;
    try {
      if (typeof client !== 'object' || client === null) return;
      const at = takenAt.get(client);
      if (at === undefined) return;
      this.#seriesOf(pool).use.recordMs(hooks.now() - at);
      takenAt.set(client, undefined);
    } catch (error) {
      hooks.report(error);
    }
  }

  #seriesOf(pool: PgPool): PoolSeries {
    const known = this.#series.get(pool);
    if (known !== undefined) return known;
    const { poolWait, poolTimeouts, poolCreate, poolUse } = this.#hooks.recorder.families;
    const name = this.#names.fold(poolName(pool.options));
    const series: PoolSeries = {
      wait: poolWait.cell(name),
      timeouts: poolTimeouts.cell(name),
      create: poolCreate.cell(name),
      use: poolUse.cell(name),
      target: undefined,
      isFollowed: isClaimed(pool.Client?.prototype),
    };
    this.#series.set(pool, series);
    return series;
  }
}

function bind(wait: PoolWait, callback: CallableFunction): Method {
  return function (this: unknown, ...results: unknown[]): unknown {
    return wait.callBack(callback, this, results);
  };
}

function outlookOf(pool: PgPool): Outlook {
  const { idleCount = 0, waitingCount = 0, totalCount = 0 } = pool;
  if (idleCount > waitingCount) return 'idle';
  return idleCount === 0 && totalCount < Number(pool.options?.max) ? 'open' : 'wait';
}

/** As instrumentation-pg 0.77 names a pool, so that the series of both join. */
function poolName(options: PoolOptions | undefined): string {
  const part = (value: unknown, missing: string) => (value ? String(value) : missing);
  const host = part(options?.host, 'unknown_host');
  const port = part(options?.port, 'unknown_port');
  return `${host}:${port}/${part(options?.database, 'unknown_database')}`.trim();
}
