/** A server that keeps the bytes that it is sent, connection by connection, and answers with bytes of the test's. */
import { once } from 'node:events';
import net, { type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../demo/free-port.ts';

/** What is done with a request, once it is here with its body. `head` is its text up to the empty line. */
export type Answer = (socket: Socket, head: string, connection: number) => void;

interface Connection {
  bytes: string;
  end: 'open' | 'ended' | 'reset';
}

/** Headers that an instrumentation adds: ours, and those of OpenTelemetry, whose values are random. */
const ADDED = /^time-budget: [^\r\n]*\r\n/gim;
const OURS = /^time-budget: remaining=\d+, attempt=1, caller=service\r\n/gm;
const RANDOM = /^(traceparent: )[^\r\n]*/gim;

export class RawPeer {
  readonly server: net.Server;
  readonly #connections: Connection[] = [];
  readonly #sockets = new Set<Socket>();
  port = 0;

  private constructor(answer: Answer) {
    this.server = net.createServer({ allowHalfOpen: true }, (socket) => this.#accept(socket, answer));
  }

  static async start(answer: Answer): Promise<RawPeer> {
    const peer = new RawPeer(answer);
    peer.port = await freePort();
    peer.server.listen(peer.port, '127.0.0.1');
    await once(peer.server, 'listening');
    return peer;
  }

  /** How many headers of ours have come, and not of the application. */
  get budgets(): number {
    return this.#connections.reduce((sum, { bytes }) => sum + (bytes.match(OURS)?.length ?? 0), 0);
  }

  /** All that came, as text, without what instrumentations add; the order of connections is left to chance. */
  get transcript(): readonly string[] {
    const texts = this.#connections.map(
      ({ bytes, end }) =>
        `${bytes.replace(ADDED, '').replace(RANDOM, '$1...').replaceAll(`:${this.port}`, ':PORT')}[${end}]`,
    );
    return texts.sort();
  }

  /** Waits until the other side has ended every connection; the end of one that it never ends stays `open`. */
  async settled(timeoutMs: number): Promise<void> {
    const giveUpAt = performance.now() + timeoutMs;
    while (this.#sockets.size > 0 && performance.now() < giveUpAt) await sleep(10);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.server.close();
  }

  #accept(socket: Socket, answer: Answer): void {
    const connection: Connection = { bytes: '', end: 'open' };
    const index = this.#connections.push(connection) - 1;
    this.#sockets.add(socket);
    let seen = 0;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      connection.bytes += text;
      for (;;) {
        const length = requestLength(connection.bytes.slice(seen));
        if (length === undefined) return;
        const request = connection.bytes.slice(seen, seen + length);
        seen += length;
        answer(socket, request.slice(0, request.indexOf('\r\n\r\n')), index);
      }
    });
    socket.on('end', () => {
      if (connection.end === 'open') connection.end = 'ended';
      socket.end();
    });
    socket.on('error', () => {
      connection.end = 'reset';
    });
    socket.on('close', () => this.#sockets.delete(socket));
  }
}

/** Length of the first request of a text with its body; undefined while it is incomplete. */
function requestLength(text: string): number | undefined {
  const headEnd = text.indexOf('\r\n\r\n');
  if (headEnd < 0) return undefined;
  const head = text.slice(0, headEnd).toLowerCase();
  const bodyStart = headEnd + 4;
  // Answered before its body is here.
  if (head.includes('\r\nexpect: 100-continue') || head.startsWith('post /reset-upload')) return bodyStart;
  if (head.includes('transfer-encoding: chunked')) {
    const last = text.indexOf('0\r\n', bodyStart);
    const end = last < 0 ? -1 : text.indexOf('\r\n\r\n', last);
    return end < 0 ? undefined : end + 4;
  }
  const length = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
  return text.length >= bodyStart + length ? bodyStart + length : undefined;
}
