/** What an outgoing HTTP request itself tells of the attempt it is: what it is compared by, and what is declared. */
import type { ClientRequest } from 'node:http';
import type { CallIdentity, Declaration } from '../src/core/operations.ts';
import type { CallRecord } from '../src/records.ts';
import type { Hooks } from './adapter.ts';
import { addressKey } from './http-request.ts';
import type { Peer } from './peers.ts';
import type { UndiciRequest } from './undici-request.ts';

/** AWS SDK v3 writes it on every request: `attempt=1; max=3`. */
const HEADER_AWS_ATTEMPT = 'amz-sdk-request';
const AWS_ATTEMPT = /^attempt=(\d{1,4})(?:;|$)/;
const HEADER_IDEMPOTENCY_KEY = 'idempotency-key';
const HEADER_CONTENT_LENGTH = 'content-length';

/** How to read a header of a request, by its name in lower case. */
type HeaderReader = (name: string) => unknown;

/**
 * Before its headers are put, one of which says which attempt it is. Does not throw: the call goes on to be recorded
 * whatever its request or its handler is like.
 */
export function beginHttpAttempt(hooks: Hooks, call: CallRecord, peer: Peer, request: ClientRequest): void {
  try {
    const { attempts } = hooks.calls;
    const { method, path } = request;
    const header = (name: string) => request.getHeader(name);
    const announced = attempts.takeAnnounced(call, addressKey(request), method, path);
    const identity = identityOf(peer.target.origin, method, path, header, undefined);
    attempts.begin(call, identity, announced ?? declarationOf(header));
  } catch (error) {
    hooks.report(error);
  }
}

/** As beginHttpAttempt. */
export function beginUndiciAttempt(hooks: Hooks, call: CallRecord, peer: Peer, request: UndiciRequest): void {
  try {
    const header = undiciHeaders(request.headers);
    const { method, path, contentLength } = request;
    const identity = identityOf(peer.target.origin, method, path, header, contentLength ?? undefined);
    hooks.calls.attempts.begin(call, identity, undiciDeclarationOf(request) ?? declarationOf(header));
  } catch (error) {
    hooks.report(error);
  }
}

/** The head of the answer has come. */
export function enterResponse(hooks: Hooks, call: CallRecord, status: number): void {
  const now = hooks.now();
  call.enter('response', now, hooks.recorder.clock.waitMs(now));
  hooks.calls.attempts.head(call, status, now);
}

function identityOf(
  origin: string,
  method: string,
  path: string,
  header: HeaderReader,
  bodyLength: number | undefined,
): CallIdentity {
  const key = header(HEADER_IDEMPOTENCY_KEY);
  const length = bodyLength ?? Number(header(HEADER_CONTENT_LENGTH) ?? Number.NaN);
  return {
    origin,
    method,
    path,
    size: Number.isNaN(length) ? undefined : length,
    key: typeof key === 'string' ? key : undefined,
  };
}

/** undefined where the request says nothing, or nothing that can be read. */
function declarationOf(header: HeaderReader): Declaration | undefined {
  const value = header(HEADER_AWS_ATTEMPT);
  const attempt = typeof value === 'string' ? Number(AWS_ATTEMPT.exec(value)?.[1] ?? 0) : 0;
  return attempt >= 1 ? { owner: 'aws_sdk', attempt } : undefined;
}

/**
 * undici's RetryAgent and its interceptor `retry` (6 and 8) give each attempt to the same handler, which counts
 * them. In 7 it stands behind a private field: there a repeat is only detected. The handler of an original declares
 * nothing, since a loop around it may repeat it.
 */
function undiciDeclarationOf(request: object): Declaration | undefined {
  const key = Object.getOwnPropertySymbols(request).find(({ description }) => description === 'handler');
  const handler: unknown = key === undefined ? undefined : Reflect.get(request, key);
  if (typeof handler !== 'object' || handler === null || !('retryOpts' in handler)) return undefined;
  const retries: unknown = Reflect.get(handler, 'retryCount');
  const isRetry = typeof retries === 'number' && Number.isInteger(retries) && retries > 0;
  return isRetry ? { owner: 'undici', attempt: retries + 1 } : undefined;
}

/** Reads undici's list of names and values in turn. */
function undiciHeaders(headers: unknown): HeaderReader {
  return (name) => {
    if (!Array.isArray(headers)) return undefined;
    for (let i = 0; i + 1 < headers.length; i += 2) {
      const key: unknown = headers[i];
      if (typeof key === 'string' && key.length === name.length && key.toLowerCase() === name) {
        return headers[i + 1] as unknown;
      }
    }
    return undefined;
  };
}
