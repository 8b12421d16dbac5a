/**
 * Our own header, `time-budget`: a dictionary of RFC 9651, the same over HTTP, gRPC metadata and messages.
 *
 *     remaining=749, attempt=2, repeated, caller=checkout, priority=critical
 */
import { parseDictionary, Token } from 'structured-headers';
import type { HeaderFault, Priority, Workload } from './terms.ts';
import { MAX_HEADER_LENGTH, TEN_YEARS_MS, wholeMs } from './wire.ts';
import { CALLER, knownPriority, knownWorkload, readWritten } from './wire-written.ts';

export const HEADER_TIME_BUDGET = 'time-budget';

/** Above this an attempt is not counted exactly any more: it is written as this, and ignored when read. */
export const MAX_ATTEMPT = 9_999;
const MAX_CALLER_LENGTH = 64;

/** What is written; a member that is undefined is left out. */
export interface TimeBudgetMembers {
  /** Milliseconds left at the moment of the send. */
  readonly remainingMs?: number | undefined;
  /** Ordinal of this attempt, 1 is the original. */
  readonly attempt?: number | undefined;
  /** This attempt or one it descends from was a repeat. */
  readonly repeated?: boolean | undefined;
  /** Name of the sending service; see {@link callerToken}. */
  readonly caller?: string | undefined;
  readonly priority?: Priority | undefined;
  /** Written where it is one that must be told; see TOLD_WORKLOADS. */
  readonly workload?: Workload | undefined;
  /** Wall clock of the sender in ms since 1970, only for queues whose messages have no age of their own. */
  readonly sentWallMs?: number | undefined;
}

/** What was read. A known member with an unusable value is absent; so are unknown members. */
export interface TimeBudgetHeader {
  /** Finite and >= 0, where 0 is expired. */
  readonly remainingMs: number | undefined;
  /** Why `remaining` could not be used, or `repeated` beside a value. */
  readonly fault: HeaderFault | undefined;
  readonly attempt: number | undefined;
  readonly repeated: boolean;
  readonly caller: string | undefined;
  readonly priority: Priority | undefined;
  readonly workload: Workload | undefined;
  readonly sentWallMs: number | undefined;
}

const CALLER_ONLY = new RegExp(`^${CALLER}$`);
const NOT_IN_CALLER = /[^\w!#$%&'*+\-.^`|~:/]/g;

/** Never throws. Longer than 256 characters is too_long, a text that is no dictionary malformed. */
export function parseTimeBudget(text: string): TimeBudgetHeader {
  if (text.length > MAX_HEADER_LENGTH) return unusable('too_long');
  return readWritten(text) ?? parseAny(text);
}

/**
 * A header sent twice arrives as one dictionary with keys twice, of which the last would win even if it
 * were the larger. So each `remaining` begins a reading of its own, and the smallest of them counts.
 */
function parseAny(text: string): TimeBudgetHeader {
  const starts = [...text.matchAll(REMAINING_KEY)].map((match) => match.index);
  if (starts.length < 2) return parseOne(text) ?? unusable('malformed');
  let smallest: TimeBudgetHeader | undefined;
  let from = 0;
  for (const to of [...starts.slice(1), text.length]) {
    const one = parseOne(text.slice(from, to));
    // The comma was inside a string of an unknown member, or the text is no dictionary at all.
    if (one === undefined) return parseOne(text) ?? unusable('malformed');
    if (smallest === undefined || isSmaller(one, smallest)) smallest = one;
    from = to + 1;
  }
  if (smallest === undefined) return unusable('malformed');
  return smallest.remainingMs === undefined ? smallest : { ...smallest, fault: 'repeated' };
}

/** The key at the start or after a comma, which is where its match begins. */
const REMAINING_KEY = /(?:^|,)[ \t]*remaining(?=[=;, \t]|$)/g;

function isSmaller(a: TimeBudgetHeader, b: TimeBudgetHeader): boolean {
  return (a.remainingMs ?? Infinity) < (b.remainingMs ?? Infinity);
}

type Dictionary = ReturnType<typeof parseDictionary>;

function parseOne(text: string): TimeBudgetHeader | undefined {
  const members = dictionaryOf(text);
  if (members === undefined) return undefined;
  const remaining = bareItem(members, 'remaining');
  const fault = remaining === undefined ? undefined : remainingFault(remaining);
  const attempt = integerOf(members, 'attempt', 1, MAX_ATTEMPT);
  const caller = tokenOf(members, 'caller');
  return {
    // The larger of the two, because a sent -0 is read as -0.
    remainingMs: typeof remaining === 'number' && fault === undefined ? Math.max(0, remaining) : undefined,
    fault,
    attempt,
    repeated: bareItem(members, 'repeated') === true,
    caller: caller === undefined || caller.length > MAX_CALLER_LENGTH ? undefined : caller,
    priority: knownPriority(tokenOf(members, 'priority')),
    workload: knownWorkload(tokenOf(members, 'workload')),
    sentWallMs: integerOf(members, 'sent', 0, Number.MAX_SAFE_INTEGER),
  };
}

function dictionaryOf(text: string): Dictionary | undefined {
  try {
    return parseDictionary(text);
  } catch {
    return undefined;
  }
}

function bareItem(members: Dictionary, key: string): unknown {
  return members.get(key)?.[0];
}

function remainingFault(value: unknown): HeaderFault | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value)) return 'malformed';
  return value >= 0 && value < TEN_YEARS_MS ? undefined : 'out_of_range';
}

function integerOf(members: Dictionary, key: string, min: number, max: number): number | undefined {
  const value = bareItem(members, key);
  return typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max
    ? value
    : undefined;
}

function tokenOf(members: Dictionary, key: string): string | undefined {
  const value = bareItem(members, key);
  return value instanceof Token ? value.toString() : undefined;
}

function unusable(fault: HeaderFault): TimeBudgetHeader {
  return {
    remainingMs: undefined,
    fault,
    attempt: undefined,
    repeated: false,
    caller: undefined,
    priority: undefined,
    workload: undefined,
    sentWallMs: undefined,
  };
}

/**
 * Makes a caller's token of a service name: other characters become `_`, a name that begins with neither a
 * letter nor `*` gets a `*` in front, and the end beyond 64 characters is cut off. undefined for ''.
 * Done once at start; formatTimeBudget only checks.
 */
export function callerToken(serviceName: string): string | undefined {
  if (serviceName === '') return undefined;
  const token = serviceName.slice(0, MAX_CALLER_LENGTH).replace(NOT_IN_CALLER, '_');
  return /^[A-Za-z*]/.test(token) ? token : `*${token}`.slice(0, MAX_CALLER_LENGTH);
}

/**
 * Writes the header; `remaining` rounded down, 0 for what is over, at most ten years. A member that cannot
 * be written (a caller that is no token, a time that is not finite) is left out; undefined if none is left.
 */
export function formatTimeBudget(members: TimeBudgetMembers): string | undefined {
  return withRemaining(members.remainingMs, formatOthers(members));
}

/** The whole header, from what `formatOthers` gave. */
export function withRemaining(remainingMs: number | undefined, others: string): string | undefined {
  const whole = remainingMs === undefined ? undefined : wholeMs(remainingMs, TEN_YEARS_MS - 1);
  if (whole !== undefined) return `remaining=${whole}${others}`;
  // Without the separator before the first of them.
  return others === '' ? undefined : others.slice(2);
}

/** All but `remaining`, each member after a separator: for most calls of a service this is the same text. */
export function formatOthers(members: Omit<TimeBudgetMembers, 'remainingMs'>): string {
  let text = '';
  if (members.attempt !== undefined && members.attempt >= 1) {
    text += `, attempt=${Math.floor(Math.min(members.attempt, MAX_ATTEMPT))}`;
  }
  if (members.repeated === true) text += ', repeated';
  if (members.caller !== undefined && CALLER_ONLY.test(members.caller)) text += `, caller=${members.caller}`;
  if (members.priority !== undefined && members.priority !== 'unset')
    text += `, priority=${members.priority}`;
  if (members.workload !== undefined && knownWorkload(members.workload) !== undefined)
    text += `, workload=${members.workload}`;
  const sent = members.sentWallMs === undefined ? undefined : wholeMs(members.sentWallMs, MAX_SENT_WALL_MS);
  if (sent !== undefined) text += `, sent=${sent}`;
  return text;
}

/** RFC 9651 integers have at most 15 digits. */
const MAX_SENT_WALL_MS = 999_999_999_999_999;
