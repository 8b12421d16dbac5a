/**
 * Requests that servers of node:http and node:https take, TLS and HTTP/1 fallbacks of HTTP/2 servers included.
 * An upgrade that somebody listens for (WebSocket) and CONNECT are no requests with a reply, and Node does not
 * announce them.
 */
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { CancelSource } from '../../src/core/terms.ts';
import { currentScope, enterScope } from '../../src/current.ts';
import type { RequestRecord } from '../../src/records.ts';
import { activeSpan, hasContextManager } from '../../src/telemetry/otel-globals.ts';
import type { Adapter, Hooks, Undo } from '../adapter.ts';
import { isOwnServer } from '../process/own-traffic.ts';
import { attached } from '../shared/attached.ts';
import { watchLateEnd } from '../shared/late-end.ts';
import { makeRoom } from '../shared/own-listeners.ts';
import { carryScope, hasBody } from './body-scope.ts';
import { Connection } from './connection.ts';
import { Exchange, type RequestStart } from './exchange.ts';

const CHANNEL_START = 'http.server.request.start';
/** Node's timers count whole milliseconds of their own and may be early by as much. */
const EARLY_TIMER_MS = 2;

export const httpServer: Adapter = {
  name: 'http-server',
  start(hooks) {
    const watch = new ServerWatch(hooks);
    const undo = hooks.subscribe(CHANNEL_START, (message) => watch.onStart(message));
    return () => {
      undo();
      watch.stop();
    };
  },
};

class ServerWatch {
  readonly #hooks: Hooks;
  readonly #undos: Undo[] = [];
  readonly #connections = attached<Socket, Connection>();
  readonly #onRequest: () => void;
  readonly #onPrefinish: (this: ServerResponse) => void;
  readonly #onSocketClose: (this: Socket) => void;
  readonly #onSocketTimeout: (this: Socket) => void;

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
    // Not by `guard`, whose list of arguments would be made for every request. Of all requests and connections each
    // has the same listeners: which one it is, `this` tells.
    this.#onRequest = () => hooks.attempt(noteServerSpan);
    const connections = this.#connections;
    const replied = (exchange: Exchange) => this.#replied(exchange);
    const closed = (exchange: Exchange) => this.#tellClosed(exchange);
    this.#onPrefinish = function (this: ServerResponse): void {
      try {
        // It has its socket from when it is its turn until 'finish'.
        const connection = this.socket === null ? undefined : connections.get(this.socket);
        const exchange = connection?.exchangeOf(this);
        if (exchange !== undefined) replied(exchange);
      } catch (error) {
        hooks.report(error);
      }
    };
    this.#onSocketClose = function (this: Socket): void {
      hooks.attempt(() => connections.get(this)?.close().forEach(closed));
    };
    this.#onSocketTimeout = function (this: Socket): void {
      hooks.attempt(() => {
        const connection = connections.get(this);
        if (connection !== undefined) connection.timedOutAt = hooks.now();
      });
    };
  }

  stop(): void {
    for (const undo of this.#undos.splice(0)) undo();
  }

  onStart(message: unknown): void {
    // Node's own channel, published before 'request' with exactly these.
    const exchange = new Exchange(message as RequestStart);
    const { request, response, socket, server } = exchange;
    if (isOwnServer(server)) {
      enterScope(undefined);
      return;
    }
    const { recorder } = this.#hooks;
    const now = this.#hooks.now();
    let record: RequestRecord | undefined;
    try {
      record = recorder.enter(exchange, now);
    } finally {
      // Even undefined: the store of the request before is still there on Node 22.
      enterScope(record);
    }
    // A framework may find later that the operation's own handler is further on.
    recorder.handling(record, undefined, now);
    if (record.operation !== undefined) recorder.admit(record, now, true);
    if (hasBody(exchange)) carryScope(request, record);
    exchange.record = record;
    const connection = this.#connectionOf(socket);
    exchange.connection = connection;
    this.#listenForSpans(server);
    this.#listenForTimeout(connection, socket);
    makeRoom(response);
    response.prependListener('prefinish', this.#onPrefinish);
    // As Node asks it: one that waits for another's turn gets no socket yet, and given up on, it closes alone.
    if ('_httpMessage' in socket && socket._httpMessage) this.#listenForClose(exchange);
    connection.opened(exchange);
  }

  #connectionOf(socket: Socket): Connection {
    let connection = this.#connections.get(socket);
    if (connection === undefined) {
      connection = new Connection();
      this.#connections.set(socket, connection);
    }
    // Over, but somebody took our listener off the response: it ends now.
    for (const exchange of connection.unheard()) this.#tellClosed(exchange);
    // Asked each time: somebody may take all listeners off. Not first: Node's own makes the handlers hear of the end,
    // and what stops then was no work after it. The responses are closed after this one.
    if (socket.listenerCount('close', this.#onSocketClose) === 0) {
      makeRoom(socket);
      socket.on('close', this.#onSocketClose);
    }
    return connection;
  }

  /** One that fails does not keep the others from it. */
  #tellClosed(exchange: Exchange): void {
    this.#hooks.attempt(() => this.#closed(exchange));
  }

  /** First, so that the server's span, which OpenTelemetry ends in the same event, can still be written to. */
  #listenForClose(exchange: Exchange): void {
    if (exchange.isListenedTo) return;
    exchange.isListenedTo = true;
    exchange.response.prependListener('close', () => this.#tellClosed(exchange));
  }

  /**
   * Asked each time: engine.io and others take all listeners off and put theirs in between; and a context manager may
   * come late. Without one there is no active span, and a second listener costs every request a copy of their list.
   */
  #listenForSpans(server: Server): void {
    if (!hasContextManager() || server.listenerCount('request', this.#onRequest) > 0) return;
    makeRoom(server);
    server.prependListener('request', this.#onRequest);
    const ref = new WeakRef(server);
    this.#undos.push(() => void ref.deref()?.removeListener('request', this.#onRequest));
  }

  /**
   * Here it is `server.timeout`, off by default. A listener on server, request or response would take the decision to
   * close the connection away from Node; one on the socket does not.
   */
  #listenForTimeout(connection: Connection, socket: Socket): void {
    if (!((socket.timeout ?? 0) > 0) || connection.timedOutAt !== undefined) return;
    connection.timedOutAt = -Infinity;
    makeRoom(socket);
    socket.on('timeout', this.#onSocketTimeout);
  }

  /** The whole reply has been written; mostly, it is with the kernel already. */
  #replied(exchange: Exchange): void {
    const { record, socket } = exchange;
    if (record === undefined || record.endedAt !== undefined) return;
    const now = this.#hooks.now();
    record.responding(now);
    exchange.outsideHandler = record.handlerScope !== undefined && currentScope() === record;
    // Told of replies into a closed connection as well: those end with 'close', and so does what is still buffered.
    // Everything else is over for the client now, however long the handler keeps the loop from 'finish'.
    if (!socket.destroyed && socket.writableLength === 0) this.#complete(exchange, record, now);
    else this.#listenForClose(exchange);
  }

  #closed(exchange: Exchange): void {
    const { record, response } = exchange;
    if (record === undefined || record.endedAt !== undefined) return;
    const now = this.#hooks.now();
    if (exchange.isFinished) {
      this.#complete(exchange, record, now);
      return;
    }
    const { recorder } = this.#hooks;
    const source = this.#localSource(exchange, record, now);
    if (source === undefined) recorder.peerGone(record, now);
    else recorder.cancel(record, source, now);
    exchange.status = response.headersSent ? response.statusCode : undefined;
    this.#finish(exchange, record, now);
    if (record.handlerTracked) return;
    if (response.writableEnded) recorder.handlerEnded(record, record.respondingAt ?? now);
    else watchLateEnd(this.#hooks, response, record);
  }

  #complete(exchange: Exchange, record: RequestRecord, now: number): void {
    exchange.complete();
    this.#finish(exchange, record, now);
    if (record.handlerTracked || record.handlerEndedAt !== undefined) return;
    watchLateEnd(this.#hooks, exchange.response, record);
  }

  #finish(exchange: Exchange, record: RequestRecord, now: number): void {
    exchange.connection?.ended(exchange);
    this.#hooks.recorder.finish(record, exchange, now);
  }

  /**
   * Who closed the connection, where this side can be told to have done it; undefined = the peer, or not known.
   * A FIN or a reset of the peer is seen on the socket, a `destroy()` from within leaves neither. Not told apart:
   * the application's own `socket.end()`, which the peer answers with a FIN, from a peer that leaves. Not seen:
   * a peer that leaves while a large unread body blocks the socket.
   */
  #localSource(exchange: Exchange, record: RequestRecord, now: number): CancelSource | undefined {
    const { request, socket, server } = exchange;
    if (errorCode(socket.errored) === 'ERR_HTTP_REQUEST_TIMEOUT') return 'local_timeout';
    const elapsedMs = now - record.startedAt + EARLY_TIMER_MS;
    // With a 'clientError' listener the application answers the slow upload, and its error is not on the socket.
    const uploadLimitMs = server.listenerCount('clientError') > 0 ? server.requestTimeout : 0;
    if (!request.complete && uploadLimitMs > 0 && elapsedMs >= uploadLimitMs) return 'local_timeout';
    const timedOutAt = exchange.connection?.timedOutAt;
    if (timedOutAt !== undefined && timedOutAt >= record.startedAt) return 'local_timeout';
    if (socket.readableEnded || socket.errored !== null || !socket.destroyed) return undefined;
    // An idle limit that was set during the request, by `response.setTimeout(ms)` or the like.
    const idleLimitMs = timedOutAt === undefined ? (socket.timeout ?? 0) : 0;
    if (idleLimitMs > 0 && elapsedMs >= idleLimitMs) return 'local_timeout';
    return server.listening ? 'application' : 'shutdown';
  }
}

/** Within 'request', and not yet in the channel, the server's span is the active one. */
function noteServerSpan(): void {
  const record = currentScope()?.request;
  if (record === undefined || record.span !== undefined || record.endedAt !== undefined) return;
  const span = activeSpan();
  if (span?.isRecording() === true) record.span = span;
}

function errorCode(error: Error | null): string | undefined {
  return error !== null && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
