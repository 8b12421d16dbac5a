/** For tests of outgoing HTTP: the calls that were recorded, a request to make them in, and servers that stall. */
import { once } from 'node:events';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { vi } from 'vitest';
import type { Adapter, Undo } from '../../instrumentation/adapter.ts';
import { phaseIndex } from '../../src/core/call.ts';
import { PHASES, type Phase } from '../../src/core/terms.ts';
import { runInScope } from '../../src/current.ts';
import type { CallRecord, RequestRecord } from '../../src/records.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { createTestHooks, REAL_CLOCK, type TestHooks } from './hooks.ts';
import { close, listen, until } from './loopback.ts';
import { phaseSums } from './phase-sums.ts';

/** Timers and the clock may differ by this, and a timer may be early by a millisecond. */
export const SLACK_MS = 5;

export interface Watched {
  readonly t: TestHooks;
  /** In the order in which they began. */
  readonly calls: CallRecord[];
  stop: Undo;
}

/** Hooks with these adapters, whose calls are kept to look at. */
export function watchCalls(
  adapters: readonly Adapter[],
  config: ConfigOptions = {},
  clock = REAL_CLOCK,
): Watched {
  const t = createTestHooks({ config, adapters, clock });
  const calls: CallRecord[] = [];
  const begin = t.hooks.calls.begin.bind(t.hooks.calls);
  vi.spyOn(t.hooks.calls, 'begin').mockImplementation((...args) => {
    const call = begin(...args);
    calls.push(call);
    return call;
  });
  return { t, calls, stop: () => t.stop() };
}

export function enter({ t }: Watched, budgetMs?: number): RequestRecord {
  const headers = budgetMs === undefined ? {} : { 'x-request-timeout-ms': String(budgetMs) };
  const now = t.hooks.now();
  const record = t.recorder.enter({ headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' }, now);
  t.recorder.handling(record, 'GET /', now);
  return record;
}

/** Runs a handler in a request with a budget. The request is finished when the handler is. */
export async function inRequest<T>(
  watched: Watched,
  budgetMs: number | undefined,
  handler: (record: RequestRecord) => Promise<T>,
): Promise<{ readonly record: RequestRecord; readonly result: T }> {
  const record = enter(watched, budgetMs);
  const result = await runInScope(record, () => handler(record));
  watched.t.recorder.finish(record, { completed: true, status: 200 }, watched.t.hooks.now());
  return { record, result };
}

export async function ended(call: CallRecord | undefined): Promise<CallRecord> {
  if (call === undefined) throw new Error('there is no such call');
  await until(() => call.endedAt !== undefined, 'the end of the call');
  return call;
}

/**
 * The phases that happened, in the order of the closed list. Without event_loop, which may come in between anywhere
 * on a machine that others use as well.
 */
export function phases(call: CallRecord): Phase[] {
  const sums = phaseSums(call, call.endedAt ?? Infinity);
  return PHASES.filter((phase, index) => sums[index] !== undefined && phase !== 'event_loop');
}

export function ms(call: CallRecord, phase: Phase): number {
  return phaseSums(call, call.endedAt ?? Infinity)[phaseIndex(phase)] ?? 0;
}

export function totalMs(call: CallRecord): number {
  return (call.endedAt ?? Number.NaN) - call.startedAt;
}

export function sumMs(call: CallRecord): number {
  return phaseSums(call, call.endedAt ?? Infinity).reduce<number>((sum, part) => sum + (part ?? 0), 0);
}

export interface Seen {
  readonly url: string;
  readonly at: number;
  readonly rawHeaders: readonly string[];
  readonly socket: net.Socket;
}

export interface StallServer {
  readonly port: number;
  readonly origin: string;
  readonly seen: Seen[];
  /** Answers what is held. */
  release(): void;
  close(): Promise<void>;
}

/**
 * Answers `/<ms>` after that many milliseconds, `/hold` when released, `/silent` never, `/head` with a head and a piece of the body and no
 * more, `/reset` with a cut connection, `/half` with a cut one in the middle of the body, anything else at once.
 */
export async function startServer(options: http.ServerOptions = {}): Promise<StallServer> {
  const seen: Seen[] = [];
  const held: ServerResponse[] = [];
  const server = http.createServer(options, (request: IncomingMessage, response: ServerResponse) => {
    const url = request.url ?? '';
    seen.push({ url, at: performance.now(), rawHeaders: request.rawHeaders, socket: request.socket });
    request.resume();
    const delay = /^\/(\d+)$/.exec(url)?.[1];
    if (delay !== undefined) setTimeout(() => response.end('late'), Number(delay));
    else if (url === '/hold') held.push(response);
    else if (url === '/silent') return;
    else if (url === '/head') response.write('some');
    else if (url === '/half') response.write('some', () => setTimeout(() => request.socket.end(), 20));
    else if (url === '/reset') request.socket.resetAndDestroy();
    else if (url === '/redirect') response.writeHead(302, { location: '/after' }).end();
    else if (url === '/big') response.end('x'.repeat(2_000_000));
    else response.end('ok');
  });
  const port = await listen(server);
  const release = () => {
    for (const response of held.splice(0)) response.end('held');
  };
  return { port, origin: `http://127.0.0.1:${port}`, seen, release, close: () => close(server) };
}

/** Takes connections and never says anything: TLS to it does not come about. */
export async function startMuteServer(): Promise<{ port: number; close: () => Promise<void>; cut: Undo }> {
  const sockets = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.resume();
  });
  const port = await listen(server);
  const cut = () => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    port,
    cut,
    close: async () => {
      cut();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/**
 * A port whose connections do not come about: its process of one thread listens and then sleeps, and its short queue
 * of accepted connections is full.
 */
export async function startBlackHole(): Promise<{ port: number; close: () => Promise<void> }> {
  const worker = new Worker(
    `const { parentPort } = require('node:worker_threads');
     const server = require('node:net').createServer();
     server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
       parentPort.postMessage(server.address().port);
       Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
     });`,
    { eval: true },
  );
  const [port] = (await once(worker, 'message')) as [number];
  const fillers: net.Socket[] = [];
  let isFull = false;
  while (!isFull) {
    const socket = net.connect(port, '127.0.0.1').on('error', () => {});
    fillers.push(socket);
    isFull = await Promise.race([once(socket, 'connect').then(() => false), sleep(200, true)]);
  }
  return {
    port,
    close: async () => {
      for (const socket of fillers) socket.destroy();
      await worker.terminate();
    },
  };
}

/** The values of a header as it was on the wire, in any case. */
export function headerValues(seen: Seen | undefined, name: string): string[] {
  const raw = seen?.rawHeaders ?? [];
  return raw.filter((_, index) => index % 2 === 1 && raw[index - 1]?.toLowerCase() === name);
}

/** What our header says is left. */
export function remainingOf(seen: Seen | undefined): number {
  const [value = ''] = headerValues(seen, 'time-budget');
  return Number(/remaining=(\d+)/.exec(value)?.[1] ?? Number.NaN);
}
