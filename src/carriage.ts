/** Headers out, per format: which ones go to a dependency, and what each says at the moment of the send. */
import { formatConnectTimeout, formatEnvoyTimeout, formatRequestTimeout } from './core/wire.ts';
import { formatGrpcTimeout } from './core/wire-grpc.ts';
import {
  callerToken,
  formatOthers,
  formatTimeBudget,
  HEADER_TIME_BUDGET,
  withRemaining,
} from './core/wire-time-budget.ts';
import type { CallRecord, RequestRecord, Scope } from './records.ts';
import type { Config, ForeignHeader } from './telemetry/config-settings.ts';

export type OutgoingHeader = typeof HEADER_TIME_BUDGET | ForeignHeader;

const NONE: readonly OutgoingHeader[] = Object.freeze([]);
const OWN_ONLY: readonly OutgoingHeader[] = Object.freeze([HEADER_TIME_BUDGET]);

const FORMATS: Readonly<Record<ForeignHeader, (ms: number) => string | undefined>> = {
  'x-request-timeout-ms': formatRequestTimeout,
  'grpc-timeout': formatGrpcTimeout,
  'x-envoy-expected-rq-timeout-ms': formatEnvoyTimeout,
  'connect-timeout-ms': formatConnectTimeout,
};

export class Carriage {
  readonly #config: Config;
  readonly #caller: string | undefined;
  /** What our header says beside `remaining` of an original of a request of which nothing is to be told. */
  readonly #usual: string;

  /** `serviceName` is what the peers see as their caller. */
  constructor(config: Config, serviceName: string) {
    this.#config = config;
    this.#caller = callerToken(serviceName);
    this.#usual = formatOthers({ attempt: 1, caller: this.#caller });
  }

  /** The headers that go to this host. Nothing of ours reaches a host that is not listed, if hosts are. */
  headersFor(call: CallRecord, host: string, port: number | undefined): readonly OutgoingHeader[] {
    // Work that is meant to outlive the request hands nothing of it on.
    if (call.detached) return NONE;
    const own = this.#config.sendsOwnHeader(host, port);
    const foreign =
      call.settings !== undefined && call.settings.mode !== 'observe' ? call.settings.headers : NONE;
    if (foreign.length === 0) return own ? OWN_ONLY : NONE;
    return own ? [HEADER_TIME_BUDGET, ...foreign] : foreign;
  }

  /**
   * The value of a header for a call that is being sent, from what `dispatch` handed down. undefined: leave
   * the header out. Envoy reads 0 as no limit, so an exhausted budget is not written there.
   */
  render(header: OutgoingHeader, call: CallRecord, remainingMs: number | undefined): string | undefined {
    if (header !== HEADER_TIME_BUDGET)
      return remainingMs === undefined ? undefined : FORMATS[header](remainingMs);
    const request = call.scope?.request;
    const isUsual = call.attempt === 1 && (request === undefined || tellsNothing(request));
    return withRemaining(remainingMs, isUsual ? this.#usual : this.#others(call, request));
  }

  #others({ attempt }: CallRecord, request: RequestRecord | undefined): string {
    return formatOthers({
      attempt,
      repeated: attempt > 1 || (request?.repeated ?? false),
      caller: this.#caller,
      priority: request?.priority,
      workload: request?.workload,
    });
  }

  /**
   * Our header for a message that is sent in this scope now; its age in a queue is told by `sentWallMs`, where the broker
   * cannot tell it. The first attempt of the message, whatever attempt the request itself is.
   */
  renderMessage({ request, deadlineAt }: Scope, now: number, sentWallMs: number): string | undefined {
    const reserveMs = this.#config.reserveMsFor(request.operation, undefined);
    return formatTimeBudget({
      remainingMs: deadlineAt === Infinity ? undefined : deadlineAt - now - reserveMs,
      attempt: 1,
      repeated: request.repeated,
      caller: this.#caller,
      priority: request.priority,
      workload: request.workload,
      sentWallMs,
    });
  }
}

function tellsNothing({ repeated, priority, workload }: RequestRecord): boolean {
  return !repeated && priority === 'unset' && workload === undefined;
}
