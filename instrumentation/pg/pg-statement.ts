/** One statement of pg, from `client.query` until its result is complete, as phases of a call. */
import type { CallEnding } from '../../src/call-recorder.ts';
import type { CallRecord } from '../../src/records.ts';
import { ATTR } from '../../src/telemetry/names.ts';
import type { Hooks } from '../adapter.ts';
import { callLag } from '../shared/call-lag.ts';
import { commits, READ_TIMEOUT, readFault } from './pg-ending.ts';
import type { SpanSubject } from './pg-spans.ts';

/** Limits of the application that pg knows: its own timer, and what the server was told for the session. */
export interface StatementLimits {
  readonly queryMs: number | undefined;
  readonly serverMs: number | undefined;
}

/** Where they stand: a query's config, a client's connection parameters, a pool's options. */
export interface LimitSource {
  readonly query_timeout?: unknown;
  readonly statement_timeout?: unknown;
}

const NO_SOURCE: LimitSource = {};
const NO_LIMITS: StatementLimits = { queryMs: undefined, serverMs: undefined };

/** `config` may be anything that was passed to `query`; only an object can carry a limit. */
export function limitsOf(config: unknown, session: LimitSource | undefined): StatementLimits {
  const own: LimitSource = typeof config === 'object' && config !== null ? config : NO_SOURCE;
  const queryMs = limitMs(own.query_timeout) ?? limitMs(session?.query_timeout);
  const serverMs = limitMs(session?.statement_timeout);
  return queryMs === undefined && serverMs === undefined ? NO_LIMITS : { queryMs, serverMs };
}

export function smallestMs({ queryMs, serverMs }: StatementLimits): number | undefined {
  if (queryMs === undefined || serverMs === undefined) return queryMs ?? serverMs;
  return Math.min(queryMs, serverMs);
}

/** A limit in ms; pg takes 0, false and nothing for none, and from a connection string it is a text. */
export function limitMs(value: unknown): number | undefined {
  const ms = typeof value === 'string' ? Number.parseInt(value, 10) : value;
  return typeof ms === 'number' && ms > 0 && ms < Infinity ? ms : undefined;
}

/** The connection that a statement runs on. */
interface Session {
  readonly processID?: unknown;
}

export class Statement implements SpanSubject {
  readonly spanName = 'pg.query';
  readonly call: CallRecord;
  /** When `query` was called; the call may have begun before, waiting for the pool. */
  readonly askedAt: number;
  readonly #hooks: Hooks;
  readonly #session: Session;
  readonly #limits: StatementLimits;
  readonly #isPromised: boolean;
  #text: unknown;
  #queued = false;
  #isAnswered = false;

  /** `isPromised`: what pg calls with the result is its own, and settles a promise. */
  constructor(
    hooks: Hooks,
    session: Session,
    call: CallRecord,
    askedAt: number,
    limits: StatementLimits,
    isPromised: boolean,
  ) {
    this.#hooks = hooks;
    this.#session = session;
    this.call = call;
    this.askedAt = askedAt;
    this.#limits = limits;
    this.#isPromised = isPromised;
  }

  /** pg's own query object, read only where the ending leaves a question. */
  describe(query: { readonly text?: unknown }): void {
    this.#text = query.text;
  }

  /** The connection is busy with an earlier statement, or not up yet. */
  queued(phase: 'pool_wait' | 'connect'): void {
    this.#queued = true;
    this.call.enter(phase, this.askedAt);
  }

  /** Handed to the connection. */
  sent(at: number): void {
    if (this.call.dispatchedAt !== undefined) return;
    // A queued statement is sent when the answer before it has been seen, which may have lain in the socket.
    this.call.enter('db_execution', at, this.#queued ? callLag(this.#hooks, this.call, at) : 0);
    this.call.dispatchedAt = at;
  }

  /**
   * A row, or the completion of a command, has come: the first says that execution is over. The columns do not: the
   * server tells them before it works, and may do so together with the error it ends in. Rows are many.
   */
  answering(): void {
    if (this.#isAnswered) return;
    this.#isAnswered = true;
    const now = this.#hooks.now();
    this.call.enter('response', now, callLag(this.#hooks, this.call, now));
  }

  complete(): void {
    const now = this.#hooks.now();
    this.#end('answered', now, callLag(this.#hooks, this.call, now));
  }

  /**
   * Nothing of the application runs with its result, so that it need not be in whose name. Not once it has a span:
   * the instrumentation's response hook is the application's. To be asked before the end, which lets go of the span.
   */
  get isSilent(): boolean {
    return this.#isPromised && this.call.span === undefined;
  }

  fail(error: unknown): void {
    const { call } = this;
    if (call.endedAt !== undefined) return;
    const now = this.#hooks.now();
    const sentAt = call.dispatchedAt;
    const { queryMs, serverMs } = this.#limits;
    const limitReached = sentAt !== undefined && serverMs !== undefined && now - sentAt >= serverMs;
    const { ending, server } = readFault(error, { connecting: false, limitReached });
    const isFromServer = server === 'answered';
    if (ending === 'timed_out') call.ownTimeoutMs = (isFromServer ? serverMs : queryMs) ?? call.ownTimeoutMs;
    if (ending !== 'answered' && server !== 'not_asked' && sentAt !== undefined) {
      call.mayStillRun = !isFromServer;
      call.commitUnknown = commits(this.#text);
    }
    this.#end(ending, now, isFromServer ? callLag(this.#hooks, call, now) : 0);
  }

  /** pg's own timer is the only one that tells its callback first, and the query object after. */
  get isToldLate(): boolean {
    return this.#limits.queryMs !== undefined;
  }

  spanEnds(): void {
    // Before it was taken into the queue, `query` itself has thrown.
    const isTaken = this.#queued || this.call.dispatchedAt !== undefined;
    this.fail(isTaken ? new Error(READ_TIMEOUT) : undefined);
  }

  #end(ending: CallEnding, now: number, lagMs: number): void {
    const { span } = this.call;
    if (span?.isRecording()) {
      const { processID } = this.#session;
      // What a time-out left running on a connection holds up the statements after it: this tells they shared one.
      if (typeof processID === 'number') span.setAttribute(ATTR.connectionId, processID);
    }
    this.#hooks.calls.end(this.call, ending, now, lagMs);
  }
}
