/**
 * Holds the bound of `loopWaitMs` against the truth: how long did an event really wait for the event loop?
 *
 * A second process on the same host says in a header when it sent (wall time made from its monotonic clock); the
 * process under test notes when its loop came to it. Run `node test/bench/arrival.ts [scenario ...]`: a minute and
 * a half for all, loopback only. Columns: late = waited over 15 ms; missed = bound more than 5 ms below the truth;
 * lowest = bound minus truth at its lowest; false = punctual, but bounded over 15 ms; over = bound minus truth.
 * Methods: idle = busy time since the loop was last idle, alone; plain = with the loop's iterations, but only seen
 * at events; bound = `loopWaitMs` while `watchLoop` is on.
 *
 * Run it on an idle machine: to itself a process that waits for a CPU looks asleep, so no method sees that wait.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { loopWaitMs, watchLoop } from '../../instrumentation/process/loop-clock.ts';
import { LoopMeter } from '../../src/core/loop-meter.ts';

/** What really passed, and what each method says. */
type Row = readonly [trueMs: number, idleMs: number, plainMs: number, boundMs: number];

interface Scenario {
  readonly name: string;
  readonly what: string;
  /** Work of the process under test that is not a request: `blockMs` at a time, `gapMs` between. */
  readonly timer?: { readonly blockMs: readonly [number, number]; readonly gapMs: readonly [number, number] };
  /** The process under test makes calls every `gapMs`, answered after `afterMs`; the answers are judged. */
  readonly calls?: {
    readonly afterMs: readonly [number, number];
    readonly gapMs: readonly [number, number];
    readonly thenBurnMs: number;
  };
  /** Runs in the sending process, until the scenario is over. */
  readonly send: (port: number) => Promise<void>;
}

/** What the sending process tells the one under test to do beside its requests. */
type Order = Pick<Scenario, 'timer' | 'calls'> & { readonly end?: true; readonly callPort?: number };

const wall = (): number => performance.timeOrigin + performance.now();
const between = ([low, high]: readonly [number, number]): number => low + Math.random() * (high - low);

function burn(forMs: number): void {
  const until = performance.now() + forMs;
  while (performance.now() < until);
}

// ---- the sending side ------------------------------------------------------------------------------------------

async function open(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').setNoDelay(true);
  socket.on('error', () => socket.destroy());
  await once(socket, 'connect');
  return socket;
}

function write(socket: Socket, burnMs: number, close = false): void {
  const end = close ? 'connection: close\r\n' : '';
  socket.write(`GET /?${burnMs} HTTP/1.1\r\nhost: x\r\nsent-at: ${wall()}\r\n${end}\r\n`);
}

async function openAll(port: number, count: number): Promise<Socket[]> {
  return Promise.all(Array.from({ length: count }, () => open(port)));
}

/** One request after another on each of `count` connections, for `forMs`. */
async function closedLoop(port: number, count: number, burnMs: number, forMs: number): Promise<void> {
  const sockets = await openAll(port, count);
  const endAt = performance.now() + forMs;
  await Promise.all(
    sockets.map(async (socket) => {
      while (performance.now() < endAt) {
        write(socket, burnMs);
        await once(socket, 'data');
      }
      socket.destroy();
    }),
  );
}

async function onNewConnection(port: number, burnMs: number): Promise<void> {
  // Connected says only that the kernel took it: the process under test may be far from accepting it.
  const socket = await open(port);
  write(socket, burnMs, true);
  socket.resume();
  await once(socket, 'close');
}

/** The same with a new connection for every request. */
async function closedLoopOfNew(port: number, count: number, burnMs: number, forMs: number): Promise<void> {
  const endAt = performance.now() + forMs;
  const lane = async (): Promise<void> => {
    while (performance.now() < endAt) await onNewConnection(port, burnMs);
  };
  await Promise.all(Array.from({ length: count }, lane));
}

/** Requests at random instants, `gapMs` apart on the average, on whichever of 16 connections is free. */
async function openLoop(port: number, gapMs: number, forMs: number, burnsMs: () => number): Promise<void> {
  const free = await openAll(port, 16);
  const all = [...free];
  const endAt = performance.now() + forMs;
  while (performance.now() < endAt) {
    await sleep(-Math.log(1 - Math.random()) * gapMs);
    const socket = free.pop();
    if (socket === undefined) continue;
    write(socket, burnsMs());
    void once(socket, 'data').then(() => free.push(socket));
  }
  await sleep(500);
  for (const socket of all) socket.destroy();
}

async function burst(port: number, count: number, burnMs: number): Promise<void> {
  const sockets = await openAll(port, count);
  await sleep(200);
  for (const socket of sockets) write(socket, burnMs);
  await Promise.all(sockets.map((socket) => once(socket, 'data')));
  for (const socket of sockets) socket.destroy();
}

async function burstOfNew(port: number, count: number, burnMs: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => onNewConnection(port, burnMs)));
}

const none = (): number => 0;
const BLOCKS = { blockMs: [20, 200], gapMs: [50, 300] } as const;

const SCENARIOS: readonly Scenario[] = [
  { name: 'quiet', what: '50 requests/s, nothing else', send: (p) => openLoop(p, 20, 4000, none) },
  {
    name: 'timer',
    what: '60 requests/s, a timer blocks 20-200 ms',
    timer: BLOCKS,
    send: (p) => openLoop(p, 16, 8000, none),
  },
  {
    name: 'request',
    what: '60 requests/s, one in 16 burns 20-200 ms',
    send: (p) => openLoop(p, 16, 8000, () => (Math.random() < 1 / 16 ? between([20, 200]) : 0)),
  },
  {
    name: 'background',
    what: '5 requests/s, a timer burns 5 ms in 50',
    timer: { blockMs: [5, 5], gapMs: [45, 45] },
    send: (p) => openLoop(p, 200, 8000, none),
  },
  {
    name: 'busy-0.1',
    what: '32 connections, 0.1 ms each, closed loop',
    send: (p) => closedLoop(p, 32, 0.1, 5000),
  },
  { name: 'busy-5', what: '32 connections, 5 ms each, closed loop', send: (p) => closedLoop(p, 32, 5, 5000) },
  {
    name: 'busy-new-0.1',
    what: '32 lanes, new connection each, 0.1 ms',
    send: (p) => closedLoopOfNew(p, 32, 0.1, 4000),
  },
  {
    name: 'busy-new-5',
    what: '32 lanes, new connection each, 5 ms',
    send: (p) => closedLoopOfNew(p, 32, 5, 4000),
  },
  { name: 'F18', what: '200 open connections at once, 20 ms each', send: (p) => burst(p, 200, 20) },
  { name: 'F18-new', what: '200 new connections at once, 20 ms each', send: (p) => burstOfNew(p, 200, 20) },
  {
    name: 'answers',
    what: 'own calls answered after 10-80 ms, a timer blocks 20-200 ms',
    timer: BLOCKS,
    calls: { afterMs: [10, 80], gapMs: [5, 30], thenBurnMs: 0 },
    send: () => sleep(8000),
  },
  {
    name: 'answer-190',
    what: 'own calls answered after 10 ms, the loop blocked for 200 ms as soon as they are sent',
    calls: { afterMs: [10, 10], gapMs: [300, 400], thenBurnMs: 200 },
    send: () => sleep(8000),
  },
];

// ---- the process under test ------------------------------------------------------------------------------------

function idleOnly(): () => number {
  const timing = performance.nodeTiming;
  let at = performance.now();
  let idle = timing.idleTime;
  let since = at;
  return () => {
    const now = performance.now();
    const nowIdle = timing.idleTime;
    const slept = nowIdle - idle;
    const bound = slept < 0.05 ? now - since : Math.max(0, now - at - slept);
    since = now - bound;
    at = now;
    idle = nowIdle;
    return bound;
  };
}

/** The package's own way, but without the looks at iterations that bring no event. */
function withoutLooks(): (now: number, socket?: Socket) => number {
  const timing = performance.nodeTiming;
  const meter = new LoopMeter();
  subscribe('net.server.socket', () => {
    meter.sample(performance.now(), timing.idleTime);
    meter.accept(timing.uvMetricsInfo.loopCount);
  });
  return (now, socket) => {
    meter.sample(now, timing.idleTime);
    return meter.tighten(timing.uvMetricsInfo.loopCount, socket !== undefined && socket.bytesWritten === 0);
  };
}

async function underTest(): Promise<void> {
  const rows: Row[] = [];
  watchLoop({
    guard: (hook) => hook,
    subscribe: (channel, onMessage) => {
      subscribe(channel, onMessage);
      return () => {
        unsubscribe(channel, onMessage);
      };
    },
  });
  const idle = idleOnly();
  const plain = withoutLooks();
  const judge = (sentAt: number, socket?: Socket): void => {
    const now = performance.now();
    const trueMs = performance.timeOrigin + now - sentAt;
    rows.push([trueMs, idle(), plain(now, socket), loopWaitMs(now, socket)]);
  };

  subscribe('http.server.request.start', (message) => {
    // The shape is in Node's documentation of the channel; the message itself is untyped.
    const { request, socket } = message as { request: IncomingMessage; socket: Socket };
    const sentAt = Number(request.headers['sent-at']);
    if (sentAt > 0) judge(sentAt, socket);
  });
  subscribe('http.server.response.finish', () => {
    const now = performance.now();
    idle();
    loopWaitMs(now);
    plain(now);
  });
  subscribe('undici:request:headers', (message) => {
    // As above: name, value, name, value, ... as bytes.
    const { headers } = (message as { response: { headers: Buffer[] } }).response;
    const name = headers.findIndex((header) => header.toString() === 'sent-at');
    judge(Number(headers[name + 1]));
  });

  const server = createServer((request, response) => {
    burn(Number(request.url?.slice(2)));
    response.end('ok');
  });
  server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));

  process.on('message', (message) => {
    const { end, timer, calls, callPort } = message as Order;
    if (end) {
      process.send?.(rows, () => process.exit());
      return;
    }
    if (timer) {
      const block = (): void => {
        burn(between(timer.blockMs));
        setTimeout(block, between(timer.gapMs));
      };
      setTimeout(block, 100);
    }
    if (calls) {
      const call = (): void => {
        void fetch(`http://127.0.0.1:${callPort}/`).then((response) => response.text());
        // 3 ms: by then the request has been written.
        if (calls.thenBurnMs > 0) setTimeout(burn, 3, calls.thenBurnMs);
        setTimeout(call, between(calls.gapMs));
      };
      call();
    }
  });
}

// ---- the table -------------------------------------------------------------------------------------------------

function quantile(sorted: readonly number[], share: number): string {
  const value = sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
  return value === undefined ? '-' : value.toFixed(1);
}

function print(scenario: Scenario, rows: readonly Row[]): void {
  const late = rows.filter((row) => row[0] > 15);
  const punctual = rows.filter((row) => row[0] <= 15);
  console.log(`\n${scenario.name}: ${scenario.what}; ${rows.length} events, ${late.length} late`);
  const truths = rows.map((row) => row[0]).sort((a, b) => a - b);
  console.log(
    `  truth p50 ${quantile(truths, 0.5)}, p95 ${quantile(truths, 0.95)}, max ${quantile(truths, 1)}`,
  );
  console.log('  method   missed  lowest   false   punctual over p50/p95/max    late over p50/p95/max');
  for (const [index, method] of [
    [1, 'idle'],
    [2, 'plain'],
    [3, 'bound'],
  ] as const) {
    const over = (some: readonly Row[]): number[] =>
      some.map((row) => row[index] - row[0]).sort((a, b) => a - b);
    const three = (some: readonly Row[]): string => {
      const sorted = over(some);
      return [0.5, 0.95, 1].map((share) => quantile(sorted, share).padStart(8)).join('');
    };
    const all = over(rows);
    const missed = all.filter((ms) => ms < -5).length;
    const wrong = punctual.filter((row) => row[index] > 15).length;
    const counts = `${String(missed).padStart(6)}${quantile(all, 0).padStart(9)}${String(wrong).padStart(8)}`;
    console.log(`  ${method.padEnd(8)}${counts}   ${three(punctual)}  ${three(late)}`);
  }
}

async function message(child: ChildProcess): Promise<unknown> {
  return (await once(child, 'message'))[0];
}

async function run(scenario: Scenario): Promise<void> {
  const child = fork(import.meta.filename, ['--under-test'], { serialization: 'advanced' });
  // The child sends its port, then nothing until it is told to end, then its rows.
  const port = (await message(child)) as number;
  const backend = createServer((_request: IncomingMessage, response: ServerResponse) => {
    const answer = (): void => {
      response.writeHead(200, { 'sent-at': String(wall()) }).end('ok');
    };
    setTimeout(answer, between(scenario.calls?.afterMs ?? [0, 0]));
  });
  await once(backend.listen(0, '127.0.0.1'), 'listening');
  await sleep(300);
  const callPort = (backend.address() as AddressInfo).port;
  child.send({ timer: scenario.timer, calls: scenario.calls, callPort });
  await scenario.send(port);
  child.send({ end: true });
  print(scenario, (await message(child)) as Row[]);
  backend.close();
  backend.closeAllConnections();
}

if (process.argv.includes('--under-test')) {
  await underTest();
} else {
  const asked = process.argv.slice(2);
  for (const scenario of SCENARIOS) {
    if (asked.length === 0 || asked.includes(scenario.name)) await run(scenario);
  }
}
