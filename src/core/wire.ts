/**
 * Budget headers as text: what all formats share, and the formats that are one decimal number.
 * No parser here throws, whatever the text; no formatter writes more than it was given.
 */
import type { HeaderFault } from './terms.ts';

export const HEADER_REQUEST_TIMEOUT = 'x-request-timeout-ms';
export const HEADER_CONNECT_TIMEOUT = 'connect-timeout-ms';
export const HEADER_ENVOY_EXPECTED = 'x-envoy-expected-rq-timeout-ms';
export const HEADER_ENVOY_UPSTREAM = 'x-envoy-upstream-rq-timeout-ms';

/** A longer value is not looked at: it would cost time, and cut off it could read as another number. */
export const MAX_HEADER_LENGTH = 256;

/**
 * First value refused in formats without a limit of their own (userver refuses the same). It is below any
 * point in time of today in milliseconds, so an absolute time put into a relative header is found out.
 */
export const TEN_YEARS_MS = 315_360_000_000;

/**
 * What a header says. With `ms`, a finite number >= 0 where 0 is expired, `fault` can only be `repeated`.
 * Without `ms` the fault says why it could not be used; without a fault either, the sender sets no limit.
 */
export type WireResult =
  | { readonly ms: number; readonly fault: 'repeated' | undefined }
  | { readonly ms: undefined; readonly fault: HeaderFault | undefined };

export const NO_LIMIT: WireResult = Object.freeze({ ms: undefined, fault: undefined });
const NO_LIMIT_REPEATED: WireResult = Object.freeze({ ms: undefined, fault: 'repeated' });
const MALFORMED: WireResult = Object.freeze({ ms: undefined, fault: 'malformed' });
const OUT_OF_RANGE: WireResult = Object.freeze({ ms: undefined, fault: 'out_of_range' });
const TOO_LONG: WireResult = Object.freeze({ ms: undefined, fault: 'too_long' });

/** Codes of an item that has no value; an item without a limit is Infinity. */
export const ITEM_MALFORMED = -1;
export const ITEM_OUT_OF_RANGE = -2;

/** Reads one value without whitespace around it: milliseconds, Infinity for "no limit", or a code. */
export type ItemParser = (item: string) => number;

/**
 * Reads a header by one format's item parser. Node joins the lines of a repeated header with ", ": the
 * smallest valid item counts and `repeated` is reported beside it; without a valid one, the first fault.
 */
export function parseHeader(text: string, parseItem: ItemParser): WireResult {
  if (text.length > MAX_HEADER_LENGTH) return TOO_LONG;
  if (!text.includes(',')) {
    const item = parseItem(trimBlanks(text));
    return item >= 0 && item !== Infinity ? { ms: item, fault: undefined } : withoutValue(item);
  }
  let smallest = -1;
  let firstFault = 0;
  for (const part of text.split(',')) {
    const item = parseItem(trimBlanks(part));
    if (item < 0) firstFault ||= item;
    else if (smallest < 0 || item < smallest) smallest = item;
  }
  if (smallest < 0) return withoutValue(firstFault);
  return smallest === Infinity ? NO_LIMIT_REPEATED : { ms: smallest, fault: 'repeated' };
}

function withoutValue(item: number): WireResult {
  if (item === Infinity) return NO_LIMIT;
  return item === ITEM_OUT_OF_RANGE ? OUT_OF_RANGE : MALFORMED;
}

/** Takes off what HTTP calls optional whitespace; String.trim would also accept line ends and Unicode blanks. */
function trimBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlank(text.charCodeAt(start))) start++;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end--;
  return start === 0 && end === text.length ? text : text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/**
 * The number that `length` characters of decimal digits stand for, ITEM_MALFORMED for anything else.
 * Not parseInt or Number: those take signs, exponents, blanks, hexadecimal and trailing letters.
 */
export function parseDigits(item: string, length: number): number {
  if (length < 1) return ITEM_MALFORMED;
  let value = 0;
  for (let i = 0; i < length; i++) {
    const digit = item.charCodeAt(i) - 0x30;
    if (digit < 0 || digit > 9) return ITEM_MALFORMED;
    value = value * 10 + digit;
  }
  return value;
}

/** Decimal milliseconds below ten years; 0 is 0. */
export function parseMs(item: string): number {
  const ms = parseDigits(item, item.length);
  return ms < TEN_YEARS_MS ? ms : ITEM_OUT_OF_RANGE;
}

/** `x-request-timeout-ms`: decimal milliseconds, 0 is expired. */
export function parseRequestTimeout(text: string): WireResult {
  return parseHeader(text, parseMs);
}

/** At most ten years. undefined, write nothing, for NaN and Infinity. */
export function formatRequestTimeout(ms: number): string | undefined {
  return formatWholeMs(ms, TEN_YEARS_MS - 1);
}

/** The Connect protocol allows ten digits: 115 days. */
const MAX_CONNECT_DIGITS = 10;
const MAX_CONNECT_MS = 9_999_999_999;

/** `connect-timeout-ms` (Connect protocol): at most ten decimal digits, 0 is expired. */
export function parseConnectTimeout(text: string): WireResult {
  return parseHeader(text, parseConnectItem);
}

function parseConnectItem(item: string): number {
  return item.length > MAX_CONNECT_DIGITS ? ITEM_MALFORMED : parseDigits(item, item.length);
}

/** At most ten digits. undefined, write nothing, for NaN and Infinity. */
export function formatConnectTimeout(ms: number): string | undefined {
  return formatWholeMs(ms, MAX_CONNECT_MS);
}

/** Envoy's two timeout headers: decimal milliseconds, where 0 means no limit and counts as absent. */
export function parseEnvoyTimeout(text: string): WireResult {
  return parseHeader(text, parseMsOrNoLimit);
}

/** For formats in which 0 is not expired but no limit. */
function parseMsOrNoLimit(item: string): number {
  const ms = parseMs(item);
  return ms === 0 ? Infinity : ms;
}

/**
 * For either of Envoy's headers. undefined, write nothing, for NaN, Infinity and for less than 1 ms: Envoy
 * would take a 0 for no limit, and 1 would be more than is left.
 */
export function formatEnvoyTimeout(ms: number): string | undefined {
  return ms < 1 ? undefined : formatWholeMs(ms, TEN_YEARS_MS - 1);
}

function formatWholeMs(ms: number, maxMs: number): string | undefined {
  const whole = wholeMs(ms, maxMs);
  return whole === undefined ? undefined : String(whole);
}

/** What may be sent of `ms`: rounded down, 0 for what is over, at most `maxMs`; undefined if not finite. */
export function wholeMs(ms: number, maxMs: number): number | undefined {
  if (!Number.isFinite(ms)) return undefined;
  return ms <= 0 ? 0 : Math.min(Math.floor(ms), maxMs);
}
