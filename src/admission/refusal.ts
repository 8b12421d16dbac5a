/** What a request is told that is not let in (design rule 14). */
import { STATUS_CODES } from 'node:http';
import type { RefusalReason } from '../core/terms.ts';
import type { Disposition } from '../core/time-budget.ts';
import type { GateRefusal } from '../telemetry/names.ts';

/** Whoever has left gets no answer. */
export type Answered = Exclude<GateRefusal, 'caller_gone'>;

/** 503 for capacity, 429 for quota, 504 for time that is up; the reason is of the closed list of refusals. */
const ANSWERS: Readonly<Record<Answered, { readonly status: number; readonly reason: RefusalReason }>> = {
  concurrency: { status: 503, reason: 'overloaded' },
  queue_age: { status: 503, reason: 'overloaded' },
  quota: { status: 429, reason: 'quota' },
  deadline_exceeded_before_dispatch: { status: 504, reason: 'deadline_exceeded_before_dispatch' },
  below_useful_minimum: { status: 504, reason: 'below_useful_minimum' },
};

export function dispositionOf(why: Answered): Disposition {
  return why === 'concurrency' || why === 'queue_age' || why === 'quota'
    ? { kind: 'shed', reason: why }
    : { kind: 'refused', reason: why };
}

/** Whole seconds to wait; undefined where waiting does not help or nobody can say how long. */
export function retryAfterS(
  why: Answered,
  overQuotaMs: number | undefined,
  range: readonly [least: number, most: number] | undefined,
): number | undefined {
  if (why === 'quota') {
    const seconds = Math.ceil((overQuotaMs ?? 0) / 1_000);
    // The header has digits, and no exponent.
    return seconds > 0 && Number.isSafeInteger(seconds) ? seconds : undefined;
  }
  if (range === undefined || ANSWERS[why].status !== 503) return undefined;
  const [least, most] = range;
  return least + Math.floor(Math.random() * (most - least + 1));
}

export interface Refusal {
  readonly status: number;
  /** `retry-after` only where waiting can help, and somebody has said for how long. */
  readonly headers: Readonly<Record<string, string>>;
  /** RFC 9457. */
  readonly body: string;
}

export function refusalOf(why: Answered, waitS: number | undefined): Refusal {
  const { status, reason } = ANSWERS[why];
  const headers: Record<string, string> = {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
  };
  if (waitS !== undefined) headers['retry-after'] = String(waitS);
  const problem = { type: 'about:blank', title: STATUS_CODES[status], status, reason };
  return { status, headers, body: JSON.stringify(problem) };
}

/** A response of node:http, and so of Express. */
export interface RawResponse {
  readonly headersSent: boolean;
  statusCode: number;
  setHeader(name: string, value: string): unknown;
  end(body: string): unknown;
}

export function answerRaw(response: RawResponse, refusal: Refusal): void {
  if (response.headersSent) return;
  response.statusCode = refusal.status;
  for (const [name, value] of Object.entries(refusal.headers)) response.setHeader(name, value);
  response.end(refusal.body);
}

/** A reply of Fastify. */
export interface FastifyReply {
  code(status: number): unknown;
  header(name: string, value: string): unknown;
  send(body: string): unknown;
}

export function answerFastify(reply: FastifyReply, refusal: Refusal): void {
  reply.code(refusal.status);
  for (const [name, value] of Object.entries(refusal.headers)) reply.header(name, value);
  reply.send(refusal.body);
}
