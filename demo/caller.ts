/** The caller outside: gives a budget, and gives up soon after it is over, as callers do. */
import { randomBytes } from 'node:crypto';
import http from 'node:http';
import type { CallerView } from './waterfall.ts';

/**
 * A caller waits a little longer than it says: what it gives is for the work, this is for the way there and back.
 * One that does not leaves before the service's deadline, by as long as the request was on its way.
 */
const WAY_MS = 40;

export interface Call {
  readonly url: string;
  /** Sent as `x-request-timeout-ms`; undefined: no budget is given and the answer is waited for. */
  readonly budgetMs?: number | undefined;
  readonly leavesAfterMs?: number | undefined;
}

export interface Answer extends CallerView {
  readonly traceId: string;
  /** The caller's own span, which it does not export. */
  readonly spanId: string;
  /** Unix milliseconds. */
  readonly sentAt: number;
}

/** Ids of one call, known before it is made. */
export interface TraceIds {
  readonly traceId: string;
  readonly spanId: string;
}

export function newTraceIds(): TraceIds {
  return { traceId: randomBytes(16).toString('hex'), spanId: randomBytes(8).toString('hex') };
}

export class Caller {
  readonly #agent = new http.Agent({ keepAlive: true });

  /** Sends a GET. Resolves when the answer is complete or the caller gave up; rejects on any other failure. */
  get({ url, budgetMs, leavesAfterMs }: Call, ids: TraceIds = newTraceIds()): Promise<Answer> {
    const headers: http.OutgoingHttpHeaders = { traceparent: `00-${ids.traceId}-${ids.spanId}-01` };
    if (budgetMs !== undefined) headers['x-request-timeout-ms'] = budgetMs;
    return new Promise((resolve, reject) => {
      let status: number | undefined;
      let hasGivenUp = false;
      let timer: NodeJS.Timeout | undefined;
      let sentAt = unixNow();
      const request = http.get(url, { agent: this.#agent, headers });
      // From the moment the request is out: the time to get a connection is no part of what the service is given.
      request.once('finish', () => {
        sentAt = unixNow();
        if (leavesAfterMs === undefined && budgetMs === undefined) return;
        const waitMs = leavesAfterMs ?? (budgetMs ?? 0) + WAY_MS;
        timer = setTimeout(() => {
          hasGivenUp = true;
          request.destroy();
        }, waitMs);
      });
      request.once('response', (response) => {
        response.once('end', () => {
          status = response.statusCode;
        });
        response.resume();
      });
      request.once('error', (error) => {
        if (!hasGivenUp) reject(error);
      });
      request.once('close', () => {
        clearTimeout(timer);
        resolve({
          ...ids,
          budgetMs: budgetMs ?? Number.POSITIVE_INFINITY,
          sentAt,
          endedMs: unixNow() - sentAt,
          status,
        });
      });
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

function unixNow(): number {
  return performance.timeOrigin + performance.now();
}
