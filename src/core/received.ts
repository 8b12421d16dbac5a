/** What a request says about its budget, over all formats that are known. */
import { isReset } from './allowance.ts';
import type { BudgetSource, HeaderFault, Priority, Workload } from './terms.ts';
import type { WireResult } from './wire.ts';
import {
  HEADER_CONNECT_TIMEOUT,
  HEADER_ENVOY_EXPECTED,
  HEADER_ENVOY_UPSTREAM,
  HEADER_REQUEST_TIMEOUT,
  parseConnectTimeout,
  parseEnvoyTimeout,
  parseRequestTimeout,
} from './wire.ts';
import { HEADER_GRPC_TIMEOUT, parseGrpcTimeout } from './wire-grpc.ts';
import {
  HEADER_MISK_DEADLINE,
  HEADER_PULSE_DEADLINE,
  HEADER_PULSE_TIMEOUT,
  HEADER_USERVER_TIMEOUT,
  HEADER_YARPC_TTL,
  parseMiskDeadline,
  parsePulseDeadline,
  parsePulseTimeout,
  parseUserverTimeout,
  parseYarpcTtl,
} from './wire-peers.ts';
import type { TimeBudgetHeader } from './wire-time-budget.ts';
import { HEADER_TIME_BUDGET, parseTimeBudget } from './wire-time-budget.ts';

/** Values that differ by no more say the same: peers round to whole milliseconds, some up and some down. */
export const CONFLICT_TOLERANCE_MS = 1;

/** A fault of one format's header. `conflict` stands at the format that named the larger value. */
export interface HeaderFinding {
  readonly source: BudgetSource;
  readonly fault: HeaderFault;
}

export interface Received {
  /** Smallest valid value of all formats, >= 0, where 0 is expired; undefined where no limit was sent. */
  readonly remainingMs: number | undefined;
  /** Format of `remainingMs`; of equal ones the first in BUDGET_SOURCES. */
  readonly source: BudgetSource | undefined;
  /** Two formats named values further apart than CONFLICT_TOLERANCE_MS. */
  readonly conflict: boolean;
  readonly findings: readonly HeaderFinding[];
  /** A trusted sender wrote our own header: the caller is one of ours, and no client from outside. */
  readonly fromInstrumented: boolean;
  /** Beside a trusted sender's own header another one grants more: it handed on time that it did not have. */
  readonly exceedsOwn: boolean;
  /** When it was sent by the sender's wall clock; of any sender, because what it says can only shorten. */
  readonly sentWallMs: number | undefined;
  /** The members below are of our own header, and only where the sender is trusted. */
  readonly attempt: number | undefined;
  readonly repeated: boolean;
  readonly caller: string | undefined;
  readonly priority: Priority | undefined;
  readonly workload: Workload | undefined;
}

export interface ReadOptions {
  /** The sender is inside the trust boundary. If not, only times are read, as a wish. */
  readonly trusted: boolean;
  /**
   * Wall clock in ms since 1970, given only where the sender's clock belongs to the same configured clock
   * domain. Without it, or from an untrusted sender, an absolute deadline is not used and counts as untrusted.
   */
  readonly wallNowMs?: number | undefined;
}

/** Lower-case names, as IncomingMessage.headers has them. */
export type Headers = Readonly<Record<string, string | string[] | undefined>>;

interface Format {
  readonly source: BudgetSource;
  readonly header: string;
  readonly parse: (text: string, wallNowMs: number | undefined) => WireResult;
}

const UNTRUSTED: WireResult = Object.freeze({ ms: undefined, fault: 'untrusted' });

/** All but our own, in the order of BUDGET_SOURCES. */
const FORMATS: readonly Format[] = [
  { source: 'x_request_timeout_ms', header: HEADER_REQUEST_TIMEOUT, parse: parseRequestTimeout },
  { source: 'grpc_timeout', header: HEADER_GRPC_TIMEOUT, parse: parseGrpcTimeout },
  { source: 'connect_timeout_ms', header: HEADER_CONNECT_TIMEOUT, parse: parseConnectTimeout },
  { source: 'envoy_expected', header: HEADER_ENVOY_EXPECTED, parse: parseEnvoyTimeout },
  { source: 'envoy_upstream', header: HEADER_ENVOY_UPSTREAM, parse: parseEnvoyTimeout },
  { source: 'pulse_timeout', header: HEADER_PULSE_TIMEOUT, parse: parsePulseTimeout },
  {
    source: 'pulse_deadline',
    header: HEADER_PULSE_DEADLINE,
    parse: (text, wallNowMs) => (wallNowMs === undefined ? UNTRUSTED : parsePulseDeadline(text, wallNowMs)),
  },
  { source: 'misk', header: HEADER_MISK_DEADLINE, parse: parseMiskDeadline },
  { source: 'userver', header: HEADER_USERVER_TIMEOUT, parse: parseUserverTimeout },
  { source: 'yarpc', header: HEADER_YARPC_TTL, parse: parseYarpcTtl },
];

const NO_FINDINGS: readonly HeaderFinding[] = Object.freeze([]);

/** No header of any format: the same object each time, because this is the commonest case. */
export const NOTHING_RECEIVED: Received = Object.freeze({
  remainingMs: undefined,
  source: undefined,
  conflict: false,
  findings: NO_FINDINGS,
  fromInstrumented: false,
  exceedsOwn: false,
  attempt: undefined,
  repeated: false,
  caller: undefined,
  priority: undefined,
  workload: undefined,
  sentWallMs: undefined,
});

interface Reading {
  readonly source: BudgetSource;
  readonly ms: number | undefined;
  readonly fault: HeaderFault | undefined;
}

/** Reads all formats; never throws, and is bounded by MAX_HEADER_LENGTH per header. */
export function readBudget(headers: Headers, options: ReadOptions): Received {
  const ownText = headers[HEADER_TIME_BUDGET];
  const own = ownText === undefined ? undefined : parseTimeBudget(oneText(ownText));
  const others = hasOthers(headers)
    ? readOthers(headers, options.trusted ? options.wallNowMs : undefined)
    : undefined;
  if (own === undefined) return others === undefined ? NOTHING_RECEIVED : combine(others, undefined, false);
  if (others === undefined && own.fault === undefined) return ownAlone(own, options.trusted);
  const reading: Reading = { source: 'time_budget', ms: own.remainingMs, fault: own.fault };
  return combine(others === undefined ? [reading] : [reading, ...others], own, options.trusted);
}

/** One look-up for each of FORMATS, written out: in a loop, where the name differs each time, it costs ten times more. */
function hasOthers(headers: Headers): boolean {
  return (
    headers[HEADER_REQUEST_TIMEOUT] !== undefined ||
    headers[HEADER_GRPC_TIMEOUT] !== undefined ||
    headers[HEADER_CONNECT_TIMEOUT] !== undefined ||
    headers[HEADER_ENVOY_EXPECTED] !== undefined ||
    headers[HEADER_ENVOY_UPSTREAM] !== undefined ||
    headers[HEADER_PULSE_TIMEOUT] !== undefined ||
    headers[HEADER_PULSE_DEADLINE] !== undefined ||
    headers[HEADER_MISK_DEADLINE] !== undefined ||
    headers[HEADER_USERVER_TIMEOUT] !== undefined ||
    headers[HEADER_YARPC_TTL] !== undefined
  );
}

/** What combine makes of our own header alone, where nothing is wrong with it: the usual case between two of ours. */
function ownAlone(own: TimeBudgetHeader, trusted: boolean): Received {
  const { remainingMs } = own;
  return {
    remainingMs,
    source: remainingMs === undefined ? undefined : 'time_budget',
    conflict: false,
    findings: NO_FINDINGS,
    fromInstrumented: trusted && (remainingMs !== undefined || own.attempt !== undefined),
    exceedsOwn: false,
    attempt: trusted ? own.attempt : undefined,
    repeated: trusted && own.repeated,
    caller: trusted ? own.caller : undefined,
    priority: trusted ? own.priority : undefined,
    workload: trusted ? own.workload : undefined,
    sentWallMs: own.sentWallMs,
  };
}

function readOthers(headers: Headers, wallNowMs: number | undefined): Reading[] | undefined {
  let readings: Reading[] | undefined;
  for (const format of FORMATS) {
    const value = headers[format.header];
    if (value === undefined) continue;
    const { ms, fault } = format.parse(oneText(value), wallNowMs);
    readings ??= [];
    readings.push({ source: format.source, ms, fault });
  }
  return readings;
}

function oneText(value: string | string[]): string {
  return typeof value === 'string' ? value : value.join(', ');
}

function combine(
  readings: readonly Reading[],
  own: TimeBudgetHeader | undefined,
  trusted: boolean,
): Received {
  let smallest: Reading | undefined;
  for (const reading of readings) {
    if (reading.ms !== undefined && reading.ms < (smallest?.ms ?? Infinity)) smallest = reading;
  }
  const limitMs = smallest?.ms ?? Infinity;
  let conflict = false;
  let findings: HeaderFinding[] | undefined;
  for (const { source, ms, fault } of readings) {
    if (fault !== undefined) (findings ??= []).push({ source, fault });
    if (ms !== undefined && ms - limitMs > CONFLICT_TOLERANCE_MS) {
      conflict = true;
      (findings ??= []).push({ source, fault: 'conflict' });
    }
  }
  const told = trusted ? own : undefined;
  return {
    remainingMs: smallest?.ms,
    source: smallest?.source,
    conflict,
    findings: findings ?? NO_FINDINGS,
    fromInstrumented: told?.remainingMs !== undefined || told?.attempt !== undefined,
    exceedsOwn: conflict && exceeds(readings, told?.remainingMs),
    attempt: told?.attempt,
    repeated: told?.repeated ?? false,
    caller: told?.caller,
    priority: told?.priority,
    workload: told?.workload,
    sentWallMs: own?.sentWallMs,
  };
}

/** Envoy's two headers are left out: a proxy writes its own route's limit there, which is no promise of time. */
function exceeds(readings: readonly Reading[], ownMs: number | undefined): boolean {
  if (ownMs === undefined) return false;
  return readings.some(
    ({ source, ms }) =>
      ms !== undefined && source !== 'envoy_expected' && source !== 'envoy_upstream' && isReset(ms, ownMs),
  );
}
