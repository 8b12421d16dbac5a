/** Servers on ephemeral loopback ports and raw clients, for tests that care about what is on the wire. */
import { once } from 'node:events';
import http, { type Server } from 'node:http';
import net, { type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

/** Starts listening; gives the port. */
export async function listen(server: net.Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // A TCP server that listens has an address of this form.
  return (server.address() as AddressInfo).port;
}

/** Ends every connection and waits until the server is closed. */
export async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

/** A connected socket whose incoming bytes are kept as text; errors are left to the test to look for. */
export class RawClient {
  readonly socket: Socket;
  text = '';

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      this.text += chunk.toString('latin1');
    });
  }

  static async connect(port: number): Promise<RawClient> {
    const socket = net.connect(port, '127.0.0.1');
    const client = new RawClient(socket);
    await once(socket, 'connect');
    return client;
  }

  /** Writes a request with the headers that every request needs. */
  send(method: string, path: string, headers: Readonly<Record<string, string>> = {}, body = ''): void {
    const lines = Object.entries({ host: 'localhost', ...headers }).map(
      ([name, value]) => `${name}: ${value}\r\n`,
    );
    this.socket.write(`${method} ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`);
  }

  /** Waits for a text from the server. */
  async see(text: string): Promise<void> {
    await until(() => this.text.includes(text), `"${text}" from the server`);
  }
}

/** Waits until something holds, at most ten seconds, which no healthy run comes near. */
export async function until(holds: () => boolean, what = 'the condition'): Promise<void> {
  const giveUpAt = performance.now() + 10_000;
  while (!holds()) {
    if (performance.now() > giveUpAt) throw new Error(`${what} did not come about`);
    await sleep(2);
  }
}

export interface Reply {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: string;
}

export interface AskOptions {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly agent?: http.Agent;
}

/** One request with node:http, its whole reply. */
export async function ask(port: number, options: AskOptions = {}): Promise<Reply> {
  const { method = 'GET', path = '/', headers = {}, body, agent } = options;
  const request = http.request({ host: '127.0.0.1', port, method, path, headers: { ...headers }, agent });
  request.end(body);
  // 'response' always comes with one IncomingMessage.
  const [response] = (await once(request, 'response')) as [http.IncomingMessage];
  let text = '';
  for await (const chunk of response) text += String(chunk);
  return { status: response.statusCode ?? 0, headers: response.headers, body: text };
}
