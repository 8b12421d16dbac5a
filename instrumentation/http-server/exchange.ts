import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Ending } from '../../src/core/outcome.ts';
import type { ArrivalFacts } from '../../src/recorder.ts';
import type { RequestRecord } from '../../src/records.ts';
import type { Connection } from './connection.ts';

/** What Node publishes of a request that starts. */
export interface RequestStart {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
  readonly server: Server;
}

/**
 * A request and its response, with what is known of its arrival and its end: one object for all that is asked of
 * it. Held by its connection until it ends, and by nothing that outlives its response: a record that outlives the
 * request holds no request or socket.
 */
export class Exchange implements ArrivalFacts, Ending {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly socket: Socket;
  readonly server: Server;
  /** Read once: Node makes them when they are first asked for. */
  readonly headers: IncomingMessage['headers'];
  /** Both undefined until it has been entered. */
  record: RequestRecord | undefined;
  connection: Connection | undefined;
  completed = false;
  status: number | undefined;
  outsideHandler = false;
  retryAfter = false;
  /** The response has a listener of ours for its 'close'. */
  isListenedTo = false;

  constructor({ request, response, socket, server }: RequestStart) {
    this.request = request;
    this.response = response;
    this.socket = socket;
    this.server = server;
    this.headers = request.headers;
  }

  get remoteAddress(): string | undefined {
    return this.socket.remoteAddress;
  }

  get method(): string {
    return this.request.method ?? '';
  }

  get path(): string {
    const url = this.request.url ?? '';
    const end = url.indexOf('?');
    return end < 0 ? url : url.slice(0, end);
  }

  /**
   * The socket is taken off at 'finish'. `writableFinished` alone is true on Node 22 for a reply that the client reset
   * before it had all of it.
   */
  get isFinished(): boolean {
    return this.response.writableFinished && this.response.socket === null;
  }

  /** The reply is whole and with the kernel. */
  complete(): void {
    const { response } = this;
    this.completed = true;
    this.status = response.statusCode;
    this.retryAfter = this.status === 503 && saysRetryAfter(response);
  }
}

/**
 * Headers that are given to `writeHead` alone, as Fastify gives them, are kept nowhere but in the block that was sent,
 * whose name is Node's own.
 */
function saysRetryAfter(response: ServerResponse): boolean {
  if (response.hasHeader('retry-after')) return true;
  const block: unknown = '_header' in response ? response._header : undefined;
  return typeof block === 'string' && /\r\nretry-after:/i.test(block);
}
