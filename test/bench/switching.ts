/**
 * Our own part, the sharper way: one process, whose hooks are switched on and off in random order. Two processes
 * of the same code differ by up to 10 %; here both halves of a pair run in the same one, moments apart.
 */
import { Child } from './child.ts';
import type { Surroundings } from './comparison.ts';
import { CONNECTIONS, HEADERS, PATHS, type Workload } from './services.ts';
import { type Interval, median, medianInterval } from './statistics.ts';
import type { SwitchedAnswers } from './switched.ts';

export interface PairAmounts {
  readonly pairs: number;
  /** Requests in each half of a pair. */
  readonly requests: Readonly<Record<Workload, number>>;
  /** Pairs before them, which warm up and are dropped. */
  readonly warmUpPairs: number;
}

export interface OwnPart {
  readonly name: string;
  /** CPU time of the main thread that the hooks add to a request, in microseconds. */
  readonly addedUs: Interval;
  /** CPU time of a request without them. */
  readonly withoutUs: number;
}

interface Case {
  readonly name: string;
  readonly workload: Workload;
  readonly headers: Readonly<Record<string, string>>;
}

const CASES: readonly Case[] = [
  { name: 'hello, without a budget', workload: 'hello', headers: {} },
  { name: 'hello, with a budget', workload: 'hello', headers: HEADERS },
  { name: 'service, with a budget', workload: 'service', headers: HEADERS },
];

export async function measureOwnPart(amounts: PairAmounts, around: Surroundings): Promise<OwnPart[]> {
  const child = new Child<SwitchedAnswers>('switched.ts', {
    env: { BENCH_PEER: around.peerUrl, BENCH_POSTGRES: around.postgresUrl },
  });
  try {
    const urls = await child.ask('ready');
    const parts: OwnPart[] = [];
    for (const { name, workload, headers } of CASES) {
      const url = `${urls[workload]}${PATHS[workload]}`;
      const amount = amounts.requests[workload];
      const measure = async (isOn: boolean): Promise<number> => {
        await child.ask('switchHooks', isOn);
        const before = await child.ask('cpuUs');
        const load = { url, amount, connections: CONNECTIONS, headers };
        await around.client.ask('load', load, workload === 'hello');
        return ((await child.ask('cpuUs')) - before) / amount;
      };
      const added: number[] = [];
      const without: number[] = [];
      for (let pair = 0; pair < amounts.warmUpPairs + amounts.pairs; pair++) {
        const onFirst = Math.random() < 0.5;
        const first = await measure(onFirst);
        const second = await measure(!onFirst);
        added.push(onFirst ? first - second : second - first);
        without.push(onFirst ? second : first);
      }
      parts.push({
        name,
        addedUs: medianInterval(added.slice(amounts.warmUpPairs)),
        withoutUs: median(without.slice(amounts.warmUpPairs)),
      });
    }
    return parts;
  } finally {
    await child.stop();
  }
}
