/**
 * The statements of pg's clients. Each is followed through the methods that pg itself calls on its query object
 * (`submit`, `handle…`), so arguments, callbacks and promises of the application stay what they are.
 */
import type { CallRecord } from '../../src/records.ts';
import type { Hooks, Undo } from '../adapter.ts';
import { attached } from '../shared/attached.ts';
import { type Around, type Before, type Method, wrapMethods } from '../shared/plain-wrap.ts';
import { callIn, type PgClient, type PgConnections } from './pg-connection.ts';
import type { PgSpans } from './pg-spans.ts';
import { limitsOf, Statement, smallestMs } from './pg-statement.ts';

/** What pg calls on a query object, in this order; a kind of query may lack some of them. */
const STEPS = ['submit', 'handleDataRow', 'handleCommandComplete'] as const;
type Step = (typeof STEPS)[number];
/** These tell the application. */
const ENDS = ['handleReadyForQuery', 'handleError'] as const;
type End = (typeof ENDS)[number];

interface Submittable {
  readonly submit: unknown;
  readonly text?: unknown;
}

/** A `pool.query` that has its client. */
export interface Asker {
  /** Its call, if it had to wait for the client: the statement goes on in that one. */
  readonly call: CallRecord | undefined;
  /** It gave a promise, and pg-pool's own callback settles it. */
  readonly isPromised: boolean;
}

export class PgStatements {
  /** Set for the client that the pool calls synchronously next, which takes it. */
  asker: Asker | undefined;
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
    const end =
      (method: End): Around =>
      (query, args, inner) => {
        const statement = this.#statements.get(query);
        return statement === undefined
          ? inner.apply(query, args)
          : this.#end(method, statement, query, args, inner);
      };
    const step =
      (method: Step): Before =>
      (query) => {
        const statement = this.#statements.get(query);
        if (statement !== undefined) this.#step(method, statement);
      };
    return wrapMethods(prototype, {
      around: Object.fromEntries(ENDS.map((method) => [method, end(method)])),
      before: Object.fromEntries(STEPS.map((method) => [method, step(method)])),
    });
  }

  /** Around `Client.prototype.query`. */
  query(client: PgClient, args: unknown[], inner: Method): unknown {
    const config = args[0];
    if (isTracing(config)) return inner.apply(client, args);
    const statement = this.#begin(client, config);
    if (statement === undefined) return inner.apply(client, args);
    if (isSubmittable(config)) this.#follow(config, statement);
    let result: unknown;
    try {
      result = inner.apply(client, args);
    } catch (error) {
      this.#fail(statement, error);
      throw error;
    }
    this.#link(client, config, statement);
    return result;
  }

  // The guards stand in the methods: `attempt` takes a closure, which every statement would pay for.

  #begin(client: PgClient, config: unknown): Statement | undefined {
    const { asker } = this;
    this.asker = undefined;
    try {
      const { calls } = this.#hooks;
      const now = this.#hooks.now();
      const limits = limitsOf(config, client.connectionParameters);
      const limit = smallestMs(limits);
      const waited = asker?.call;
      if (waited !== undefined && limit !== undefined) calls.granted(waited, limit, now);
      const call = waited ?? calls.begin(this.#connections.targetOf(client), now, limit);
      // Of a query object of its own the application may hear itself.
      const isPromised = asker?.isPromised === true && !isSubmittable(config);
      const statement = new Statement(this.#hooks, client, call, now, limits, isPromised);
      this.#spans.expect(call, statement);
      return statement;
    } catch (error) {
      this.#hooks.report(error);
      return undefined;
    }
  }

  /**
   * Finds the query object, now that `query` has returned: the last one of the client's queue, else the one that it
   * has sent. If that is an earlier one, pg took none, as its connection is closed or broken, and says so later.
   */
  #link(client: PgClient, config: unknown, statement: Statement): void {
    try {
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
    } catch (error) {
      this.#hooks.report(error);
    }
  }

  /** A query object of the application. One of a class of its own, such as a cursor, has its methods replaced. */
  #follow(query: Submittable, statement: Statement): void {
    try {
      this.#statements.set(query, statement);
      if (this.#wrappedKinds.has(Object.getPrototypeOf(query))) return;
      for (const method of STEPS) {
        replaceOwn(query, method, (args, inner) => {
          this.#step(method, statement);
          return inner.apply(query, args);
        });
      }
      for (const method of ENDS) {
        replaceOwn(query, method, (args, inner) => this.#end(method, statement, query, args, inner));
      }
    } catch (error) {
      this.#hooks.report(error);
    }
  }

  #step(method: Step, statement: Statement): void {
    try {
      if (method === 'submit') statement.sent(this.#hooks.now());
      else statement.answering();
    } catch (error) {
      this.#hooks.report(error);
    }
  }

  /** Comes from the socket, which belongs to no request: the application has to hear of it in its own. */
  #end(method: End, statement: Statement, query: object, args: unknown[], inner: Method): unknown {
    const isSilent = method === 'handleReadyForQuery' && statement.isSilent;
    if (method === 'handleError') this.#fail(statement, args[0]);
    else this.#complete(statement);
    return isSilent ? inner.apply(query, args) : callIn(statement.call.scope, inner, query, args);
  }

  #complete(statement: Statement): void {
    try {
      statement.complete();
    } catch (error) {
      this.#hooks.report(error);
    }
  }

  #fail(statement: Statement, error: unknown): void {
    try {
      statement.fail(error);
    } catch (internal) {
      this.#hooks.report(internal);
    }
  }
}

function replaceOwn(query: object, name: string, run: (args: unknown[], inner: Method) => unknown): void {
  const inner: unknown = Reflect.get(query, name);
  if (typeof inner !== 'function') return;
  // Checked to be a function just above.
  const value = (...args: unknown[]): unknown => run(args, inner as Method);
  Object.defineProperty(query, name, { value, writable: true, configurable: true });
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
