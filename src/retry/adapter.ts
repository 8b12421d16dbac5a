/** What the adapters share: the question asked so that nothing of ours gets into the library, and one complaint. */
import { diag } from '@opentelemetry/api';
import { activeRecorder } from '../active.ts';
import type { AttemptOwner } from '../core/terms.ts';
import { guarded } from '../guarded.ts';
import type { Recorder } from '../recorder.ts';
import type { Scope } from '../records.ts';
import { askIn, type RetryAnswer, type RetryAsk, type RetryPolicy } from './guard.ts';

const complained = new Set<string>();

/** Says once per library that it is not as this adapter knows it, and what comes of that. */
export function complainOnce(library: string, what: string, result = 'its repeats are left alone'): void {
  if (complained.has(library)) return;
  complained.add(library);
  diag.warn(`otel-time-budget: this version of ${library} is not known here (${what}): ${result}`);
}

/** What plain JavaScript hands over as a breaker or a client may be none. */
export function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** What `record` gives; undefined where the package is not started, or where it fails, which must not reach a library. */
export function withRecorder<T>(record: (recorder: Recorder) => T): T | undefined {
  const recorder = activeRecorder();
  return recorder && guarded(() => record(recorder), recorder);
}

/** The answer; undefined where asking failed, and the library does what it would have done. */
export function askSafely(
  scope: Scope | undefined,
  ask: RetryAsk,
  owner?: AttemptOwner,
  isRunning = false,
): RetryAnswer | undefined {
  return guarded(() => askIn(scope, ask, owner, isRunning));
}

/** As RetryPolicy, for clients that say themselves where a request goes. */
export type ClientRetryPolicy = Omit<RetryPolicy, 'dependency'> & {
  /** Left out: the host of the request. */
  readonly dependency?: string | undefined;
};

const SAFE_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'OPTIONS',
  'TRACE',
  'QUERY',
  'PUT',
  'DELETE',
]);

/** Idempotent as HTTP has it, or by a key that the peer is to know it by. */
export function isSafeRequest(method: string | undefined, hasIdempotencyKey: boolean): boolean {
  return hasIdempotencyKey || SAFE_METHODS.has((method ?? 'GET').toUpperCase());
}

/** Host, with the port where one is written; undefined for what is no URL. */
export function hostOf(url: unknown, base?: unknown): string | undefined {
  try {
    const { hostname, port } = new URL(String(url), base === undefined ? undefined : String(base));
    return port === '' ? hostname : `${hostname}:${port}`;
  } catch {
    return undefined;
  }
}

/** Whether any of these headers, as an object of lists or values, is an idempotency key. */
export function hasIdempotencyKey(headers: unknown): boolean {
  if (typeof headers !== 'object' || headers === null) return false;
  const names = Array.isArray(headers) ? headers.filter((_, at) => at % 2 === 0) : Object.keys(headers);
  return names.some((name) => String(name).toLowerCase() === 'idempotency-key');
}
