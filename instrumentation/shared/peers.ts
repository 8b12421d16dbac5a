/** What is known of an address that calls go to, looked up once per address and not per call. */
import type { Target } from '../../src/call-recorder.ts';
import type { OutgoingHeader } from '../../src/carriage.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';

export interface Peer {
  readonly target: Target;
  /** The headers that go there with all but detached work; undefined until the first call asks. */
  headers: readonly OutgoingHeader[] | undefined;
}

/**
 * Addresses kept. A service that calls more of them (a crawler, a webhook sender) looks some up again; it does
 * not grow.
 */
export const MAX_PEERS = 1_000;

export class Peers {
  readonly #hooks: Hooks;
  readonly #peers = new Map<string, Peer>();

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
  }

  /** `address` is what the library calls it: an origin, or host and port. */
  find(address: string): Peer | undefined {
    return this.#peers.get(address);
  }

  add(address: string, host: string, port: number | undefined): Peer {
    const peer: Peer = { target: this.#hooks.calls.target(host, port, 'http'), headers: undefined };
    if (this.#peers.size >= MAX_PEERS) this.#peers.clear();
    this.#peers.set(address, peer);
    return peer;
  }

  /** `origin` as a URL has it, with a scheme of HTTP. */
  ofOrigin(origin: string): Peer {
    const known = this.find(origin);
    if (known !== undefined) return known;
    const { hostname, port, protocol } = new URL(origin);
    const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
    const defaultPort = protocol === 'https:' ? 443 : 80;
    return this.add(origin, host, port === '' ? defaultPort : Number(port));
  }

  headersFor(peer: Peer, call: CallRecord): readonly OutgoingHeader[] {
    if (peer.headers !== undefined && !call.detached) return peer.headers;
    const { host, port } = peer.target;
    const headers = this.#hooks.carriage.headersFor(call, host, port);
    if (!call.detached) peer.headers = headers;
    return headers;
  }
}
