/** Budget headers of an outgoing request: those that the application set itself, and ours at the moment of the send. */
import type { OutgoingHeader } from '../../src/carriage.ts';
import {
  HEADER_CONNECT_TIMEOUT,
  HEADER_ENVOY_EXPECTED,
  HEADER_ENVOY_UPSTREAM,
  HEADER_REQUEST_TIMEOUT,
  parseConnectTimeout,
  parseEnvoyTimeout,
  parseRequestTimeout,
  type WireResult,
} from '../../src/core/wire.ts';
import { HEADER_GRPC_TIMEOUT, parseGrpcTimeout } from '../../src/core/wire-grpc.ts';
import {
  HEADER_MISK_DEADLINE,
  HEADER_PULSE_TIMEOUT,
  HEADER_USERVER_TIMEOUT,
  HEADER_YARPC_TTL,
  parseMiskDeadline,
  parsePulseTimeout,
  parseUserverTimeout,
  parseYarpcTtl,
} from '../../src/core/wire-peers.ts';
import { HEADER_TIME_BUDGET } from '../../src/core/wire-time-budget.ts';
import { ATTEMPT_HEADERS } from './attempt-marks.ts';

/** Relative limits only. Our own header is not among them: one that was copied from somewhere is replaced. */
const LIMITS: ReadonlyMap<string, (text: string) => WireResult> = new Map([
  [HEADER_REQUEST_TIMEOUT, parseRequestTimeout],
  [HEADER_GRPC_TIMEOUT, parseGrpcTimeout],
  [HEADER_CONNECT_TIMEOUT, parseConnectTimeout],
  [HEADER_ENVOY_EXPECTED, parseEnvoyTimeout],
  [HEADER_ENVOY_UPSTREAM, parseEnvoyTimeout],
  [HEADER_PULSE_TIMEOUT, parsePulseTimeout],
  [HEADER_MISK_DEADLINE, parseMiskDeadline],
  [HEADER_USERVER_TIMEOUT, parseUserverTimeout],
  [HEADER_YARPC_TTL, parseYarpcTtl],
]);

const LOOKED_FOR: ReadonlySet<string> = new Set([...LIMITS.keys(), ...ATTEMPT_HEADERS, HEADER_TIME_BUDGET]);
/** Most names share length and last letter with none of them, and need not be written in lower case to tell. */
const SHAPES: ReadonlySet<number> = new Set(Array.from(LOOKED_FOR, shapeOf));

/**
 * Whether a header, in any case, is one that is looked for on outgoing requests: a limit, our own, and what tells of
 * the attempt. Most requests have none, and then none of them has to be looked for.
 */
export function isLookedFor(name: string): boolean {
  return SHAPES.has(shapeOf(name)) && LOOKED_FOR.has(name.toLowerCase());
}

function shapeOf(name: string): number {
  // 0x20 makes a letter of ASCII a small one.
  return name.length * 256 + (name.charCodeAt(name.length - 1) | 0x20);
}

/** The limit in ms that a header gives the peer; undefined for any other header and for one without a limit. */
export function limitOf(name: string, value: unknown): number | undefined {
  const parse = LIMITS.get(name) ?? LIMITS.get(name.toLowerCase());
  if (parse === undefined) return undefined;
  return parse(Array.isArray(value) ? value.join(', ') : String(value)).ms;
}

/** The smaller of two limits, either of which may be absent. */
export function smallerLimit(a: number | undefined, b: number | undefined): number | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Math.min(a, b);
}

/**
 * A header value that is read when the request is written: undici takes lists of values apart at that moment, over
 * HTTP/1 and HTTP/2. The getter stands on the class, since one defined on each array costs six times as much; and it
 * is told the subject and the name, since a closure for each header costs as much as the rest.
 */
export class SendTimeValue<Subject> extends Array<string> {
  readonly #render: (subject: Subject, name: OutgoingHeader) => string;
  readonly #subject: Subject;
  readonly #name: OutgoingHeader;

  constructor(
    render: (subject: Subject, name: OutgoingHeader) => string,
    subject: Subject,
    name: OutgoingHeader,
  ) {
    super(1);
    this.#render = render;
    this.#subject = subject;
    this.#name = name;
  }

  // `map` and the like would make another of these out of a length.
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  get 0(): string {
    const render = this.#render;
    return render(this.#subject, this.#name);
  }
}
