/** Which attempt a request of undici is. */
import type { Declaration } from '../../src/core/operations.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import { declarationOf, type HeaderReader, identityOf, NO_HEADERS } from '../shared/attempt-marks.ts';
import type { Peer } from '../shared/peers.ts';
import { handlerOf, type UndiciRequest } from './undici-request.ts';

/**
 * `isMarked`: one of its headers is looked for. Does not throw: the call goes on to be recorded whatever its request or
 * its handler is like.
 */
export function beginUndiciAttempt(
  hooks: Hooks,
  call: CallRecord,
  peer: Peer,
  request: UndiciRequest,
  isMarked: boolean,
): void {
  try {
    const header = isMarked ? undiciHeaders(request.headers) : NO_HEADERS;
    const { method, path, contentLength } = request;
    const identity = identityOf(peer.target.origin, method, path, header, contentLength ?? undefined);
    hooks.calls.attempts.begin(call, identity, undiciDeclarationOf(request) ?? declarationOf(header));
  } catch (error) {
    hooks.report(error);
  }
}

/**
 * undici's RetryAgent and its interceptor `retry` (6 and 8) give each attempt to the same handler, which counts
 * them. In 7 it stands behind a private field: there a repeat is only detected. The handler of an original declares
 * nothing, since a loop around it may repeat it.
 */
function undiciDeclarationOf(request: UndiciRequest): Declaration | undefined {
  const handler = handlerOf(request);
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
