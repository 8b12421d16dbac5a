/**
 * Requests that servers of node:http and node:https take, TLS and HTTP/1 fallbacks of HTTP/2 servers included.
 * An upgrade that somebody listens for (WebSocket) and CONNECT are no requests with a reply, and Node does not
 * announce them.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { CancelSource } from '../../src/core/terms.ts';
import { currentScope, enterScope } from '../../src/current.ts';
import type { RequestRecord } from '../../src/records.ts';
import { activeSpan } from '../../src/telemetry/otel-globals.ts';
import type { Adapter, Hooks, Undo } from '../adapter.ts';
import { isOwnServer } from '../process/own-traffic.ts';
import { attached } from '../shared/attached.ts';
import { watchLateEnd } from '../shared/late-end.ts';
import { makeRoom } from '../shared/own-listeners.ts';
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
  /** When a socket last ran into its idle limit; -Infinity for one that is listened to and has not yet. */
  readonly #timedOutAt = new WeakMap<Socket, number>();
  readonly #exchanges = attached<ServerResponse, Exchange>();
  readonly #onRequest: () => void;
  readonly #onPrefinish: (this: ServerResponse) => void;
  readonly #onClose: (this: ServerResponse) => void;

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
    // Not by `guard`, whose list of arguments would be made for every request.
    this.#onRequest = () => hooks.attempt(noteServerSpan);
    this.#onPrefinish = this.#listener((exchange, record) => this.#replied(exchange, record));
    this.#onClose = this.#listener((exchange, record) => this.#closed(exchange, record));
  }

  /** Under the guard, for the responses of all requests: which one it is, `this` tells. */
  #listener(onEvent: (exchange: Exchange, record: RequestRecord) => void): (this: ServerResponse) => void {
    const hooks = this.#hooks;
    const exchanges = this.#exchanges;
    return function (this: ServerResponse): void {
      try {
        const exchange = exchanges.get(this);
        const record = exchange?.record;
        if (exchange === undefined || record === undefined || record.endedAt !== undefined) return;
        onEvent(exchange, record);
      } catch (error) {
        hooks.report(error);
      }
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
    if (hasBody(request)) carryScope(request, record);
    this.#listen(socket, server);
    exchange.record = record;
    this.#exchanges.set(response, exchange);
    makeRoom(response);
    response.prependListener('prefinish', this.#onPrefinish);
    // First, so that the server's span, which OpenTelemetry ends in the same event, can still be written to.
    response.prependListener('close', this.#onClose);
  }

  #listen(socket: Socket, server: Server): void {
    // Asked each time: engine.io and others take all listeners off and put theirs in between.
    if (server.listenerCount('request', this.#onRequest) === 0) {
      makeRoom(server);
      server.prependListener('request', this.#onRequest);
      const ref = new WeakRef(server);
      this.#undos.push(() => void ref.deref()?.removeListener('request', this.#onRequest));
    }
    // Here it is `server.timeout`, off by default. A listener on server, request or response would take the
    // decision to close the connection away from Node; one on the socket does not.
    if (!((socket.timeout ?? 0) > 0) || this.#timedOutAt.has(socket)) return;
    this.#timedOutAt.set(socket, -Infinity);
    makeRoom(socket);
    socket.on(
      'timeout',
      this.#hooks.guard(() => {
        this.#timedOutAt.set(socket, this.#hooks.now());
      }),
    );
  }

  /** The whole reply has been written; mostly, it is with the kernel already. */
  #replied(exchange: Exchange, record: RequestRecord): void {
    const { socket } = exchange;
    const now = this.#hooks.now();
    record.responding(now);
    exchange.outsideHandler = record.handlerScope !== undefined && currentScope() === record;
    // Told of replies into a closed connection as well: those end with 'close'. What is still buffered ends there
    // too. Everything else is over for the client now, however long the handler keeps the loop from 'finish'.
    if (!socket.destroyed && socket.writableLength === 0) this.#complete(exchange, record, now);
  }

  #closed(exchange: Exchange, record: RequestRecord): void {
    const { response } = exchange;
    const now = this.#hooks.now();
    // The socket is taken off at 'finish'. `writableFinished` alone is true on Node 22 for a reply that the
    // client reset before it had all of it.
    if (response.writableFinished && response.socket === null) {
      this.#complete(exchange, record, now);
      return;
    }
    const { recorder } = this.#hooks;
    const source = this.#localSource(exchange, record, now);
    if (source === undefined) recorder.peerGone(record, now);
    else recorder.cancel(record, source, now);
    exchange.status = response.headersSent ? response.statusCode : undefined;
    recorder.finish(record, exchange, now);
    if (record.handlerTracked) return;
    if (response.writableEnded) recorder.handlerEnded(record, record.respondingAt ?? now);
    else watchLateEnd(this.#hooks, response, record);
  }

  #complete(exchange: Exchange, record: RequestRecord, now: number): void {
    exchange.complete();
    this.#hooks.recorder.finish(record, exchange, now);
    if (record.handlerTracked || record.handlerEndedAt !== undefined) return;
    watchLateEnd(this.#hooks, exchange.response, record);
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
    const timedOutAt = this.#timedOutAt.get(socket);
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

/**
 * On Node 24 what the parser brings later than the headers comes without the store (measured), and so would the
 * work of 'data' and 'end' listeners. Every piece comes in through `push`.
 */
function carryScope(request: IncomingMessage, record: RequestRecord): void {
  const inner = request.push;
  function push(this: IncomingMessage, ...args: Parameters<IncomingMessage['push']>): boolean {
    enterScope(record.handlerScope ?? record);
    return Reflect.apply(inner, this, args);
  }
  Object.defineProperty(request, 'push', {
    value: push,
    configurable: true,
    writable: true,
    enumerable: false,
  });
}

function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length'];
  return (length !== undefined && length !== '0') || headers['transfer-encoding'] !== undefined;
}

function errorCode(error: Error | null): string | undefined {
  return error !== null && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
