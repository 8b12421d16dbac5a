import type { ServerResponse } from 'node:http';
import type { Exchange } from './exchange.ts';

const NONE: readonly Exchange[] = [];

/**
 * What is open on one connection of a server. It is told of the connection's end, so that most responses need no
 * listener for 'close' (one still buffered when its handler ends it has one from then on, and one that waits for its
 * turn). One of ours and one of the service's would make an array, which V8, having seen such arrays live long
 * elsewhere, puts among the old objects, where a dead one keeps all that the service's listener holds until the next
 * major collection: with OpenTelemetry's listener 9 kB per request (Node 24).
 */
export class Connection {
  /** When the socket last ran into its idle limit; -Infinity for one that is listened to and has not yet. */
  timedOutAt: number | undefined;
  /** The newest of those that are open: mostly the only one. */
  #newest: Exchange | undefined;
  /** Those before it, where requests are pipelined. */
  #earlier: Exchange[] | undefined;

  /** Those that are over, although nobody has said so. */
  unheard(): readonly Exchange[] {
    if (this.#newest === undefined) return NONE;
    return [...(this.#earlier ?? []), this.#newest].filter((exchange) => exchange.isFinished);
  }

  opened(exchange: Exchange): void {
    if (this.#newest !== undefined) {
      this.#earlier ??= [];
      this.#earlier.push(this.#newest);
    }
    this.#newest = exchange;
  }

  /** undefined for one that has ended. */
  exchangeOf(response: ServerResponse): Exchange | undefined {
    if (this.#newest?.response === response) return this.#newest;
    return this.#earlier?.find((exchange) => exchange.response === response);
  }

  ended(exchange: Exchange): void {
    if (this.#newest === exchange) this.#newest = this.#earlier?.pop();
    else this.#earlier = this.#earlier?.filter((other) => other !== exchange);
  }

  /** Those that had not ended when the connection did, which are not open afterwards. */
  close(): readonly Exchange[] {
    const open = this.#earlier ?? [];
    if (this.#newest !== undefined) open.push(this.#newest);
    this.#newest = undefined;
    this.#earlier = undefined;
    return open;
  }
}
