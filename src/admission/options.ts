/** What a gate is made from, checked once. */
import { MAX_QUEUES } from '../telemetry/names.ts';
import { textOf } from '../text-of.ts';

export interface AdmissionOptions {
  /** Stands in the labels `queue` and `dependency`; at most 20 gates, queues and bulkheads have one. `requests` when left out. */
  readonly name?: string | undefined;
  /** Most requests that are worked on at a time. */
  readonly limit: number;
  /** Left out: nobody waits. */
  readonly queue?:
    | {
        /** Most that wait. */
        readonly size: number;
        /** Longest that one waits; it also ends with the time of its own request. */
        readonly maxAgeMs: number;
      }
    | undefined;
  /** Shortest time in which the work is of use; with less left it is not started. 0 when left out. */
  readonly minimumMs?: number | undefined;
  /**
   * A quota of the service's own, asked first: undefined within it, else the milliseconds until there is room again,
   * Infinity where waiting does not help. It must not wait.
   */
  readonly overQuotaMs?: (() => number | undefined) | undefined;
  /**
   * Seconds for `Retry-After` of a refusal for capacity, least and most: each answer gets a number in between, so
   * that those who obey do not come back together. Left out: no such header, since nobody knows when there is room.
   */
  readonly retryAfterS?: readonly [least: number, most: number] | undefined;
  /**
   * When a permit is given back. `end`, the default: when the work has ended as far as it is seen, which is the reply,
   * the handler and its calls. `answer`: with the reply, or when the client has left, whatever still runs.
   */
  readonly releaseAt?: 'end' | 'answer' | undefined;
}

export interface CheckedOptions {
  readonly name: string;
  readonly limit: number;
  readonly size: number;
  readonly maxAgeMs: number;
  readonly minimumMs: number | undefined;
  readonly overQuotaMs: AdmissionOptions['overQuotaMs'];
  readonly retryAfterS: AdmissionOptions['retryAfterS'];
  readonly releaseAt: 'end' | 'answer';
}

/** A bound on memory, not on what is useful: far more permits than one process can make use of. */
const MOST = 100_000;
/** An hour; longer waits are a backlog, which does not belong in memory. */
const LONGEST_MS = 3_600_000;
const NAME = /^(?!(?:other|unknown|none)$)[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/;

/** Throws RangeError for what is out of its bounds. */
export function checkOptions(options: AdmissionOptions): CheckedOptions {
  if (typeof options !== 'object' || options === null)
    throw new RangeError(`admission: options must be an object, got ${textOf(options)}`);
  const { name = 'requests', limit, queue, minimumMs, overQuotaMs, retryAfterS, releaseAt = 'end' } = options;
  checkName('admission', name);
  whole('limit', limit, 1, MOST);
  if (queue !== undefined) {
    // null is a value that plain JavaScript can give.
    whole('queue.size', queue?.size, 1, MOST);
    number('queue.maxAgeMs', queue?.maxAgeMs, 1, LONGEST_MS);
  }
  if (minimumMs !== undefined) number('minimumMs', minimumMs, 0, LONGEST_MS);
  if (retryAfterS !== undefined) {
    whole('retryAfterS[0]', retryAfterS?.[0], 1, LONGEST_MS / 1_000);
    whole('retryAfterS[1]', retryAfterS[1], retryAfterS[0], LONGEST_MS / 1_000);
  }
  if (overQuotaMs !== undefined && typeof overQuotaMs !== 'function') {
    throw new RangeError(`admission: overQuotaMs must be a function, got ${textOf(overQuotaMs)}`);
  }
  if (releaseAt !== 'end' && releaseAt !== 'answer') {
    throw new RangeError(`admission: releaseAt must be end or answer, got ${textOf(releaseAt)}`);
  }
  const { size = 0, maxAgeMs = 0 } = queue ?? {};
  return { name, limit, size, maxAgeMs, minimumMs, overQuotaMs, retryAfterS, releaseAt };
}

/** Throws RangeError for what cannot be a label. */
export function checkName(what: string, name: string): void {
  if (typeof name === 'string' && NAME.test(name)) return;
  throw new RangeError(
    `${what}: a name must be up to 64 letters, digits and _ . -, not other, unknown or none, at most ${MAX_QUEUES} of them, got ${textOf(name)}`,
  );
}

function whole(key: string, value: unknown, least: number, most: number): void {
  if (isWithin(value, least, most) && Number.isInteger(value)) return;
  throw new RangeError(`admission: ${key} must be a whole number in ${least}..${most}, got ${textOf(value)}`);
}

function number(key: string, value: unknown, least: number, most: number): void {
  if (isWithin(value, least, most)) return;
  throw new RangeError(`admission: ${key} must be a number in ${least}..${most}, got ${textOf(value)}`);
}

export function isWithin(value: unknown, least: number, most: number): boolean {
  return typeof value === 'number' && value >= least && value <= most;
}
