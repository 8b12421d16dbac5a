/** How far a connecting socket has come: name looked up, TCP connected, TLS established. */
import type { Socket } from 'node:net';
import { MIN_LOOP_LAG_MS } from '../../src/core/call.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks, Undo } from '../adapter.ts';
import { callLag } from './call-lag.ts';
import { makeRoom } from './own-listeners.ts';

export type ConnectPhase = 'dns' | 'connect' | 'tls';

/** Up to here a step follows on the one before without a wait in between. */
export const INSTANT_MS = 1;
/**
 * Up to here a client has begun to connect for a request that it was just given: the first request of a process, or
 * one of many at once, takes that long. It is the rare one that has waited before, for a connection that was lost.
 */
const FRESH_MS = 50;

// What net.Socket and TLSSocket say of themselves beside their types. `_host` is set when a lookup begins.
interface ConnectingSocket extends Socket {
  readonly _host?: string | null;
  readonly encrypted?: boolean;
  readonly secureConnecting?: boolean;
  readonly _secureEstablished?: boolean;
}

const watches = new WeakMap<Socket, ConnectWatch>();

/** The watch of this socket, begun now if there is none. `startedAt`: when its owner began to connect. */
export function watchConnect(hooks: Hooks, socket: Socket, startedAt: number): ConnectWatch {
  const known = watches.get(socket);
  if (known !== undefined) return known;
  // A TLS socket may be made over a connection that stands already.
  const connectedAt = socket.connecting ? undefined : startedAt;
  const watch = new ConnectWatch(hooks, socket, startedAt, connectedAt);
  watches.set(socket, watch);
  return watch;
}

/** The same for a socket that is about to be told where to connect to, and does not say so yet. */
export function watchNewConnect(hooks: Hooks, socket: Socket, startedAt: number): ConnectWatch {
  const watch = new ConnectWatch(hooks, socket, startedAt, undefined);
  watches.set(socket, watch);
  return watch;
}

/** Whether a socket has yet to become usable. A TLS socket over a connection that stands still has its handshake. */
export function isConnecting(socket: Socket): boolean {
  return socket.connecting || isHandshaking(socket);
}

/** What happened and when. Without the socket, which this may outlive. */
export interface ConnectHistory {
  readonly startedAt: number;
  readonly isTls: boolean;
  lookedUpAt: number | undefined;
  connectedAt: number | undefined;
  /** Usable from here on; undefined while connecting and for an attempt that failed. */
  readyAt: number | undefined;
}

export function isTls(socket: Socket): boolean {
  return (socket as ConnectingSocket).encrypted === true;
}

export class ConnectWatch {
  readonly socket: ConnectingSocket;
  readonly history: ConnectHistory;
  readonly #hooks: Hooks;
  readonly #stop: Undo;
  #call: CallRecord | undefined;
  #onReady: ((now: number) => void) | undefined;
  #onUsable: (() => void) | undefined;

  constructor(hooks: Hooks, socket: ConnectingSocket, startedAt: number, connectedAt: number | undefined) {
    this.#hooks = hooks;
    this.socket = socket;
    const isTls = socket.encrypted === true;
    this.history = { startedAt, isTls, lookedUpAt: undefined, connectedAt, readyAt: undefined };
    const unlisten = listen(socket, {
      lookup: hooks.guard((error: unknown) => {
        // Without an address there is no connect.
        if (!(error instanceof Error)) this.#lookedUp();
      }),
      connect: this.#then(() => this.#connected(), !isTls),
      secureConnect: this.#then(() => this.#ready(this.#hooks.now()), true),
      // For a TLSSocket that tls.connect did not make there is no 'secureConnect'. The tick lets the check of the
      // certificate, which follows on this event, come first.
      secure: () => process.nextTick(this.#then(() => this.#readyUnlessRefused(), true)),
      close: () => this.#stop(),
    });
    this.#stop = () => {
      unlisten();
      // What a WeakMap holds keeps its key for as long as the young generation's collector alone is at work.
      watches.delete(socket);
    };
  }

  get phase(): ConnectPhase | undefined {
    const { lookedUpAt, connectedAt, readyAt } = this.history;
    if (readyAt !== undefined) return undefined;
    if (connectedAt !== undefined) return 'tls';
    return lookedUpAt === undefined && typeof this.socket._host === 'string' ? 'dns' : 'connect';
  }

  get hasFailed(): boolean {
    return this.history.readyAt === undefined && this.socket.destroyed;
  }

  /**
   * This call waits for the socket: its phases are told from now on. `onReady` runs before it may be sent. `onUsable`
   * follows in any case, whatever has failed before it, and must not throw.
   */
  follow(call: CallRecord, at: number, onReady?: (now: number) => void, onUsable?: () => void): void {
    this.#call = call;
    this.#onReady = onReady;
    this.#onUsable = onUsable;
    const { phase } = this;
    if (phase !== undefined) call.enter(phase, at);
  }

  /** Another call, or none, turned out to be the one that waited. */
  unfollow(call: CallRecord): void {
    if (this.#call === call) this.#call = undefined;
  }

  #then(hook: () => void, isUsable: boolean): () => void {
    const guarded = this.#hooks.guard(hook);
    return () => {
      guarded();
      if (!isUsable) return;
      this.#onUsable?.();
      this.#onUsable = undefined;
    };
  }

  #lookedUp(): void {
    if (this.history.lookedUpAt !== undefined) return;
    const now = this.#hooks.now();
    this.history.lookedUpAt = now;
    this.#enter('connect', now);
  }

  #connected(): void {
    const now = this.#hooks.now();
    this.history.connectedAt = now;
    if (!this.history.isTls) this.#ready(now);
    else this.#enter('tls', now);
  }

  #readyUnlessRefused(): void {
    if (this.history.readyAt === undefined && !this.socket.destroyed) this.#ready(this.#hooks.now());
  }

  #ready(now: number): void {
    if (this.history.readyAt !== undefined) return;
    this.history.readyAt = now;
    this.#stop();
    this.#call = undefined;
    this.#onReady?.(now);
    this.#onReady = undefined;
  }

  #enter(phase: ConnectPhase, now: number): void {
    this.#call?.enter(phase, now, callLag(this.#hooks, this.#call, now));
  }
}

/** Tells all that happened to a socket to a call of which it was not known that it waited for it. */
export function replay(
  { startedAt, isTls, lookedUpAt, connectedAt }: ConnectHistory,
  call: CallRecord,
): void {
  call.enter(lookedUpAt === undefined ? 'connect' : 'dns', waitsFrom(call, startedAt));
  if (lookedUpAt !== undefined) call.enter('connect', lookedUpAt);
  if (isTls && connectedAt !== undefined) call.enter('tls', connectedAt);
}

/** Since when a call has waited for what began at an instant: from its start, if nothing lay in between. */
export function waitsFrom(call: CallRecord, at: number): number {
  return at - call.startedAt < FRESH_MS ? call.startedAt : at;
}

/** A call goes out that waited for nothing: what lies between its start and now, this process was busy. */
export function enterRequest(call: CallRecord, now: number): void {
  if (now - call.startedAt < MIN_LOOP_LAG_MS) {
    call.enter('request', call.startedAt);
    return;
  }
  call.enter('event_loop', call.startedAt);
  call.enter('request', now);
}

function isHandshaking(socket: ConnectingSocket): boolean {
  return socket.encrypted === true && socket.secureConnecting === true && socket._secureEstablished !== true;
}

/** First in line, so that what comes next happens in the same order as it is recorded. */
function listen(socket: Socket, listeners: Readonly<Record<string, (value?: unknown) => void>>): Undo {
  makeRoom(socket);
  for (const [event, listener] of Object.entries(listeners)) socket.prependListener(event, listener);
  return () => {
    for (const [event, listener] of Object.entries(listeners)) socket.removeListener(event, listener);
  };
}
