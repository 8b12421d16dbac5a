/** `grpc-timeout` of the gRPC over HTTP/2 protocol: one to eight digits and a unit, case-sensitive. */
import type { WireResult } from './wire.ts';
import { ITEM_MALFORMED, parseDigits, parseHeader } from './wire.ts';

export const HEADER_GRPC_TIMEOUT = 'grpc-timeout';

const MAX_DIGITS = 8;
const MAX_AMOUNT = 99_999_999;

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** 0 is expired; the largest value is 359,999,996,400,000 ms. Parts of a millisecond are kept. */
export function parseGrpcTimeout(text: string): WireResult {
  return parseHeader(text, parseGrpcItem);
}

function parseGrpcItem(item: string): number {
  const digits = item.length - 1;
  if (digits > MAX_DIGITS) return ITEM_MALFORMED;
  const amount = parseDigits(item, digits);
  if (amount < 0) return ITEM_MALFORMED;
  switch (item.charCodeAt(digits)) {
    case 0x48: // H
      return amount * HOUR_MS;
    case 0x4d: // M
      return amount * MINUTE_MS;
    case 0x53: // S
      return amount * SECOND_MS;
    case 0x6d: // m
      return amount;
    case 0x75: // u; divided, since 0.001 is not exact and 999 * 0.001 could come out larger
      return amount / 1e3;
    case 0x6e: // n
      return amount / 1e6;
    default:
      return ITEM_MALFORMED;
  }
}

/**
 * Whole milliseconds as long as eight digits hold them, above that the next unit that fits, below one
 * millisecond micro- and nanoseconds; always rounded down, and `0m` for what is over.
 * undefined, write nothing, for NaN and Infinity.
 */
export function formatGrpcTimeout(ms: number): string | undefined {
  if (!Number.isFinite(ms)) return undefined;
  if (ms < 1) return formatFraction(ms);
  // Whole before the division: the quotient of a fraction could round up to the next unit.
  const whole = Math.floor(ms);
  if (whole <= MAX_AMOUNT) return `${whole}m`;
  const seconds = Math.floor(whole / SECOND_MS);
  if (seconds <= MAX_AMOUNT) return `${seconds}S`;
  const minutes = Math.floor(whole / MINUTE_MS);
  if (minutes <= MAX_AMOUNT) return `${minutes}M`;
  return `${Math.min(Math.floor(whole / HOUR_MS), MAX_AMOUNT)}H`;
}

function formatFraction(ms: number): string {
  const micros = floorOf(ms, 1e3);
  if (micros >= 1) return `${micros}u`;
  const nanos = floorOf(ms, 1e6);
  return nanos >= 1 ? `${nanos}n` : '0m';
}

/** Multiplying can round up to the next whole number, which the receiver would read as more than `ms`. */
function floorOf(ms: number, perMs: number): number {
  const amount = Math.floor(ms * perMs);
  return amount / perMs > ms ? amount - 1 : amount;
}
