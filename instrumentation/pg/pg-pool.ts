/**
 * Connections of pg-pool: who waits for one, how long, and for what. A `pool.query` is one call, its wait included.
 * A `pool.connect` that has to wait is a call of its own, which asks for no work: the wait is in the ledger once,
 * and the statements that follow begin with what it has left them. One that finds an idle client is no call.
 */
import { currentScope, runInScope } from '../../src/current.ts';
import type { Scope } from '../../src/records.ts';
import { LabelSet } from '../../src/telemetry/series.ts';
import type { Hooks, Undo } from '../adapter.ts';
import { isClaimed, type Method, wrapMethods } from '../shared/plain-wrap.ts';
import { afterwards, type PgConnections } from './pg-connection.ts';
import { type PgPool, type PoolOptions, type PoolQuery, type PoolSeries, PoolWait } from './pg-pool-wait.ts';
import type { PgSpans } from './pg-spans.ts';
import type { PgStatements } from './pg-statements.ts';

/** What is known when a connection is asked for: one is idle, one will be opened, or neither can be now. */
type Outlook = 'idle' | 'open' | 'wait';

export class PgPools {
  readonly #hooks: Hooks;
  readonly #connections: PgConnections;
  readonly #statements: PgStatements;
  readonly #spans: PgSpans;
  readonly #names: LabelSet;
  readonly #series = new WeakMap<object, PoolSeries>();
  readonly #pending = new WeakMap<object, PoolWait>();
  readonly #uses = new WeakMap<object, { takenAt: number | undefined }>();
  /** The `pool.query` that is just calling `pool.connect`. */
  #query: PoolQuery | undefined;
  /** The wait whose `pool.connect` is just running. */
  #asking: PoolWait | undefined;

  constructor(hooks: Hooks, connections: PgConnections, statements: PgStatements, spans: PgSpans) {
    this.#spans = spans;
    this.#hooks = hooks;
    this.#connections = connections;
    this.#statements = statements;
    const { config, families } = hooks.recorder;
    // A pool is one of a dependency's, so the same bound holds.
    this.#names = new LabelSet(config.labels.dependencies, families.labelOverflow.cell('dependency'), []);
  }

  wrapPool(prototype: object): Undo {
    return wrapMethods(prototype, {
      query: (pool, args, inner) => this.#onQuery(pool, args, inner),
      connect: (pool, args, inner) => this.#onConnect(pool, args, inner),
      newClient: (pool, args, inner) => this.#onNewClient(pool, args, inner),
      _release: (pool, args, inner) => this.#onRelease(pool, args, inner),
    });
  }

  /** `pool.query` calls `pool.connect` itself, synchronously and once, unless its arguments are wrong. */
  #onQuery(pool: object, args: unknown[], inner: Method): unknown {
    this.#query = { config: args[0] };
    try {
      return inner.apply(pool, args);
    } finally {
      this.#query = undefined;
    }
  }

  #onConnect(pool: PgPool, args: unknown[], inner: Method): unknown {
    const query = this.#query;
    this.#query = undefined;
    const hooks = this.#hooks;
    const outlook = outlookOf(pool);
    const wait = hooks.attempt(() => this.#ask(pool, query, outlook));
    if (wait === undefined) return inner.apply(pool, args);
    const [callback] = args;
    const hasCallback = typeof callback === 'function';
    const settle = hooks.guard((error: unknown, client: unknown) => this.#settle(wait, error, client));
    this.#asking = wait;
    let result: unknown;
    try {
      result = hasCallback ? inner.call(pool, this.#bind(wait, callback, settle)) : inner.apply(pool, args);
    } catch (error) {
      settle(error, undefined);
      throw error;
    } finally {
      this.#asking = undefined;
    }
    const pending = outlook === 'wait' ? pool._pendingQueue?.at(-1) : undefined;
    if (pending !== undefined) this.#pending.set(pending, wait);
    if (hasCallback) return result;
    return afterwards(
      result,
      (client) => settle(undefined, client),
      (error) => settle(error, undefined),
    );
  }

  #ask(pool: PgPool, query: PoolQuery | undefined, outlook: Outlook): PoolWait | undefined {
    const series = this.#seriesOf(pool);
    if (pool.ending || !series.isFollowed) return undefined;
    const wait = new PoolWait(this.#hooks, this.#connections, this.#spans, pool, series, query);
    if (outlook === 'wait') {
      const target = series.target ?? this.#connections.targetOf(pool._clients?.[0] ?? {});
      wait.begin(target).enter('pool_wait', wait.askedAt);
    } else if (outlook === 'open' && series.target !== undefined) {
      wait.begin(series.target);
    }
    return wait;
  }

  /** A waiter is called in the course of whoever has released its client: it gets back its own. */
  #bind(
    wait: PoolWait,
    callback: CallableFunction,
    settle: (error: unknown, client: unknown) => void,
  ): Method {
    const statements = this.#statements;
    const hooks = this.#hooks;
    return function (this: unknown, ...results: unknown[]): unknown {
      const [error, client] = results;
      settle(error, client);
      if (error || wait.query === undefined || wait.call === undefined) {
        return resume(wait.scope, callback, this, results);
      }
      const { call } = wait;
      statements.waited = call;
      try {
        return resume(wait.scope, callback, this, results);
      } finally {
        if (statements.waited === call) {
          statements.waited = undefined;
          hooks.attempt(() => hooks.calls.end(call, 'failed', hooks.now()));
        }
      }
    };
  }

  #settle(wait: PoolWait, error: unknown, client: unknown): void {
    const now = this.#hooks.now();
    wait.settle(error, now);
    if (error || typeof client !== 'object' || client === null) return;
    const use = this.#uses.get(client);
    if (use === undefined) this.#uses.set(client, { takenAt: now });
    else use.takenAt = now;
  }

  /** Runs within `connect`, or when a client is gone and the next waiter gets a new one. */
  #onNewClient(pool: object, args: unknown[], inner: Method): unknown {
    const [pending] = args;
    const isKnown = typeof pending === 'object' && pending !== null;
    this.#connections.opening = this.#asking ?? (isKnown ? this.#pending.get(pending) : undefined);
    this.#asking = undefined;
    try {
      return inner.apply(pool, args);
    } finally {
      this.#connections.opening = undefined;
    }
  }

  #onRelease(pool: object, args: unknown[], inner: Method): unknown {
    this.#hooks.attempt(() => {
      const [client] = args;
      if (typeof client !== 'object' || client === null) return;
      const use = this.#uses.get(client);
      if (use?.takenAt === undefined) return;
      this.#seriesOf(pool).use.recordMs(this.#hooks.now() - use.takenAt);
      use.takenAt = undefined;
    });
    return inner.apply(pool, args);
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

/** Most often it is the right one already, and entering one costs more than all the rest here. */
function resume(
  scope: Scope | undefined,
  callback: CallableFunction,
  self: unknown,
  args: unknown[],
): unknown {
  if (currentScope() === scope) return Reflect.apply(callback, self, args);
  return runInScope(scope, () => Reflect.apply(callback, self, args));
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
