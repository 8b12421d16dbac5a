/** Which attempt an outgoing node:http request is. */
import type { ClientRequest } from 'node:http';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import { declarationOf, type HeaderReader, identityOf, NO_HEADERS } from '../shared/attempt-marks.ts';
import type { Peer } from '../shared/peers.ts';

/**
 * Before its headers are put, one of which says which attempt it is. Does not throw: the call goes on to be recorded
 * whatever its request or its handler is like. `key` is that of its address; `isMarked`: it may have a header that is
 * looked for.
 */
export function beginHttpAttempt(
  hooks: Hooks,
  call: CallRecord,
  peer: Peer,
  key: string,
  request: ClientRequest,
  isMarked: boolean,
): void {
  try {
    const { attempts } = hooks.calls;
    const { method, path } = request;
    const header = isMarked ? headersOf(request) : NO_HEADERS;
    const announced = attempts.takeAnnounced(call, key, method, path);
    const identity = identityOf(peer.target.origin, method, path, header, undefined);
    attempts.begin(call, identity, announced ?? declarationOf(header));
  } catch (error) {
    hooks.report(error);
  }
}

function headersOf(request: ClientRequest): HeaderReader {
  return (name) => request.getHeader(name);
}
