import type { ServerResponse } from 'node:http';
import type { Exchange } from './exchange.ts';

/**
 * What is open on one connection of a server. It is told of the connection's end, and so the responses need no
 * listener for 'close': one of ours and one of the service's make an array, which V8, having seen such arrays live
 * long elsewhere, puts among the old objects, where a dead one keeps all that the service's listener holds until the
 * next major collection (with OpenTelemetry's listener 9 kB per request; Node 24).
 */
export class Connection {
  /** When the socket last ran into its idle limit; -Infinity for one that is listened to and has not yet. */
  timedOutAt: number | undefined;
  /** Several where requests are pipelined. */
  readonly #open: Exchange[] = [];

  /** Some other request waits for its reply, so that the next one has no socket of its own yet. */
  get isBusy(): boolean {
    return this.#open.length > 0;
  }

  /** undefined for one that has ended. */
  exchangeOf(response: ServerResponse): Exchange | undefined {
    const open = this.#open;
    // From the latest, which is mostly the only one.
    for (let i = open.length - 1; i >= 0; i--) if (open[i]?.response === response) return open[i];
    return undefined;
  }

  opened(exchange: Exchange): void {
    this.#open.push(exchange);
  }

  ended(exchange: Exchange): void {
    if (this.#open.at(-1) === exchange) this.#open.pop();
    else {
      const index = this.#open.indexOf(exchange);
      if (index >= 0) this.#open.splice(index, 1);
    }
  }

  /** Those that had not ended when the connection did, which are not open afterwards. */
  close(): readonly Exchange[] {
    return this.#open.splice(0);
  }
}
