/** A way to a database that can be cut, and a place where nobody answers. */
import net, { type Socket } from 'node:net';
import { listen } from './loopback.ts';

export class DatabaseProxy {
  readonly #server: net.Server;
  readonly #sockets = new Set<Socket>();
  #isCut = false;
  port = 0;

  private constructor(target: number, onBytes: (text: string) => void) {
    this.#server = net.createServer((socket) => {
      if (this.#isCut) {
        // With bytes unread it would be a reset, or not, as they come.
        socket.on('error', () => {}).on('data', () => socket.end());
        return;
      }
      const upstream = net.connect(target, '127.0.0.1');
      for (const one of [socket, upstream]) {
        this.#sockets.add(one);
        one.on('error', () => {});
        one.on('close', () => {
          this.#sockets.delete(one);
          socket.destroy();
          upstream.destroy();
        });
      }
      socket.on('data', (chunk) => onBytes(chunk.toString('latin1')));
      socket.pipe(upstream);
      upstream.pipe(socket);
    });
  }

  /** `onBytes` is told what clients send. */
  static async start(target: number, onBytes: (text: string) => void = () => {}): Promise<DatabaseProxy> {
    const proxy = new DatabaseProxy(target, onBytes);
    proxy.port = await listen(proxy.#server);
    return proxy;
  }

  /** Ends every connection at once; new ones are ended as soon as they come. */
  cut(): void {
    this.#isCut = true;
    for (const socket of this.#sockets) socket.destroy();
  }

  restore(): void {
    this.#isCut = false;
  }

  close(): void {
    this.cut();
    this.#server.close();
  }
}

/** Takes connections and never says a word. */
export async function startSilentServer(): Promise<{ readonly port: number; close(): void }> {
  const sockets = new Set<Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.resume().on('error', () => {});
  });
  const port = await listen(server);
  return {
    port,
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}
