/**
 * Writes headers into the head of a request of node:http that has been rendered to text but not sent. Node renders
 * it when the application ends the request, and keeps the text until a socket is there and connected.
 */
import type { ClientRequest } from 'node:http';
import type { Socket } from 'node:net';
import { putOwnMethod } from '../shared/own-method.ts';

/** A header to write; `name` is a header name in lower case, `value` without line ends. */
export interface HeaderLine {
  readonly name: string;
  readonly value: string;
}

// Fields of Node's OutgoingMessage and Writable, beside their types; each is checked before it is used.
interface Outgoing extends ClientRequest {
  _header: unknown;
  readonly _headerSent: unknown;
  readonly outputData: unknown;
  _implicitHeader: unknown;
}
interface BufferedChunk {
  chunk?: unknown;
  data?: unknown;
  readonly encoding?: unknown;
}

const LINE_END = '\r\n';
const HEAD_END = '\r\n\r\n';

/** Whether the head is still an open set of headers. */
export function isOpen(request: ClientRequest): boolean {
  return (request as Outgoing)._header === null;
}

/**
 * Puts the lines into the rendered head, in place of those with the same names; false where the text was not found
 * or has left already. `socket`: the one that holds the text back, if it has it.
 */
export function writeHead(
  request: ClientRequest,
  lines: readonly HeaderLine[],
  socket: Socket | undefined,
): boolean {
  const outgoing = request as Outgoing;
  const looksForOld = mayHave(request, lines);
  if (outgoing._headerSent === false) {
    if (typeof outgoing._header !== 'string') return false;
    outgoing._header = putLines(outgoing._header, lines, looksForOld);
    return true;
  }
  const output = firstOf(outgoing.outputData);
  if (typeof output?.data === 'string') {
    output.data = putLines(output.data, lines, looksForOld);
    return true;
  }
  return socket !== undefined && editBuffered(socket, lines, looksForOld);
}

/** Calls `put` as late as Node allows a header to be set while the head is open: when it is rendered. */
export function beforeRendered(request: ClientRequest, put: () => void): void {
  const outgoing = request as Outgoing;
  const inner = outgoing._implicitHeader;
  if (typeof inner !== 'function') return;
  putOwnMethod(outgoing, '_implicitHeader', function (this: ClientRequest, ...args: unknown[]): unknown {
    Reflect.deleteProperty(outgoing, '_implicitHeader');
    put();
    return Reflect.apply(inner, this, args);
  });
}

/**
 * Lets a rendered head go, up to its end, which stays with the socket until what went before has left, for
 * `writeHead`. False where there is no such head.
 */
export function splitHead(request: ClientRequest, names: readonly string[], socket: Socket): boolean {
  const output = firstOf((request as Outgoing).outputData);
  if (typeof output?.data !== 'string') return false;
  const { data, encoding } = output;
  const end = data.indexOf(HEAD_END);
  if (end < 0) return false;
  let head = data.slice(0, end);
  for (const name of names) head = withoutLine(head, name);
  // Node writes a head in Latin-1, and in UTF-8 with a body that is.
  socket.write(head + LINE_END, encoding === 'latin1' ? 'latin1' : 'utf8');
  output.data = data.slice(end + LINE_END.length);
  return true;
}

/** Text that a socket keeps. What it counts as its length has to change with it. */
function editBuffered(socket: Socket, lines: readonly HeaderLine[], looksForOld: boolean): boolean {
  const state: unknown = Reflect.get(socket, '_writableState');
  const entry = firstOf(Reflect.get(socket, 'writableBuffer'));
  if (typeof entry?.chunk !== 'string' || typeof state !== 'object' || state === null) return false;
  const length: unknown = Reflect.get(state, 'length');
  if (typeof length !== 'number') return false;
  const edited = putLines(entry.chunk, lines, looksForOld);
  Reflect.set(state, 'length', length + edited.length - entry.chunk.length);
  entry.chunk = edited;
  return true;
}

function firstOf(list: unknown): BufferedChunk | undefined {
  const first: unknown = Array.isArray(list) ? list[0] : undefined;
  // An object of Node's own; its members are checked by whoever reads them.
  return typeof first === 'object' && first !== null ? (first as BufferedChunk) : undefined;
}

/**
 * Headers given as a list are rendered at once and not to be asked for, not even Host: then the text has to be looked
 * through.
 */
function mayHave(request: ClientRequest, lines: readonly HeaderLine[]): boolean {
  for (const { name } of lines) if (request.hasHeader(name)) return true;
  return !request.hasHeader('host');
}

function putLines(text: string, lines: readonly HeaderLine[], looksForOld: boolean): string {
  // The end of a head that was split.
  if (text.startsWith(LINE_END))
    return lines.map(({ name, value }) => `${name}: ${value}\r\n`).join('') + text;
  const end = text.indexOf(HEAD_END);
  if (end < 0) return text;
  let head = text.slice(0, end);
  let added = '';
  for (const { name, value } of lines) {
    if (looksForOld) head = withoutLine(head, name);
    added += `\r\n${name}: ${value}`;
  }
  return head + added + text.slice(end);
}

function withoutLine(head: string, name: string): string {
  return head
    .split('\r\n')
    .filter((line, index) => index === 0 || !line.toLowerCase().startsWith(`${name}:`))
    .join('\r\n');
}
