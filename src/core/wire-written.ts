/** Our own header where it is as we write it ourselves. Any other text is left to the general parser. */
import type { Priority, Workload } from './terms.ts';
import { PRIORITIES, TOLD_WORKLOADS } from './terms.ts';
import { TEN_YEARS_MS } from './wire.ts';
import type { TimeBudgetHeader } from './wire-time-budget.ts';

const REMAINING = 'remaining=';
/** RFC 9651 integers have at most 15 digits. */
const MAX_DIGITS = 15;

/** Begins a member: at the start of the text, or after the member before. */
const NEXT = '(?:^|(?!^), )';

/** A caller's name: a token of RFC 9651 of at most 64 characters. */
export const CALLER = "[A-Za-z*][\\w!#$%&'*+\\-.^`|~:/]{0,63}";

/** A dictionary exactly as formatTimeBudget writes it. */
const AS_WRITTEN = new RegExp(
  `^(?:${REMAINING}(\\d{1,${MAX_DIGITS}}))?(?:${NEXT}attempt=([1-9]\\d{0,3}))?(${NEXT}repeated)?` +
    `(?:${NEXT}caller=(${CALLER}))?` +
    `(?:${NEXT}priority=([a-z]{1,8}))?(?:${NEXT}workload=([a-z]{1,10}))?` +
    `(?:${NEXT}sent=(\\d{1,${MAX_DIGITS}}))?$`,
);

/** What follows `remaining=749` in a header, and what all of it said; it holds beside any other number too. */
interface Rest {
  readonly text: string;
  readonly said: TimeBudgetHeader;
}

/**
 * The last rests that were read. Most requests of a caller bring the same one, so that only a number is left to
 * read: 0.2 microseconds where the expression takes 2, in a service (Node 24), and the caller is the same string.
 */
const rests: Rest[] = [];
const MAX_RESTS = 8;
let oldest = 0;

/** undefined for a text that formatTimeBudget does not write. At most 256 characters. */
export function readWritten(text: string): TimeBudgetHeader | undefined {
  return readKnown(text) ?? readNew(text);
}

function readKnown(text: string): TimeBudgetHeader | undefined {
  if (!text.startsWith(REMAINING)) return undefined;
  const start = REMAINING.length;
  let remainingMs = 0;
  let end = start;
  for (; end < text.length; end++) {
    const digit = text.charCodeAt(end) - 0x30;
    if (digit < 0 || digit > 9) break;
    remainingMs = remainingMs * 10 + digit;
  }
  if (end === start || end - start > MAX_DIGITS || remainingMs >= TEN_YEARS_MS) return undefined;
  for (const { text: rest, said } of rests) {
    if (text.length - end !== rest.length || !text.startsWith(rest, end)) continue;
    return {
      remainingMs,
      fault: undefined,
      attempt: said.attempt,
      repeated: said.repeated,
      caller: said.caller,
      priority: said.priority,
      workload: said.workload,
      sentWallMs: said.sentWallMs,
    };
  }
  return undefined;
}

function readNew(text: string): TimeBudgetHeader | undefined {
  const match = AS_WRITTEN.exec(text);
  if (match === null) return undefined;
  const [, remaining, attempt, repeated, caller, priority, workload, sent] = match;
  const remainingMs = remaining === undefined ? undefined : Number(remaining);
  const outOfRange = remainingMs !== undefined && remainingMs >= TEN_YEARS_MS;
  const said: TimeBudgetHeader = {
    remainingMs: outOfRange ? undefined : remainingMs,
    fault: outOfRange ? 'out_of_range' : undefined,
    attempt: attempt === undefined ? undefined : Number(attempt),
    repeated: repeated !== undefined,
    caller,
    priority: knownPriority(priority),
    workload: knownWorkload(workload),
    sentWallMs: sent === undefined ? undefined : Number(sent),
  };
  // With an instant in it, it does not come again.
  if (remaining !== undefined && !outOfRange && sent === undefined) {
    rests[oldest] = { text: text.slice(REMAINING.length + remaining.length), said };
    oldest = (oldest + 1) % MAX_RESTS;
  }
  return said;
}

export function knownPriority(name: string | undefined): Priority | undefined {
  return name === undefined ? undefined : PRIORITIES.find((priority) => priority === name);
}

export function knownWorkload(name: string | undefined): Workload | undefined {
  return name === undefined ? undefined : TOLD_WORKLOADS.find((workload) => workload === name);
}
