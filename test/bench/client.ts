/** The client, in a process of its own: its work is not to be counted as the service's. */

import { Agent, get, type IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { answer } from './child.ts';

interface Load {
  readonly url: string;
  readonly amount: number;
  readonly connections: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Milliseconds between two looks at whether the run is over. */
  readonly sampleInt: number;
}

interface Run extends Promise<{ readonly errors: number; readonly non2xx: number }> {
  on(event: 'response', listener: () => void): void;
}

// autocannon has no types; this is what is used of it.
const autocannon = createRequire(import.meta.url)('autocannon') as (load: Load) => Run;

const agent = new Agent({ keepAlive: true });
let held: Promise<void>[] = [];

const answers = {
  /**
   * Sends `amount` requests and gives requests per second; throws if one failed. With `staysAwake` it turns its
   * loop without a pause: a client on the same machine that sleeps has to be woken by the kernel inside the
   * service's own write, which here costs as much as a third of a hello request, and more often the slower the
   * service is. It takes a core, so only for a service that needs nobody else.
   */
  async load(load: Omit<Load, 'sampleInt'>, staysAwake: boolean): Promise<number> {
    const startedAt = performance.now();
    let endedAt = startedAt;
    let isAwake = staysAwake;
    const turn = () => {
      if (isAwake) setImmediate(turn);
    };
    const run = autocannon({ ...load, sampleInt: 10 });
    run.on('response', () => {
      endedAt = performance.now();
    });
    turn();
    const { errors, non2xx } = await run;
    isAwake = false;
    if (errors + non2xx > 0) throw new Error(`${errors} errors and ${non2xx} answers other than 2xx`);
    return (load.amount / (endedAt - startedAt)) * 1000;
  },

  /** Sends requests that are not answered until the peer lets them go. */
  hold(url: string, count: number, headers: Readonly<Record<string, string>>): void {
    held = Array.from({ length: count }, () => getAll(url, headers));
  },

  /** Closes the connections of the held requests. */
  disconnect(): void {
    agent.destroy();
  },

  /** Resolves when all held requests have been answered. */
  async released(): Promise<void> {
    await Promise.all(held);
  },
};
export type ClientAnswers = typeof answers;

function getAll(url: string, headers: Readonly<Record<string, string>>): Promise<void> {
  return new Promise((resolve, reject) => {
    get(url, { agent, headers }, (response: IncomingMessage) => {
      response.resume().once('end', resolve);
    }).once('error', reject);
  });
}

answer(answers);
