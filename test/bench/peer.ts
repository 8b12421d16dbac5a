/** Whom the measured service talks to beside PostgreSQL: the peer of its `fetch`, and the sink of its spans. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

const POLL_MS = 10;
const MAX_POLLS = 3_000;

export class Peer {
  readonly #held: ServerResponse[] = [];
  readonly #exports = new Map<string, number>();
  readonly #server = createServer((request, response) => this.#handle(request, response));

  /** Starts on a free port of the loopback. */
  async start(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    // Connections are kept between the rounds, so that no variant pays for opening them.
    this.#server.keepAliveTimeout = 60_000;
    // A server that listens on a port has an address of this form.
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}`;
  }

  /** Resolves when `count` requests are being held. */
  async holds(count: number): Promise<void> {
    for (let polls = 0; this.#held.length < count; polls++) {
      if (polls === MAX_POLLS) throw new Error(`only ${this.#held.length} of ${count} requests are held`);
      await sleep(POLL_MS);
    }
  }

  release(): void {
    for (const response of this.#held.splice(0)) response.end('{}');
  }

  /** Batches of spans that came under `/<sender>/`. */
  exportsOf(sender: string): number {
    return this.#exports.get(sender) ?? 0;
  }

  /** Closes the connections that nothing is sent on. */
  disconnect(): void {
    this.#server.closeIdleConnections();
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    if (request.url === '/hold') {
      this.#held.push(response);
      return;
    }
    if (request.method === 'GET') {
      response.setHeader('content-type', 'application/json');
      response.end('{"item":"a","available":7}');
      return;
    }
    // An export of spans: counted and dropped.
    const sender = request.url?.split('/')[1] ?? '';
    this.#exports.set(sender, this.exportsOf(sender) + 1);
    request.resume().once('end', () => response.end());
  }
}
