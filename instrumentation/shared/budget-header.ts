/** Budget headers of an outgoing request: those that the application set itself, and ours at the moment of the send. */
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
 * HTTP/1 and HTTP/2. The getter stands on the class, since one defined on each array costs six times as much.
 */
export class SendTimeValue extends Array<string> {
  readonly #render: () => string;

  constructor(render: () => string) {
    super(1);
    this.#render = render;
  }

  // `map` and the like would make another of these out of a length.
  static override get [Symbol.species](): ArrayConstructor {
    return Array;
  }

  get 0(): string {
    return this.#render();
  }
}
