/** What an outgoing request of node:http tells of itself. */
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import https from 'node:https';
import { isLookedFor, limitOf, smallerLimit } from '../shared/budget-header.ts';
import { putOwnMethod } from '../shared/own-method.ts';

/**
 * How a request comes to its socket: from its agent at once, from its agent when one is free, or by code of the
 * application or a library, which may have to connect first (a proxy agent, `createConnection`).
 */
export type SocketSource = 'assigned' | 'queued' | 'custom';

export interface Address {
  /** Names the address among those of one protocol. */
  readonly key: string;
  readonly host: string;
  readonly port: number | undefined;
}

// Fields beside the types: of Node's agent, and of the socket that a request has been given but not been told of.
interface AgentLists {
  readonly requests?: Readonly<Record<string, readonly unknown[]>>;
  readonly sockets?: Readonly<Record<string, readonly { readonly _httpMessage?: unknown }[]>>;
}

/**
 * `key` alone costs nothing and is what to look the rest up by. The port stands only in the Host header, which
 * counts as long as it names the host that is connected to.
 */
export function addressKey(request: ClientRequest): string {
  const header = request.getHeader('host');
  return typeof header === 'string' && namesHost(header, request.host) ? header : request.host;
}

export function addressOf(request: ClientRequest, key: string): Address {
  const port = key === request.host ? '' : key.slice(key.lastIndexOf(':') + 1);
  const defaultPort = request.protocol === 'https:' ? 443 : 80;
  return { key, host: request.host, port: /^\d+$/.test(port) ? Number(port) : defaultPort };
}

function namesHost(header: string, host: string): boolean {
  const start = header.startsWith('[') ? 1 : 0;
  if (!header.startsWith(host, start)) return false;
  let end = start + host.length;
  if (header[end] === ']') end++;
  return header.length === end || header[end] === ':';
}

/** Whether one of its headers may be one that is looked for: of most requests none is. */
export function mayHaveLookedFor(request: ClientRequest): boolean {
  const names = request.getHeaderNames();
  for (const name of names) if (isLookedFor(name)) return true;
  // Headers given as an array are there as text only.
  return names.length === 0;
}

/** The smallest limit that the application wrote on the request. */
export function ownLimit(request: ClientRequest): number | undefined {
  let limit: number | undefined;
  const names = request.getHeaderNames();
  for (const name of names) limit = smallerLimit(limit, limitOf(name, request.getHeader(name)));
  if (names.length > 0) return limit;
  // Headers given as an array are there as text only.
  const head: unknown = Reflect.get(request, '_header');
  if (typeof head !== 'string') return undefined;
  for (const line of head.split('\r\n')) {
    const colon = line.indexOf(':');
    if (colon > 0) limit = smallerLimit(limit, limitOf(line.slice(0, colon), line.slice(colon + 1).trim()));
  }
  return limit;
}

/** The answer, from its head on. A member of Node's, beside the types. */
export function responseOf(request: ClientRequest): IncomingMessage | undefined {
  return (Reflect.get(request, 'res') as IncomingMessage | null) ?? undefined;
}

/** To be asked when the request has just been made, which is after it was handed to its agent. */
export function sourceOf(request: ClientRequest): SocketSource {
  // An agent may be any object with addRequest; what is missing on it is not looked at.
  const agent = Reflect.get(request, 'agent') as (http.Agent & AgentLists) | undefined;
  if (agent === undefined || agent === null) return 'custom';
  for (const name in agent.requests) if (agent.requests[name]?.at(-1) === request) return 'queued';
  return connectsAtOnce(agent) || isAssigned(agent, request) ? 'assigned' : 'custom';
}

/**
 * In its agent's queue a request reports its end only once a socket is free, which may be much later. Puts a
 * `destroy` of its own on this request, through which every abort goes; it changes nothing else.
 */
export function tellWhenDestroyedInQueue(request: ClientRequest, tell: (error: unknown) => void): void {
  const { destroy } = request;
  function own(this: ClientRequest, ...args: Parameters<ClientRequest['destroy']>): ClientRequest {
    // With a socket, Node tells by itself.
    if (this.socket === null) tell(args[0]);
    return Reflect.apply(destroy, this, args);
  }
  putOwnMethod(request, 'destroy', own);
}

function connectsAtOnce(agent: http.Agent): boolean {
  const createConnection: unknown = Reflect.get(agent, 'createConnection');
  const isNodes =
    createConnection === Reflect.get(http.Agent.prototype, 'createConnection') ||
    createConnection === Reflect.get(https.Agent.prototype, 'createConnection');
  return isNodes && Reflect.get(agent, 'createSocket') === Reflect.get(http.Agent.prototype, 'createSocket');
}

function isAssigned(agent: AgentLists, request: ClientRequest): boolean {
  for (const name in agent.sockets) if (agent.sockets[name]?.at(-1)?._httpMessage === request) return true;
  return false;
}

/** Node's word for a connection that ended before its answer: cut by the peer, or by the application. */
export function isHangUp(error: unknown): boolean {
  return error instanceof Error && error.message === 'socket hang up';
}
