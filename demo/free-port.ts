/**
 * Ports for processes that must be told theirs before they listen. Not from those that the system gives out by itself
 * (from 32768 on, on Linux; 49152 elsewhere): between the look and the listening it may give such a port to somebody
 * else's connection or server, and then a wrong one answers.
 */
import { createServer } from 'node:net';

const FROM = 20_000;
const COUNT = 12_000;
/** Beside them, so that no server comes up where a test wants to be refused. */
const REFUSED_FROM = 18_000;
const REFUSED_COUNT = 2_000;
const TRIES = 50;

/** Handed out by this process already, so two calls never give the same. */
const given = new Set<number>();

/** To listen on. */
export function freePort(): Promise<number> {
  return pick(FROM, COUNT);
}

/** To be refused at: nobody is ever told to listen there. */
export function refusedPort(): Promise<number> {
  return pick(REFUSED_FROM, REFUSED_COUNT);
}

async function pick(from: number, count: number): Promise<number> {
  for (let i = 0; i < TRIES; i++) {
    const port = from + Math.floor(Math.random() * count);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
  throw new Error(`no free port found from ${from} to ${from + count}`);
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
