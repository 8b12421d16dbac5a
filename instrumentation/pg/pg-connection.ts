/** Connections of pg's clients: what they belong to, and the phases of opening one. */
import { isIP } from 'node:net';
import type { Target } from '../../src/call-recorder.ts';
import { currentScope, enterScope, runInScope } from '../../src/current.ts';
import type { CallRecord, Scope } from '../../src/records.ts';
import { isThenable } from '../../src/when-settled.ts';
import type { Hooks } from '../adapter.ts';
import { attached } from '../shared/attached.ts';
import type { Method } from '../shared/plain-wrap.ts';
import { connectError, readFault } from './pg-ending.ts';
import type { PgSpans } from './pg-spans.ts';
import { type LimitSource, limitMs } from './pg-statement.ts';

interface Emitter {
  once?(event: string, listener: () => void): unknown;
}

/** What is read of a client, under the names of pg 8.17 and of the versions before. */
export interface PgClient {
  readonly host?: unknown;
  readonly port?: unknown;
  readonly database?: unknown;
  readonly ssl?: unknown;
  readonly processID?: unknown;
  readonly connection?: Emitter & { readonly stream?: Emitter };
  readonly connectionParameters?: LimitSource;
  readonly _connectionTimeoutMillis?: unknown;
  readonly _connected?: unknown;
  readonly _queryQueue?: readonly object[];
  readonly queryQueue?: readonly object[];
  readonly _sentQueryQueue?: readonly object[];
  readonly _activeQuery?: object | null;
  readonly activeQuery?: object | null;
}

/** A pool's part in a connection that it opens: it has the call, and is told how it went. */
export interface Opening {
  started(client: PgClient, at: number): CallRecord;
  opened(at: number): void;
}

const CONNECTING = { connecting: true, limitReached: false };

export class PgConnections {
  /** Set by a pool for the client that it calls synchronously next, which takes it. */
  opening: Opening | undefined;
  readonly #hooks: Hooks;
  readonly #spans: PgSpans;
  readonly #targets = attached<object, Target>();

  constructor(hooks: Hooks, spans: PgSpans) {
    this.#hooks = hooks;
    this.#spans = spans;
  }

  /** By host and port where the configuration knows them, else by the database: an address is no name. */
  targetOf(client: PgClient): Target {
    const known = this.#targets.get(client);
    if (known !== undefined) return known;
    const host = typeof client.host === 'string' ? client.host : '';
    const port = typeof client.port === 'number' ? client.port : undefined;
    const { calls, recorder } = this.#hooks;
    const target =
      recorder.config.dependencyFor(host, port) === undefined
        ? calls.target(`postgresql/${String(client.database)}`, undefined, 'sql')
        : calls.target(host, port, 'sql');
    this.#targets.set(client, target);
    return target;
  }

  /** Around `Client.prototype.connect`. */
  connect(client: PgClient, args: unknown[], inner: Method): unknown {
    const { opening } = this;
    this.opening = undefined;
    return opening === undefined
      ? this.#connectAlone(client, args, inner)
      : this.#connectForPool(client, opening, args, inner);
  }

  #connectForPool(client: PgClient, opening: Opening, args: unknown[], inner: Method): unknown {
    const hooks = this.#hooks;
    hooks.attempt(() => {
      const now = hooks.now();
      this.#follow(client, opening.started(client, now), now);
    });
    const [callback] = args;
    if (typeof callback !== 'function') return outsideRequests(client, args, inner);
    const told = function (this: unknown, ...results: unknown[]): unknown {
      if (!results[0]) hooks.attempt(() => opening.opened(hooks.now()));
      return Reflect.apply(callback, this, results);
    };
    return outsideRequests(client, [told], inner);
  }

  /** A client without a pool: its connection is a call of its own, which asks for no work. */
  #connectAlone(client: PgClient, args: unknown[], inner: Method): unknown {
    const hooks = this.#hooks;
    const scope = currentScope();
    const call = hooks.attempt(() => {
      const now = hooks.now();
      const limit = limitMs(client._connectionTimeoutMillis);
      const begun = hooks.calls.begin(this.targetOf(client), now, limit);
      begun.teaches = false;
      this.#follow(client, begun, now);
      this.#spans.expect(begun, {
        spanName: 'pg.connect',
        isToldLate: true,
        spanEnds: (error) => this.#end(begun, connectError(error, now, limit, this.#hooks.now())),
      });
      return begun;
    });
    if (call === undefined) return inner.apply(client, args);
    const end = hooks.guard((error: unknown) => this.#end(call, error));
    const [callback] = args;
    if (typeof callback === 'function') {
      const told = function (this: unknown, ...results: unknown[]): unknown {
        end(results[0]);
        return callIn(scope, callback, this, results);
      };
      return outsideRequests(client, [told], inner);
    }
    const result = outsideRequests(client, args, inner);
    return afterwards(result, () => end(undefined), end);
  }

  #end(call: CallRecord, error: unknown): void {
    const now = this.#hooks.now();
    const { ending, server } = error
      ? readFault(error, CONNECTING)
      : ({ ending: 'answered', server: 'answered' } as const);
    const lagMs = server === 'answered' ? this.#hooks.recorder.clock.waitMs(now) : 0;
    this.#hooks.calls.end(call, ending, now, lagMs);
  }

  /** pg tells the phases by events of its connection and socket. A stream of the application may have none. */
  #follow(client: PgClient, call: CallRecord, at: number): void {
    const { host, ssl, connection } = client;
    const isName = typeof host === 'string' && !host.startsWith('/') && isIP(host) === 0;
    const enter = (phase: 'connect' | 'tls') =>
      this.#hooks.guard(() => {
        const now = this.#hooks.now();
        call.enter(phase, now, this.#hooks.recorder.clock.waitMs(now));
      });
    call.enter(isName ? 'dns' : 'connect', call.phase === undefined ? call.startedAt : at);
    if (isName) connection?.stream?.once?.('lookup', enter('connect'));
    if (!ssl) return;
    // The request for TLS and its one-byte answer count as TLS; the startup after it as connect.
    connection?.once?.('connect', enter('tls'));
    const onUpgrade = () => connection?.stream?.once?.('secureConnect', enter('connect'));
    connection?.once?.('sslconnect', this.#hooks.guard(onUpgrade));
  }
}

/**
 * The promise that takes the place of `result`, with the same value or error. It is one made from it, and not
 * `result` itself with a handler more: that would hide a rejection which the application leaves unhandled.
 */
export function afterwards(
  result: unknown,
  onValue: (value: unknown) => void,
  onError: (error: unknown) => void,
): unknown {
  if (!isThenable(result)) return result;
  return result.then(
    (value) => {
      onValue(value);
      return value;
    },
    (error: unknown) => {
      onError(error);
      throw error;
    },
  );
}

/** Calls in a scope. Most often it is the current one already, and entering one costs more than all the rest here. */
export function callIn(
  scope: Scope | undefined,
  callback: CallableFunction,
  self: unknown,
  args: unknown[],
): unknown {
  return currentScope() === scope
    ? Reflect.apply(callback, self, args)
    : callInOther(scope, callback, self, args);
}

/** Apart, as what a closure holds is allocated at every call of the function that it is in. */
function callInOther(
  scope: Scope | undefined,
  callback: CallableFunction,
  self: unknown,
  args: unknown[],
): unknown {
  return runInScope(scope, () => Reflect.apply(callback, self, args));
}

/**
 * A connection outlives the request that opened it: it must neither keep its record nor speak in its name. Entered
 * and left by hand: an error's stack has ten frames, and those of `run` would crowd out the application's own.
 */
function outsideRequests(client: PgClient, args: unknown[], inner: Method): unknown {
  const scope = currentScope();
  enterScope(undefined);
  try {
    return inner.apply(client, args);
  } finally {
    enterScope(scope);
  }
}
