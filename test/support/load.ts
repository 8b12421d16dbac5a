/** Many requests to one service, cheaply: several on each connection, sent at once. */
import http from 'node:http';
import net from 'node:net';
import type { Service } from './service.ts';
import { Wire } from './stage.ts';

const WIDTH = 10;
const STATUS = 'HTTP/1.1 200';

export interface BurstOptions {
  /** Header lines of each request. */
  readonly lines?: (index: number) => readonly string[];
  /** Requests that a connection carries, and so how many times ten are open at once. Divides the count. */
  readonly perConnection?: number;
}

/** Sends `count` GETs and waits for their answers. */
export async function burst(
  service: Service,
  count: number,
  path: (index: number) => string,
  { lines = () => ['x-request-timeout-ms: 20000'], perConnection = 10 }: BurstOptions = {},
): Promise<void> {
  let next = 0;
  const connection = async () => {
    while (next < count) {
      const first = next;
      next += perConnection;
      let text = '';
      for (let i = first; i < next; i++) {
        const all = ['Host: a', ...lines(i), ...(i === next - 1 ? ['Connection: close'] : [])];
        text += `GET ${path(i)} HTTP/1.1\r\n${all.join('\r\n')}\r\n\r\n`;
      }
      const answered = await send(service.port, text);
      if (answered !== perConnection)
        throw new Error(`${answered} answers of ${perConnection} to ${path(first)}`);
    }
  };
  await Promise.all(Array.from({ length: WIDTH }, connection));
}

/** Gives how many answers with status 200 came until the connection was closed. */
function send(port: number, text: string): Promise<number> {
  return new Promise((resolve, reject) => {
    let count = 0;
    let rest = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(text));
    socket.setEncoding('latin1');
    socket.on('data', (piece: string) => {
      const all = rest + piece;
      count += all.split(STATUS).length - 1;
      // A status line may come in two pieces, and may not be counted twice.
      rest = all.slice(-(STATUS.length - 1));
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(count));
  });
}

/** Clients that leave: half of them while the service waits for a call, half of them in the middle of an upload. */
export async function leave(service: Service, count: number): Promise<void> {
  for (let done = 0; done < count; done += 50) {
    const wires = Array.from({ length: 50 }, (_, i) =>
      new Wire(service.port).send(
        i % 2 === 0
          ? 'GET /fetch HTTP/1.1\r\nHost: a\r\n\r\n'
          : 'POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nhalf',
      ),
    );
    await new Promise((resolve) => setTimeout(resolve, 5));
    for (const [i, wire] of wires.entries()) wire.leave(i % 4 < 2 ? 'reset' : 'fin');
    for (const wire of wires) await wire.ends();
  }
}

/** What the service tells of its process after a collection. */
export interface Stats {
  readonly heapUsed: number;
  readonly external: number;
  readonly arrayBuffers: number;
  readonly resources: number;
  readonly serverListeners: number;
  readonly processListeners: number;
  readonly mostSocketListeners: number;
  /** Live records of ours; absent without the flag. */
  readonly records?: number;
}

export function stats(service: Service): Promise<Stats> {
  return new Promise((resolve, reject) => {
    http
      .get(`${service.origin}/stats`, { agent: false }, async (response) => {
        // What the load service of the tests answers.
        resolve(JSON.parse(Buffer.concat(await response.toArray()).toString()) as Stats);
      })
      .on('error', reject);
  });
}
