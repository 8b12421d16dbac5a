/**
 * Requests that go out through undici: the builtin fetch, and the npm package in versions 6 to 8, over HTTP/1 and
 * HTTP/2. Each redirect and each retry is a request of its own. CONNECT is no call: it is how the tunnel for one is
 * made.
 *
 * What undici's options cover: `headersTimeout` the wait for the answer's head, from the send on; `bodyTimeout` the
 * silence between two pieces of the body; the connect timeout (10 s by default) name, connect and TLS. Their timers
 * are coarse (about half a second). None bounds the wait for a connection or the whole call, so none is a limit of
 * the call. An AbortSignal covers all of it, but the abort of a request that waits for a connection is noticed only
 * when there is one or the connect fails: by every fetch, and by `request` and its like before undici 8. Until then
 * the call goes on here, as the connecting does; its phase at the deadline is right, its end late.
 */
import { endingOf, endingOfDiscard } from '../../src/call-ending.ts';
import type { CallEnding } from '../../src/call-recorder.ts';
import type { OutgoingHeader } from '../../src/carriage.ts';
import { HEADER_TIME_BUDGET } from '../../src/core/wire-time-budget.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Adapter, Hooks, Undo } from '../adapter.ts';
import { isOwnTraffic } from '../process/own-traffic.ts';
import { attached } from '../shared/attached.ts';
import { enterResponse } from '../shared/attempt-marks.ts';
import { SendTimeValue } from '../shared/budget-header.ts';
import { callLag } from '../shared/call-lag.ts';
import { SpanFinder } from '../shared/call-span.ts';
import { type Peer, Peers } from '../shared/peers.ts';
import { wrappedModule } from '../shared/wrapped-module.ts';
import { beginUndiciAttempt } from './undici-attempt.ts';
import { UndiciConnects, type Waiter } from './undici-connect.ts';
import { UndiciPools } from './undici-pool.ts';
import {
  abortReason,
  hasLookedFor,
  isDestroyed,
  isDiscard,
  isPiecewise,
  isSpanOf,
  ownLimit,
  removeHeader,
  type UndiciRequest,
} from './undici-request.ts';

const SPAN_SCOPE = '@opentelemetry/instrumentation-undici';
/** What the package is known to look like; the builtin one needs no module to be wrapped. */
const VERSIONS = ['>=6 <9'];

// undici's channels, each published with the members that its handler takes.
interface Message {
  readonly request: UndiciRequest;
  readonly response: { readonly statusCode: number };
  readonly error: unknown;
  readonly socket: object;
  readonly connector: unknown;
  readonly connectParams: { readonly protocol: string; readonly host: string };
}

interface Exchange extends Waiter {
  /** The header that is written first; the others say the same. */
  first: OutgoingHeader | undefined;
  sent: boolean;
  socket: object | undefined;
  hasHead: boolean;
}

const watches = new WeakMap<Hooks, UndiciWatch>();

export const undiciClient: Adapter = {
  name: 'undici',
  start: (hooks) => watchOf(hooks).start(),
  modules: (hooks) => [wrappedModule('undici', VERSIONS, (undici) => wrapUndici(undici, hooks))],
};

/** Wraps the pools of what `require('undici')` or `import * as undici` gives. */
export function wrapUndici(undici: unknown, hooks: Hooks): Undo {
  return watchOf(hooks).pools.wrap(undici);
}

/** One for the channels and the modules of the same hooks. */
function watchOf(hooks: Hooks): UndiciWatch {
  const known = watches.get(hooks);
  if (known !== undefined) return known;
  const watch = new UndiciWatch(hooks);
  watches.set(hooks, watch);
  return watch;
}

class UndiciWatch {
  readonly pools: UndiciPools;
  readonly #hooks: Hooks;
  readonly #peers: Peers;
  readonly #connects: UndiciConnects;
  readonly #spans: SpanFinder<UndiciRequest>;
  readonly #exchanges = attached<UndiciRequest, Exchange>();
  /** Never throws: undici is writing. '' is no limit for a peer, where there is nothing to say after all. */
  readonly #render = (request: UndiciRequest, name: OutgoingHeader): string => {
    try {
      // Asked of the request, which may live until a major collection: what is over must not hang on it.
      const exchange = this.#exchanges.get(request);
      if (exchange === undefined) return '';
      const { call, first } = exchange;
      const { calls, carriage } = this.#hooks;
      const remainingMs = name === first ? calls.dispatch(call, this.#hooks.now()) : call.handedDownMs;
      return carriage.render(name, call, remainingMs) ?? '';
    } catch (error) {
      this.#hooks.report(error);
      return '';
    }
  };

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
    this.#peers = new Peers(hooks);
    this.#connects = new UndiciConnects(hooks);
    this.#spans = new SpanFinder<UndiciRequest>(hooks, {
      scope: SPAN_SCOPE,
      matches: isSpanOf,
      ending: (request, error) => this.#endBySpan(request, error),
    });
    this.pools = new UndiciPools(hooks, (origin) => this.#begin(this.#peers.ofOrigin(origin), undefined));
  }

  start(): Undo {
    // What undici publishes there; straight to the handler, since each step between costs on every event.
    const on = (channel: string, handle: (message: Message) => void) =>
      this.#hooks.subscribe(channel, handle as (message: unknown) => void);
    const connects = this.#connects;
    const undos = [
      this.#spans.start(),
      on('undici:request:create', ({ request }) => this.#onCreate(request)),
      on('undici:client:beforeConnect', ({ connectParams: { protocol, host }, connector }) =>
        connects.beforeConnect(`${protocol}//${host}`, connector),
      ),
      on('net.client.socket', ({ socket }) => connects.socketMade(socket)),
      on('undici:client:connected', ({ connector, socket }) => connects.connected(connector, socket)),
      on('undici:client:connectError', ({ connector, error }) => connects.connectFailed(connector, error)),
      on('undici:client:sendHeaders', ({ request, socket }) => this.#onSend(request, socket)),
      on('undici:request:bodySent', ({ request }) => this.#onSend(request, undefined)),
      on('undici:request:headers', ({ request, response }) => this.#onHead(request, response.statusCode)),
      on('undici:request:trailers', ({ request }) => this.#onTrailers(request)),
      on('undici:request:error', ({ request, error }) => this.#onError(request, error)),
    ];
    return () => {
      for (const undo of undos) undo();
    };
  }

  #begin(peer: Peer, limitMs: number | undefined): CallRecord | undefined {
    if (isOwnTraffic()) return undefined;
    const now = this.#hooks.now();
    const call = this.#hooks.calls.begin(peer.target, now, limitMs);
    call.enter('pool_wait', now);
    return call;
  }

  #onCreate(request: UndiciRequest): void {
    const resumed = this.pools.takeResumed();
    if (request.method === 'CONNECT') return;
    const origin = typeof request.origin === 'string' ? request.origin : request.origin.origin;
    const peer = this.#peers.ofOrigin(origin);
    const { headers } = request;
    const isMarked = hasLookedFor(headers);
    const limitMs = isMarked ? ownLimit(headers) : undefined;
    const call = resumed ?? this.#begin(peer, limitMs);
    if (call === undefined) return;
    if (resumed !== undefined && limitMs !== undefined) {
      call.ownTimeoutMs = limitMs;
      this.#hooks.calls.granted(call, limitMs, this.#hooks.now());
    }
    const exchange: Exchange = {
      call,
      origin,
      isDeferred: isPiecewise(request.body),
      wasPooled: resumed !== undefined,
      attempt: undefined,
      first: undefined,
      sent: false,
      socket: undefined,
      hasHead: false,
    };
    this.#exchanges.set(request, exchange);
    // Before our headers are put, one of which says which attempt it is.
    beginUndiciAttempt(this.#hooks, call, peer, request, isMarked);
    this.#putHeaders(request, exchange, peer, isMarked);
    this.#connects.add(exchange);
    this.#spans.expect(call, request);
  }

  /** `socket` is unknown over HTTP/2 in undici 6, which does not announce that it sends. */
  #onSend(request: UndiciRequest, socket: object | undefined): void {
    const exchange = this.#exchanges.get(request);
    if (exchange === undefined || exchange.sent) return;
    const { call } = exchange;
    // Its header was read just now, in the same step.
    const now = call.dispatchedAt ?? this.#hooks.now();
    exchange.sent = true;
    exchange.socket = socket;
    call.dispatchedAt = now;
    if (socket !== undefined) {
      this.#connects.sent(exchange, socket, now);
      return;
    }
    this.#connects.remove(exchange);
    call.enter('request', now);
  }

  #onHead(request: UndiciRequest, status: number): void {
    const exchange = this.#exchanges.get(request);
    if (exchange === undefined || (status < 200 && status !== 101)) return;
    exchange.hasHead = true;
    enterResponse(this.#hooks, exchange.call, status);
  }

  #onTrailers(request: UndiciRequest): void {
    const exchange = this.#exchanges.get(request);
    if (exchange === undefined) return;
    const now = this.#hooks.now();
    this.#end(exchange, request, 'answered', now, callLag(this.#hooks, exchange.call, now));
  }

  #onError(request: UndiciRequest, error: unknown): void {
    const exchange = this.#exchanges.get(request);
    if (exchange === undefined) return;
    const now = this.#hooks.now();
    if (exchange.hasHead && isDiscard(request, error)) {
      this.#end(exchange, request, endingOfDiscard(exchange.call, now), now);
      return;
    }
    const told = endingOf(abortReason(request) ?? error);
    // A reason of the application's own has no code. While the connection lives, nobody else can have ended it.
    const isLost = isDestroyed(exchange.socket) || this.#connects.hasFailedWith(error);
    const ending = told ?? (isLost ? 'failed' : 'aborted');
    const lagMs = ending === 'failed' ? callLag(this.#hooks, exchange.call, now) : 0;
    this.#end(exchange, request, ending, now, lagMs);
  }

  /** OpenTelemetry was told of the end first. It records every error but an abort, which may be a discarded body. */
  #endBySpan(request: UndiciRequest, error: unknown): void {
    const exchange = this.#exchanges.get(request);
    if (exchange === undefined) return;
    const now = this.#hooks.now();
    if (request.completed) {
      this.#end(exchange, request, 'answered', now, callLag(this.#hooks, exchange.call, now));
    } else if (error !== undefined) this.#onError(request, error);
    else if (exchange.hasHead && abortReason(request) === undefined) {
      this.#end(exchange, request, endingOfDiscard(exchange.call, now), now);
    } else this.#end(exchange, request, endingOf(abortReason(request)) ?? 'aborted', now);
  }

  #end(exchange: Exchange, request: UndiciRequest, ending: CallEnding, now: number, lagMs = 0): void {
    this.#exchanges.set(request, undefined);
    if (!exchange.sent) this.#connects.remove(exchange);
    if (exchange.socket !== undefined) this.#connects.freed(exchange.socket, now);
    this.#hooks.calls.end(exchange.call, ending, now, lagMs);
  }

  /** In the place of those with the same names, whoever set them; over HTTP/1 and HTTP/2 read when it is written. */
  #putHeaders(request: UndiciRequest, exchange: Exchange, peer: Peer, isMarked: boolean): void {
    const { headers } = request;
    if (!Array.isArray(headers)) return;
    const { call } = exchange;
    for (const name of this.#peers.headersFor(peer, call)) {
      // Without a budget only ours has something to say.
      if (name !== HEADER_TIME_BUDGET && call.deadlineAt === Infinity) continue;
      if (isMarked) removeHeader(headers, name);
      exchange.first ??= name;
      headers.push(name, new SendTimeValue(this.#render, request, name));
    }
  }
}
