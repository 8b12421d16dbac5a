/**
 * Requests that go out through node:http and node:https, whatever agent they use. CONNECT is no call: it is how the
 * tunnel for one is made.
 *
 * What the client's options cover: `timeout` and `setTimeout` limit the silence on a socket, from when the request
 * has one, and end nothing by themselves; neither the wait for a socket nor an answer that trickles is in them, so
 * they are no limit of the call. An AbortSignal covers all of it, but the application hears of the abort of a
 * request that waits for a socket of its agent only when one becomes free; the call ends at the abort.
 */
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { endingOf, endingOfDiscard } from '../../src/call-ending.ts';
import type { CallEnding } from '../../src/call-recorder.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Adapter, Hooks } from '../adapter.ts';
import { isOwnTraffic } from '../process/own-traffic.ts';
import { attached } from '../shared/attached.ts';
import { enterResponse } from '../shared/attempt-marks.ts';
import { callLag } from '../shared/call-lag.ts';
import { activeSpanOf } from '../shared/call-span.ts';
import { enterRequest, INSTANT_MS, isConnecting, isTls, watchConnect } from '../shared/connect-watch.ts';
import { makeRoom } from '../shared/own-listeners.ts';
import { type Peer, Peers } from '../shared/peers.ts';
import { dispatchLines } from './dispatch-lines.ts';
import { beforeRendered, type HeaderLine, isOpen, splitHead, writeHead } from './header-block.ts';
import { beginHttpAttempt } from './http-attempt.ts';
import {
  addressKey,
  addressOf,
  isHangUp,
  mayHaveLookedFor,
  ownLimit,
  responseOf,
  type SocketSource,
  sourceOf,
  tellWhenDestroyedInQueue,
} from './http-request.ts';

const CHANNEL_CREATED = 'http.client.request.created';
/** Published at the head of the answer, whatever its name says. */
const CHANNEL_HEAD = 'http.client.response.finish';
const CHANNEL_ERROR = 'http.client.request.error';
const SPAN_SCOPE = '@opentelemetry/instrumentation-http';

export const httpClient: Adapter = {
  name: 'http-client',
  start(hooks) {
    const watch = new ClientWatch(hooks);
    const undos = [
      hooks.subscribe(CHANNEL_CREATED, (message) => watch.onCreated(message as Message)),
      hooks.subscribe(CHANNEL_HEAD, (message) => watch.onHead(message as Message)),
      hooks.subscribe(CHANNEL_ERROR, (message) => watch.onError(message as Message)),
    ];
    return () => {
      for (const undo of undos) undo();
    };
  },
};

// Node's own channels, each published with the members that its handler takes.
interface Message {
  readonly request: ClientRequest;
  readonly response: IncomingMessage;
  readonly error: unknown;
}

/**
 * Leads to neither its request nor its response: the young generation's collector takes what a WeakMap holds for
 * reachable, and would keep every request for the old one.
 */
interface Exchange {
  readonly call: CallRecord;
  readonly peer: Peer;
  readonly source: SocketSource;
  /** The application gave up because the socket had been silent for too long. */
  timedOut: boolean;
}

class ClientWatch {
  readonly #hooks: Hooks;
  readonly #peers: Peers;
  readonly #securePeers: Peers;
  readonly #exchanges = attached<ClientRequest, Exchange>();
  // One listener for all, told by `this` which request it is about: no closures per request.
  readonly #onSocket;
  readonly #onTimeout;
  readonly #onClose;
  readonly #onEnd: (this: IncomingMessage) => void;

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
    this.#peers = new Peers(hooks);
    this.#securePeers = new Peers(hooks);
    this.#onSocket = this.#listener((exchange, request: ClientRequest, socket: Socket) =>
      this.#assigned(exchange, request, socket),
    );
    this.#onTimeout = this.#listener((exchange, request: ClientRequest) => {
      // After the application's listeners, and before what they destroy can report it.
      process.nextTick(() => {
        exchange.timedOut = request.destroyed;
      });
    });
    this.#onClose = this.#listener((exchange, request: ClientRequest) => this.#closed(exchange, request));
    const ended = this.#listener((exchange, request: ClientRequest) => {
      const now = this.#hooks.now();
      this.#end(exchange, request, 'answered', now, callLag(this.#hooks, exchange.call, now));
    });
    this.#onEnd = function () {
      // Node gives an answer its request, beside the types.
      const request = Reflect.get(this, 'req') as ClientRequest | undefined;
      if (request !== undefined) ended.call(request);
    };
  }

  onCreated({ request }: Message): void {
    if (request.method === 'CONNECT' || isOwnTraffic()) return;
    const now = this.#hooks.now();
    const key = addressKey(request);
    const peer = this.#peerOf(request, key);
    const isMarked = mayHaveLookedFor(request);
    const call = this.#hooks.calls.begin(peer.target, now, isMarked ? ownLimit(request) : undefined);
    beginHttpAttempt(this.#hooks, call, peer, key, request, isMarked);
    const source = sourceOf(request);
    call.enter(source === 'custom' ? 'connect' : 'pool_wait', now);
    call.span = activeSpanOf(SPAN_SCOPE);
    const exchange: Exchange = { call, peer, source, timedOut: false };
    this.#exchanges.set(request, exchange);
    makeRoom(request);
    request.prependListener('socket', this.#onSocket);
    request.prependListener('close', this.#onClose);
    if (source === 'queued') this.#queued(exchange, request);
  }

  #queued(exchange: Exchange, request: ClientRequest): void {
    const tell = this.#hooks.guard((error: unknown) => {
      this.#end(exchange, request, endingOf(error) ?? 'aborted', this.#hooks.now());
    });
    tellWhenDestroyedInQueue(request, tell);
  }

  /** Not told of 1xx answers and of upgrades. */
  onHead({ request, response }: Message): void {
    const exchange = this.#exchanges.get(request);
    if (exchange === undefined) return;
    enterResponse(this.#hooks, exchange.call, response.statusCode ?? 0);
    // Never 'response' on the request: Node throws a body away only while nobody listens to that.
    makeRoom(response);
    response.prependListener('end', this.#onEnd);
  }

  onError({ request, error }: Message): void {
    const exchange = this.#exchanges.get(request);
    if (exchange === undefined) return;
    const now = this.#hooks.now();
    const told = endingOf(error);
    if (told === 'timed_out' || told === 'aborted') {
      this.#end(exchange, request, told, now);
    } else if (request.destroyed && (told === undefined || isHangUp(error))) {
      // Destroyed from within, for a reason of the application's own or none; a peer's reset comes before.
      this.#end(exchange, request, exchange.timedOut ? 'timed_out' : 'aborted', now);
    } else {
      this.#end(exchange, request, 'failed', now, callLag(this.#hooks, exchange.call, now));
    }
  }

  #assigned(exchange: Exchange, request: ClientRequest, socket: Socket): void {
    const { call, source } = exchange;
    if (call.endedAt !== undefined) return;
    const now = this.#hooks.now();
    // Without a listener by now, the silence of a socket is no reason for anybody to give up.
    if (request.listenerCount('timeout') > 0) request.prependListener('timeout', this.#onTimeout);
    if (isConnecting(socket)) {
      this.#connecting(exchange, request, socket, source === 'assigned' ? call.startedAt : now);
      return;
    }
    if (source === 'queued') call.enter('request', now, callLag(this.#hooks, call, now));
    else if (source === 'assigned') enterRequest(call, now);
    // Custom code that hands a socket over at once has not connected one.
    else call.enter('request', now - call.startedAt < INSTANT_MS ? call.startedAt : now);
    this.#send(exchange, request, now, undefined);
  }

  /**
   * Holds the head back in the socket until it is connected, before which nothing can leave anyway, so that it says
   * what is left then. With TLS only the end of the head: Node's error for a handshake that fails is another one
   * when nothing is being written. A socket that is none of Node's gets its head now.
   */
  #connecting(exchange: Exchange, request: ClientRequest, socket: Socket, from: number): void {
    const { call } = exchange;
    const isNodes = socket instanceof Socket;
    const holder = isNodes && this.#headersFor(exchange).length > 0 ? socket : undefined;
    if (!isNodes) this.#send(exchange, request, this.#hooks.now(), undefined);
    const watch = watchConnect(this.#hooks, socket, from);
    const isSplit =
      holder !== undefined && isTls(holder) && splitHead(request, this.#headersFor(exchange), holder);
    const onReady = (now: number) => {
      call.enter('request', now, callLag(this.#hooks, call, now));
      if (isNodes) this.#send(exchange, request, now, holder);
    };
    // From here on the request leaves only when `onUsable` lets it, so nothing that can fail stands in between.
    if (!isSplit) holder?.cork();
    watch.follow(call, from, onReady, isSplit ? undefined : () => holder?.uncork());
  }

  #send(exchange: Exchange, request: ClientRequest, now: number, holder: Socket | undefined): void {
    if (this.#headersFor(exchange).length === 0) {
      exchange.call.dispatchedAt = now;
    } else if (isOpen(request)) {
      this.#sendLater(exchange, request);
    } else if (!writeHead(request, this.#lines(exchange, now), holder)) {
      exchange.call.handedDownMs = undefined;
    }
  }

  #sendLater(exchange: Exchange, request: ClientRequest): void {
    const put = this.#hooks.guard(() => {
      const lines = this.#lines(exchange, this.#hooks.now());
      for (const { name, value } of lines) request.setHeader(name, value);
    });
    beforeRendered(request, put);
  }

  #lines(exchange: Exchange, now: number): readonly HeaderLine[] {
    return dispatchLines(this.#hooks, exchange.call, this.#headersFor(exchange), now);
  }

  #headersFor({ call, peer }: Exchange) {
    return this.#peers.headersFor(peer, call);
  }

  /** The last event of every request, also of one whose answer nobody reads. */
  #closed(exchange: Exchange, request: ClientRequest): void {
    const { call, timedOut } = exchange;
    const response = responseOf(request);
    const now = this.#hooks.now();
    if (response?.complete === true || Reflect.get(request, 'upgradeOrConnect') === true) {
      call.teaches = false;
      this.#end(exchange, request, 'answered', now);
    } else if (response === undefined || timedOut) {
      this.#end(exchange, request, timedOut ? 'timed_out' : 'aborted', now);
    } else if (request.socket?.readableEnded === true) {
      this.#end(exchange, request, 'failed', now, callLag(this.#hooks, exchange.call, now));
    } else {
      this.#end(exchange, request, endingOfDiscard(call, now), now);
    }
  }

  #peerOf(request: ClientRequest, key: string): Peer {
    const peers = request.protocol === 'https:' ? this.#securePeers : this.#peers;
    const known = peers.find(key);
    if (known !== undefined) return known;
    const { host, port } = addressOf(request, key);
    return peers.add(key, host, port);
  }

  #listener<Arg = void>(
    hook: (exchange: Exchange, request: ClientRequest, arg: Arg) => void,
  ): (this: ClientRequest, arg: Arg) => void {
    const hooks = this.#hooks;
    const exchanges = this.#exchanges;
    return function (this: ClientRequest, arg: Arg): void {
      try {
        const exchange = exchanges.get(this);
        if (exchange !== undefined) hook(exchange, this, arg);
      } catch (error) {
        hooks.report(error);
      }
    };
  }

  #end({ call }: Exchange, request: ClientRequest, ending: CallEnding, now: number, lagMs = 0): void {
    this.#exchanges.set(request, undefined);
    this.#hooks.calls.end(call, ending, now, lagMs);
  }
}
