/**
 * The variants side by side. A round starts a process of each, warms all up and then measures them in turn, a
 * slice each, so that what else the machine does falls on all alike. Ratios are taken within a round.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Child } from './child.ts';
import type { ClientAnswers } from './client.ts';
import type { SeriesShape } from './fill.ts';
import type { Peer } from './peer.ts';
import type { ServiceAnswers } from './service.ts';
import { CONNECTIONS, HEADERS, HELD_PATH, PATHS, type Workload } from './services.ts';
import { median } from './statistics.ts';
import { type Launch, launchOf, SETUPS, VARIANT_NAMES, VARIANTS, type Variant } from './variants.ts';

/** Counts, not times: a variant that is slower does not get less to do. */
export interface Amounts {
  readonly rounds: number;
  readonly slices: number;
  readonly warmUp: Readonly<Record<Workload, number>>;
  readonly slice: Readonly<Record<Workload, number>>;
  readonly held: number;
  readonly scrapes: number;
}

/** The processes that the measured ones talk to. */
export interface Surroundings {
  readonly client: Child<ClientAnswers>;
  readonly peer: Peer;
  readonly peerUrl: string;
  readonly postgresUrl: string;
}

interface Load {
  /** CPU time of the process per request, user and system, in microseconds. */
  readonly cpuUs: number;
  readonly requestsPerS: number;
}

/** Heap per request of the service, more than without connections. */
interface Memory {
  /** While the request waits for its peer, with its two connections. */
  readonly heldBytes: number;
  /** Afterwards, with the two connections idle. */
  readonly idleBytes: number;
}

interface RoundFigures extends Readonly<Record<Workload, Load>> {
  /** From the start of the process until the service listens. */
  readonly startMs: number;
  readonly memory: Memory;
}
export type Round = Readonly<Record<Variant, RoundFigures>>;

/** From the second time on the connections keep what they keep of requests before. */
const HOLD_TIMES = 3;
/** For what is done after a reply, and for spans to be exported; see OTEL_BSP_SCHEDULE_DELAY. */
const SETTLE_MS = 400;
const NO_MEMORY: Memory = { heldBytes: 0, idleBytes: 0 };

interface Running {
  readonly child: Child<ServiceAnswers>;
  readonly url: string;
  readonly startMs: number;
}

async function start(
  variant: Variant,
  workload: Workload,
  launch: Launch,
  around: Surroundings,
): Promise<Running> {
  const child = new Child<ServiceAnswers>('service.ts', {
    execArgv: launch.execArgv,
    args: [workload],
    env: { ...launch.env, BENCH_PEER: around.peerUrl, BENCH_POSTGRES: around.postgresUrl },
  });
  const { url, listeningMs, records } = await child.ask('ready');
  if (records !== SETUPS[variant].records) {
    await child.stop();
    throw new Error(`${VARIANT_NAMES[variant]}: ${records ? 'a' : 'no'} recorder is active`);
  }
  return { child, url, startMs: listeningMs };
}

export async function measureRound(index: number, amounts: Amounts, around: Surroundings): Promise<Round> {
  const service = await measureWorkload('service', index, amounts, around);
  const hello = await measureWorkload('hello', index, amounts, around);
  for (const variant of VARIANTS) {
    const hasExported = around.peer.exportsOf(variant) > 0;
    if (hasExported !== SETUPS[variant].exportsSpans) {
      throw new Error(`${VARIANT_NAMES[variant]}: spans ${hasExported ? 'came' : 'did not come'} out of it`);
    }
  }
  const figures = VARIANTS.map((variant) => {
    const { load, startMs, memory } = service[variant];
    return [variant, { service: load, hello: hello[variant].load, startMs, memory }] as const;
  });
  return recordOf(figures);
}

interface Measured {
  readonly load: Load;
  readonly startMs: number;
  readonly memory: Memory;
}

async function measureWorkload(
  workload: Workload,
  round: number,
  amounts: Amounts,
  around: Surroundings,
): Promise<Readonly<Record<Variant, Measured>>> {
  const running: [Variant, Running][] = [];
  try {
    for (const variant of turned(VARIANTS, round)) {
      running.push([
        variant,
        await start(variant, workload, await launchOf(variant, around.peerUrl), around),
      ]);
    }
    for (const [, { url }] of running) await load(url, workload, amounts.warmUp[workload], around);
    const slices = new Map<Variant, Load[]>(VARIANTS.map((variant) => [variant, []]));
    for (let slice = 0; slice < amounts.slices; slice++) {
      for (const [variant, { child, url }] of turned(running, slice)) {
        const before = await child.ask('cpuUs');
        const requestsPerS = await load(url, workload, amounts.slice[workload], around);
        const cpuUs = ((await child.ask('cpuUs')) - before) / amounts.slice[workload];
        slices.get(variant)?.push({ cpuUs, requestsPerS });
      }
    }
    const measured: [Variant, Measured][] = [];
    for (const [variant, service] of running) {
      const memory = workload === 'service' ? await measureMemory(service, amounts.held, around) : NO_MEMORY;
      const load = meanOf(slices.get(variant) ?? []);
      measured.push([variant, { load, startMs: service.startMs, memory }]);
    }
    return recordOf(measured);
  } finally {
    await Promise.all(running.map(([, { child }]) => child.stop()));
  }
}

function load(url: string, workload: Workload, amount: number, around: Surroundings): Promise<number> {
  const request = { url: `${url}${PATHS[workload]}`, amount, connections: CONNECTIONS, headers: HEADERS };
  return around.client.ask('load', request, workload === 'hello');
}

/** Compared with the heap after the connections are gone, and not before they came: then code is still warming up. */
async function measureMemory({ child, url }: Running, count: number, around: Surroundings): Promise<Memory> {
  let held = 0;
  let idle = 0;
  for (let time = 0; time < HOLD_TIMES; time++) {
    await around.client.ask('hold', `${url}${HELD_PATH}`, count, HEADERS);
    await around.peer.holds(count);
    await sleep(SETTLE_MS);
    held = await child.ask('heapBytes');
    around.peer.release();
    await around.client.ask('released');
    await sleep(SETTLE_MS);
    idle = await child.ask('heapBytes');
  }
  await around.client.ask('disconnect');
  around.peer.disconnect();
  await sleep(SETTLE_MS);
  const gone = await child.ask('heapBytes');
  return { heldBytes: (held - gone) / count, idleBytes: (idle - gone) / count };
}

export interface Scrape {
  /** Lines of the answer that are samples. */
  readonly samples: number;
  readonly bytes: number;
  /** Longest time for which a scrape held the loop, in ms; of several scrapes the median. */
  readonly blockMs: number;
}

/** What a scrape costs the service, with the series of a service of this shape; none of ours where it is undefined. */
export async function measureScrape(
  variant: Exclude<Variant, 'bare'>,
  shape: SeriesShape | undefined,
  amounts: Amounts,
  around: Surroundings,
): Promise<Scrape> {
  const launch = await launchOf(variant, around.peerUrl);
  const { child, url } = await start(variant, 'service', launch, around);
  try {
    await load(url, 'service', amounts.slice.service, around);
    if (shape !== undefined) await child.ask('fill', shape);
    const blocks: number[] = [];
    let text = '';
    for (let i = 0; i < amounts.scrapes; i++) {
      await child.ask('watchLoop');
      text = await (await fetch(launch.metricsUrl ?? '')).text();
      blocks.push(await child.ask('longestBlockMs'));
    }
    const samples = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
    return { samples, bytes: text.length, blockMs: median(blocks) };
  } finally {
    await child.stop();
  }
}

function meanOf(loads: readonly Load[]): Load {
  const sum = (read: (load: Load) => number) => loads.reduce((total, one) => total + read(one), 0);
  return {
    cpuUs: sum((one) => one.cpuUs) / loads.length,
    requestsPerS: sum((one) => one.requestsPerS) / loads.length,
  };
}

/** The same items, begun at another one: nobody is always first. */
function turned<T>(items: readonly T[], by: number): T[] {
  const start = by % items.length;
  return [...items.slice(start), ...items.slice(0, start)];
}

function recordOf<T>(entries: readonly (readonly [Variant, T])[]): Readonly<Record<Variant, T>> {
  // Every variant is measured in every round.
  return Object.fromEntries(entries) as Record<Variant, T>;
}
