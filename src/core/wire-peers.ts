/** Readers for the budget headers of other projects. They are only read: nothing of ours writes them. */
import type { WireResult } from './wire.ts';
import {
  ITEM_MALFORMED,
  ITEM_OUT_OF_RANGE,
  parseDigits,
  parseHeader,
  parseMs,
  TEN_YEARS_MS,
} from './wire.ts';

export const HEADER_PULSE_TIMEOUT = 'pulse-timeout-ms';
export const HEADER_PULSE_DEADLINE = 'pulse-timeout-deadline-ms';
export const HEADER_MISK_DEADLINE = 'x-request-deadline';
export const HEADER_USERVER_TIMEOUT = 'x-yataxi-client-timeoutms';
export const HEADER_YARPC_TTL = 'context-ttl-ms';

/** `Pulse-Timeout-Ms`: decimal milliseconds left; 0 is expired and not a default. */
export function parsePulseTimeout(text: string): WireResult {
  return parseHeader(text, parseMs);
}

/**
 * `Pulse-Timeout-Deadline-Ms`: the end as wall-clock milliseconds since 1970. Only to be called where the
 * sender's clock and `wallNowMs` belong to the same configured clock domain: the skew goes into the result.
 * A time in the past is 0, expired. More than ten years away either way is taken for another unit.
 */
export function parsePulseDeadline(text: string, wallNowMs: number): WireResult {
  return parseHeader(text, (item) => {
    const deadlineWallMs = parseDigits(item, item.length);
    if (deadlineWallMs < 0) return ITEM_MALFORMED;
    const leftMs = deadlineWallMs - wallNowMs;
    if (!(Math.abs(leftMs) < TEN_YEARS_MS)) return ITEM_OUT_OF_RANGE;
    return Math.max(0, leftMs);
  });
}

/**
 * `X-Request-Deadline` as Misk reads it: whole seconds, or a duration of java.time (`PT1H30M`, `PT2.5S`,
 * `P1DT2H`). Misk uses positive values only, so 0 is no limit here. Others put an absolute time under the
 * same name: written as a date it is malformed, as a number it is out of range.
 */
export function parseMiskDeadline(text: string): WireResult {
  return parseHeader(text, parseMiskItem);
}

/** Letters in either case, no signs (Misk ignores negative durations), no years, months or weeks. */
const ISO_DURATION =
  /^P(?=\d|T\d)(?:(\d{1,12})D)?(?:T(?=\d)(?:(\d{1,12})H)?(?:(\d{1,12})M)?(?:(\d{1,12}(?:\.\d{0,9})?)S)?)?$/i;

function parseMiskItem(item: string): number {
  const first = item.charCodeAt(0);
  const ms =
    first === 0x50 || first === 0x70 ? parseIsoDuration(item) : parseDigits(item, item.length) * 1_000;
  if (ms < 0) return ITEM_MALFORMED;
  if (ms === 0) return Infinity;
  return ms < TEN_YEARS_MS ? ms : ITEM_OUT_OF_RANGE;
}

function parseIsoDuration(item: string): number {
  const match = ISO_DURATION.exec(item);
  if (match === null) return ITEM_MALFORMED;
  const seconds = Number(match[1] ?? 0) * 86_400 + Number(match[2] ?? 0) * 3_600 + Number(match[3] ?? 0) * 60;
  return (seconds + Number(match[4] ?? 0)) * 1_000;
}

/** `X-YaTaxi-Client-TimeoutMs` of userver: decimal milliseconds below ten years, 0 is expired. */
export function parseUserverTimeout(text: string): WireResult {
  return parseHeader(text, parseMs);
}

/** `Context-TTL-MS` of YARPC: decimal milliseconds, 0 is expired. */
export function parseYarpcTtl(text: string): WireResult {
  return parseHeader(text, parseMs);
}
