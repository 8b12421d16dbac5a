/** Which attempt an outgoing node:http request is. */
import type { ClientRequest } from 'node:http';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import { declarationOf, identityOf } from '../shared/attempt-marks.ts';
import type { Peer } from '../shared/peers.ts';
import { addressKey } from './http-request.ts';

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
