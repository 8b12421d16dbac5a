/** What an outgoing HTTP request itself tells of the attempt it is: what it is compared by, and what is declared. */
import type { CallIdentity, Declaration } from '../../src/core/operations.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import { callLag } from './call-lag.ts';

/** AWS SDK v3 writes it on every request: `attempt=1; max=3`. */
const HEADER_AWS_ATTEMPT = 'amz-sdk-request';
const AWS_ATTEMPT = /^attempt=(\d{1,4})(?:; ?max=(\d{1,4}))?(?:;|$)/;
const HEADER_IDEMPOTENCY_KEY = 'idempotency-key';
const HEADER_CONTENT_LENGTH = 'content-length';

/** The headers that are read here. */
export const ATTEMPT_HEADERS: readonly string[] = [
  HEADER_AWS_ATTEMPT,
  HEADER_IDEMPOTENCY_KEY,
  HEADER_CONTENT_LENGTH,
];

/** How to read a header of a request, by its name in lower case. */
export type HeaderReader = (name: string) => unknown;

/** For a request that is known to have none of them. */
export const NO_HEADERS: HeaderReader = () => undefined;

/** The head of the answer has come. */
export function enterResponse(hooks: Hooks, call: CallRecord, status: number): void {
  const now = hooks.now();
  call.enter('response', now, callLag(hooks, call, now));
  hooks.calls.attempts.head(call, status, now);
}

export function identityOf(
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
export function declarationOf(header: HeaderReader): Declaration | undefined {
  const value = header(HEADER_AWS_ATTEMPT);
  if (typeof value !== 'string') return undefined;
  const found = AWS_ATTEMPT.exec(value);
  const attempt = Number(found?.[1] ?? 0);
  const permitted = Number(found?.[2] ?? 0);
  if (attempt < 1) return undefined;
  return { owner: 'aws_sdk', attempt, permitted: permitted >= 1 ? permitted : undefined };
}
