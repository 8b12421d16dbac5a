/**
 * The statements of pg's clients. Each is followed through the methods that pg itself calls on its query object
 * (`submit`, `handle…`), so arguments, callbacks and promises of the application stay what they are.
 */
import { currentScope, runInScope } from '../../src/current.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks, Undo } from '../adapter.ts';
import { attached } from '../shared/attached.ts';
import { type Around, type Method, wrapMethods } from '../shared/plain-wrap.ts';
import type { PgClient, PgConnections } from './pg-connection.ts';
import type { PgSpans } from './pg-spans.ts';
import { limitsOf, Statement, smallestMs } from './pg-statement.ts';

/** What pg calls on a query object, in this order; a kind of query may lack some of them. */
const QUERY_METHODS = [
  'submit',
  'handleRowDescription',
  'handleCommandComplete',
  'handleReadyForQuery',
  'handleError',
] as const;
type QueryMethod = (typeof QUERY_METHODS)[number];

interface Submittable {
  readonly submit: unknown;
  readonly text?: unknown;
}

export class PgStatements {
  /**
   * The call of a `pool.query` that had to wait for its client. Set for the client that the pool calls
   * synchronously next, which takes it: the statement goes on in that call.
   */
  waited: CallRecord | undefined;
  readonly #hooks: Hooks;
  readonly #connections: PgConnections;
  readonly #spans: PgSpans;
  readonly #statements = attached<object, Statement>();
  readonly #wrappedKinds = new WeakSet<object>();

  constructor(hooks: Hooks, connections: PgConnections, spans: PgSpans) {
    this.#hooks = hooks;
    this.#connections = connections;
    this.#spans = spans;
  }

  /** Wraps the class of the query objects that pg makes itself. */
  wrapQuery(prototype: object): Undo {
    this.#wrappedKinds.add(prototype);
    const around =
      (method: QueryMethod): Around =>
      (query, args, inner) => {
        const statement = this.#statements.get(query);
        return statement === undefined
          ? inner.apply(query, args)
          : this.#on(method, statement, query, args, inner);
      };
    return wrapMethods(
      prototype,
      Object.fromEntries(QUERY_METHODS.map((method) => [method, around(method)])),
    );
  }

  /** Around `Client.prototype.query`. */
  query(client: PgClient, args: unknown[], inner: Method): unknown {
    const hooks = this.#hooks;
    const config = args[0];
    if (isTracing(config)) return inner.apply(client, args);
    const statement = hooks.attempt(() => this.#begin(client, config));
    if (statement === undefined) return inner.apply(client, args);
    if (isSubmittable(config)) hooks.attempt(() => this.#follow(config, statement));
    let result: unknown;
    try {
      result = inner.apply(client, args);
    } catch (error) {
      hooks.attempt(() => statement.fail(error));
      throw error;
    }
    hooks.attempt(() => this.#link(client, config, statement));
    return result;
  }

  #begin(client: PgClient, config: unknown): Statement {
    const { calls } = this.#hooks;
    const now = this.#hooks.now();
    const limits = limitsOf(config, client.connectionParameters);
    const limit = smallestMs(limits);
    const { waited } = this;
    this.waited = undefined;
    if (waited !== undefined && limit !== undefined) calls.granted(waited, limit, now);
    const call = waited ?? calls.begin(this.#connections.targetOf(client), now, limit);
    const statement = new Statement(this.#hooks, client, call, now, limits);
    this.#spans.expect(call, statement);
    return statement;
  }

  /**
   * Finds the query object, now that `query` has returned: the last one of the client's queue, else the one that it
   * has sent. If that is an earlier one, pg took none, as its connection is closed or broken, and says so later.
   */
  #link(client: PgClient, config: unknown, statement: Statement): void {
    const queue = client._queryQueue ?? client.queryQueue;
    const queued = queue?.at(-1);
    const active = '_activeQuery' in client ? client._activeQuery : client.activeQuery;
    const query = queued ?? client._sentQueryQueue?.at(-1) ?? active ?? undefined;
    const known = query === undefined ? undefined : this.#statements.get(query);
    if (query === undefined || (known !== undefined && known !== statement)) {
      if (!isSubmittable(config)) statement.fail(undefined);
      return;
    }
    this.#statements.set(query, statement);
    statement.describe(query);
    // Within the callback of a connect pg has queued it for the moment, and sends it next.
    const isNext = !active && queue?.length === 1 && client._connected !== false;
    if (query !== queued || isNext) statement.sent(statement.askedAt);
    else statement.queued(client._connected === false ? 'connect' : 'pool_wait');
  }

  /** A query object of the application. One of a class of its own, such as a cursor, has its methods replaced. */
  #follow(query: Submittable, statement: Statement): void {
    this.#statements.set(query, statement);
    if (this.#wrappedKinds.has(Object.getPrototypeOf(query))) return;
    for (const method of QUERY_METHODS) {
      const inner: unknown = Reflect.get(query, method);
      if (typeof inner !== 'function') continue;
      const value = (...args: unknown[]): unknown =>
        // Checked to be a function just above.
        this.#on(method, statement, query, args, inner as Method);
      Object.defineProperty(query, method, { value, writable: true, configurable: true });
    }
  }

  #on(method: QueryMethod, statement: Statement, query: object, args: unknown[], inner: Method): unknown {
    const hooks = this.#hooks;
    switch (method) {
      case 'submit':
        hooks.attempt(() => statement.sent(hooks.now()));
        return inner.apply(query, args);
      case 'handleRowDescription':
        hooks.attempt(() => statement.described());
        return inner.apply(query, args);
      case 'handleCommandComplete':
        hooks.attempt(() => statement.answering());
        return inner.apply(query, args);
      case 'handleReadyForQuery':
        hooks.attempt(() => statement.complete());
        break;
      case 'handleError':
        hooks.attempt(() => statement.fail(args[0]));
    }
    // These two tell the application, and come from the socket, which belongs to no request.
    const { scope } = statement.call;
    if (currentScope() === scope) return inner.apply(query, args);
    return runInScope(scope, () => inner.apply(query, args));
  }
}

function isSubmittable(config: unknown): config is Submittable {
  return (
    typeof config === 'object' && config !== null && 'submit' in config && typeof config.submit === 'function'
  );
}

/** instrumentation-pg can be told to set the trace context on the connection before each statement, by one of its own. */
function isTracing(config: unknown): boolean {
  if (typeof config !== 'object' || config === null || !('text' in config)) return false;
  return typeof config.text === 'string' && config.text.startsWith("SET application_name = '00-");
}
