/** What a request of undici tells of itself, in versions 6 to 8, and of how it ended. */
import type { Attributes } from '@opentelemetry/api';
import { isLookedFor, limitOf, smallerLimit } from '../shared/budget-header.ts';

/** Attributes that instrumentation-undici starts its span with. */
const ATTR_METHOD = 'http.request.method_original';
const ATTR_PATH = 'url.path';
/** What fetch in undici says of a body that was let go of without a reason; a signal says `This operation ...`. */
const FETCH_DISCARD = 'The operation was aborted.';

export interface UndiciRequest {
  readonly method: string;
  readonly path: string;
  readonly origin: string | URL;
  readonly headers: unknown;
  readonly body: unknown;
  /** Bytes of a body whose length is known; null or absent where it is not. */
  readonly contentLength?: number | null;
  readonly completed: boolean;
  /** undici's own members have symbols for names. */
  readonly [key: symbol]: unknown;
}

/** Whether one of its headers is looked for at all, in one pass: without any, none has to be looked for. */
export function hasLookedFor(headers: unknown): boolean {
  if (!Array.isArray(headers)) return false;
  for (let i = 0; i < headers.length; i += 2) {
    const name: unknown = headers[i];
    if (typeof name !== 'string' || isLookedFor(name)) return true;
  }
  return false;
}

/** The instrumentation gives its span the method as it was and the path as the URL class writes it. */
export function isSpanOf(request: UndiciRequest, attributes: Attributes): boolean {
  const path = attributes[ATTR_PATH];
  return (
    attributes[ATTR_METHOD] === request.method && typeof path === 'string' && request.path.startsWith(path)
  );
}

/** The smallest limit that the application wrote on the request. */
export function ownLimit(headers: unknown): number | undefined {
  if (!Array.isArray(headers)) return undefined;
  let limit: number | undefined;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    limit = smallerLimit(limit, limitOf(String(headers[i]), headers[i + 1]));
  }
  return limit;
}

export function removeHeader(headers: unknown[], name: string): void {
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    const key = headers[i];
    if (typeof key === 'string' && key.length === name.length && key.toLowerCase() === name)
      headers.splice(i, 2);
  }
}

/** A stream or an iterable, for which a client waits a moment before it connects. */
export function isPiecewise(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !(body instanceof Uint8Array);
}

/**
 * The body was let go of, and nobody gave up on the call: `cancel()` of a fetch body, with or without a reason that
 * is no error, also by the garbage collector; `destroy()` of the body of `undici.request`. All of these come as an
 * abort. A signal's own abort has another message, or stands on the handler as its reason.
 */
export function isDiscard(request: UndiciRequest, error: unknown): boolean {
  if (request.completed) return false;
  if (!(error instanceof Error)) return true;
  if (error.name !== 'AbortError') return false;
  if ('code' in error && error.code === 'UND_ERR_ABORTED') return abortReason(request) === undefined;
  return error.message === FETCH_DISCARD;
}

/** The reason of the signal given to `undici.request` and its like, which is kept on the request's handler. */
export function abortReason(request: UndiciRequest): unknown {
  const handler = handlerOf(request);
  const reason: unknown =
    typeof handler === 'object' && handler !== null ? Reflect.get(handler, 'reason') : undefined;
  return reason ?? undefined;
}

export function isDestroyed(socket: object | undefined): boolean {
  return socket !== undefined && Reflect.get(socket, 'destroyed') === true;
}

/** Key of the handler, one per copy of undici. It is not exported, and finding it costs 2 µs. */
const handlerKeys: symbol[] = [];
/** More copies than these are looked at anew each time. */
const MAX_HANDLER_KEYS = 8;

/** What a request tells its events to; undefined where it cannot be found. */
export function handlerOf(request: UndiciRequest): unknown {
  // Not for..of: V8 makes an iterator and its results here, for every request.
  for (let i = 0; i < handlerKeys.length; i++) {
    const known = handlerKeys[i];
    if (known !== undefined && known in request) return request[known];
  }
  const key = Object.getOwnPropertySymbols(request).find(({ description }) => description === 'handler');
  if (key === undefined) return undefined;
  if (handlerKeys.length < MAX_HANDLER_KEYS) handlerKeys.push(key);
  return request[key];
}
