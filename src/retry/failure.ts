/** What a failed attempt tells, read from whatever its library threw or answered with. */
import type { ErrorClass } from '../core/terms.ts';

export interface Failure {
  readonly errorClass: ErrorClass;
  /** Status of the peer's answer; undefined where none came. */
  readonly status: number | undefined;
  /** A circuit breaker has stopped the attempt: nothing of it was sent. */
  readonly isBlocked: boolean;
  /** What a repeat is after it: the peer has not had the request, has answered, or nobody knows. */
  readonly next: 'reconnect' | 'reexecute' | 'resend';
  /** What the peer asked to wait, in ms; undefined where it did not, or in a form that cannot be read. */
  readonly retryAfterMs: number | undefined;
}

/** The peer has not had the request: it was stopped before anything of it was sent. */
const NOT_SENT: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENETDOWN',
  'ENETUNREACH',
  'EHOSTDOWN',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

/** What did not say that it will pass, and that the work was not done, has an unknown outcome (500, 502, 504 too). */
const CLASS_OF_STATUS: ReadonlyMap<number, ErrorClass> = new Map<number, ErrorClass>([
  [401, 'auth'],
  [403, 'auth'],
  [407, 'auth'],
  [408, 'unknown_outcome'],
  [412, 'precondition'],
  [425, 'transient'],
  [428, 'precondition'],
  [429, 'throttled'],
  [503, 'transient'],
]);

/**
 * Reads an error of fetch, undici, got, axios or Node, or an answer: status, code and Retry-After, in the error,
 * in its `response` or in its `cause`. What it does not know has an unknown outcome. A getter that throws does.
 */
export function readFailure(error: unknown): Failure {
  const status = statusOf(error) ?? statusOf(field(error, 'response'));
  const isBlocked = isStoppedByBreaker(error);
  const errorClass = isBlocked ? 'transient' : classOf(error, status);
  const next =
    isBlocked || isNotSent(error) ? 'reconnect' : hasAnswered(error, status) ? 'reexecute' : 'resend';
  return { errorClass, status, isBlocked, next, retryAfterMs: retryAfterOf(error) };
}

/** The error of an open breaker of cockatiel (3, 4) or opossum (since 5). */
export function isStoppedByBreaker(error: unknown): boolean {
  return field(error, 'isBrokenCircuitError') === true || field(error, 'code') === 'EOPENBREAKER';
}

function classOf(error: unknown, status: number | undefined): ErrorClass {
  if (status !== undefined) {
    const known = CLASS_OF_STATUS.get(status);
    if (known !== undefined) return known;
    return status >= 400 && status < 500 ? 'validation' : 'unknown_outcome';
  }
  return isNotSent(error) ? 'transient' : 'unknown_outcome';
}

function isNotSent(error: unknown): boolean {
  return NOT_SENT.has(field(error, 'code') ?? field(field(error, 'cause'), 'code'));
}

/** An HTTP status, or an error of PostgreSQL's server, which alone has a severity. */
function hasAnswered(error: unknown, status: number | undefined): boolean {
  return status !== undefined || typeof field(error, 'severity') === 'string';
}

function statusOf(holder: unknown): number | undefined {
  for (const key of ['status', 'statusCode']) {
    const value = field(holder, key);
    if (typeof value === 'number' && value >= 100 && value <= 599) return value;
  }
  return undefined;
}

/**
 * Seconds, or a date that is measured from the answer's own `Date`: the peer's clock against itself, never ours.
 */
function retryAfterOf(error: unknown): number | undefined {
  const headers = field(field(error, 'response'), 'headers') ?? field(error, 'headers');
  const text = header(headers, 'retry-after');
  if (text === undefined) return undefined;
  if (/^[0-9]{1,9}$/.test(text)) return Number(text) * 1_000;
  const ms = Date.parse(text) - Date.parse(header(headers, 'date') ?? '');
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

/** One header of a plain object, of `Headers`, or of anything with `get`. */
function header(headers: unknown, name: string): string | undefined {
  const get = field(headers, 'get');
  const value = typeof get === 'function' ? get.call(headers, name) : field(headers, name);
  if (typeof value === 'string') return value.trim();
  return typeof value === 'number' ? String(value) : undefined;
}

function field(holder: unknown, key: string): unknown {
  return typeof holder === 'object' && holder !== null ? Reflect.get(holder, key) : undefined;
}
