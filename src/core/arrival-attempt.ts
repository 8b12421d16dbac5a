/** Which attempt an arriving request is, by its sender and by the proxy or stub in between. */
import type { Headers } from './received.ts';
import { MAX_ATTEMPT } from './wire-time-budget.ts';

/** Envoy and Istio: ordinal of the proxy's attempt, 1 = its first, where the route is told to include it. */
export const HEADER_ENVOY_ATTEMPT = 'x-envoy-attempt-count';
/** gRPC (proposal A6): attempts before this one; absent on the first. */
export const HEADER_GRPC_ATTEMPTS = 'grpc-previous-rpc-attempts';

export interface ArrivalAttempt {
  /** The largest ordinal that anybody names; 1 = original. */
  readonly attempt: number;
  /** This arrival, or an attempt that it descends from, is a repeat. */
  readonly repeated: boolean;
}

const FIRST: ArrivalAttempt = Object.freeze({ attempt: 1, repeated: false });

/**
 * `own` is what our own header says, as far as it was believed. The other counts are looked at only from a `trusted`
 * sender; one that is no whole number from 1 (gRPC: from 0) to MAX_ATTEMPT is ignored.
 */
export function readArrivalAttempt(
  headers: Headers,
  own: { readonly attempt: number | undefined; readonly repeated: boolean },
  trusted: boolean,
): ArrivalAttempt {
  let attempt = own.attempt ?? 1;
  if (trusted) {
    attempt = Math.max(
      attempt,
      countOf(headers[HEADER_ENVOY_ATTEMPT]),
      countOf(headers[HEADER_GRPC_ATTEMPTS]) + 1,
    );
  }
  if (attempt <= 1 && !own.repeated) return FIRST;
  return { attempt: Math.min(attempt, MAX_ATTEMPT), repeated: true };
}

/** 0 for nothing usable, also for a header that was sent twice: which of the two counts cannot be told. */
function countOf(value: string | string[] | undefined): number {
  return typeof value === 'string' && /^\d{1,4}$/.test(value) ? Number(value) : 0;
}
