/**
 * What the product costs, in ratios: `npm run bench` measures everything and writes docs/benchmarks.md, `--quick`
 * only shows that it runs. Loopback only; nothing outlives it, also when it is interrupted.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { startPostgres } from '../../demo/postgres.ts';
import { Child } from './child.ts';
import type { ClientAnswers } from './client.ts';
import { type Amounts, measureRound, measureScrape, type Round, type Surroundings } from './comparison.ts';
import type { MicroAnswers, Step } from './micro.ts';
import { pageOf } from './page.ts';
import { Peer } from './peer.ts';
import { type NamedScrape, type Results, tablesOf } from './report.ts';
import { type BudgetAmounts, measureBudgets } from './retry-budget.ts';
import { SCHEMA } from './services.ts';
import { measureOwnPart, type PairAmounts } from './switching.ts';
import { REGISTER } from './variants.ts';

interface AllAmounts extends Amounts, PairAmounts {
  readonly steps: { readonly repeats: number; readonly count: number };
  readonly budgets: BudgetAmounts;
}

const FULL: AllAmounts = {
  rounds: 5,
  slices: 4,
  // Fewer, and the compiler is still at work in what is measured: after 10,000 requests of the service the variants
  // with more code of their own still got faster.
  warmUp: { service: 30_000, hello: 30_000 },
  slice: { service: 1_000, hello: 5_000 },
  held: 500,
  scrapes: 7,
  pairs: 70,
  requests: { service: 600, hello: 3_000 },
  warmUpPairs: 10,
  steps: { repeats: 20, count: 50_000 },
  budgets: { repeats: 11, operations: 1_000_000 },
};
const QUICK: AllAmounts = {
  rounds: 1,
  slices: 1,
  warmUp: { service: 200, hello: 500 },
  slice: { service: 200, hello: 500 },
  held: 50,
  scrapes: 2,
  pairs: 4,
  requests: { service: 100, hello: 300 },
  warmUpPairs: 1,
  steps: { repeats: 3, count: 5_000 },
  budgets: { repeats: 1, operations: 20_000 },
};

/** A service with some routes and peers, and one that has used up every default cap of a label. */
const REALISTIC = { operations: 12, callers: 3, dependencies: 5 };
const AT_THE_CAPS = { operations: 50, callers: 8, dependencies: 20 };

const PAGE = new URL('../../docs/benchmarks.md', import.meta.url);

async function measure(amounts: AllAmounts, around: Surroundings): Promise<Results> {
  const rounds: Round[] = [];
  for (let round = 0; round < amounts.rounds; round++) {
    say(`round ${round + 1} of ${amounts.rounds}`);
    rounds.push(await measureRound(round, amounts, around));
  }
  say('scrapes');
  const scrapes: NamedScrape[] = [];
  for (const [variant, shape] of [
    ['otel', undefined],
    ['otel_us', undefined],
    ['otel_us', REALISTIC],
    ['us', REALISTIC],
    ['us', AT_THE_CAPS],
  ] as const) {
    scrapes.push({ variant, shape, ...(await measureScrape(variant, shape, amounts, around)) });
  }
  say('hooks on and off');
  const ownParts = await measureOwnPart(amounts, around);
  say('single steps');
  const steps = await measureSteps(amounts);
  say('retry budgets');
  const budgets = await measureBudgets(amounts.budgets);
  return { rounds, scrapes, ownParts, steps, budgets };
}

async function measureSteps({ steps }: AllAmounts): Promise<Step[]> {
  const child = new Child<MicroAnswers>('micro.ts');
  try {
    return await child.ask('steps', steps.repeats, steps.count);
  } finally {
    await child.stop();
  }
}

async function main(isQuick: boolean): Promise<void> {
  if (!existsSync(REGISTER)) throw new Error('dist is missing: npm run build');
  const amounts = isQuick ? QUICK : FULL;
  const peer = new Peer();
  const postgres = await startPostgres({ schema: SCHEMA });
  const stop = async () => {
    await Promise.all([...Child.running].map((child) => child.stop()));
    peer.stop();
    await postgres.stop();
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(130)));
  }
  try {
    const { host, port, user, password, database } = postgres.connection;
    const results = await measure(amounts, {
      client: new Child<ClientAnswers>('client.ts'),
      peer,
      peerUrl: await peer.start(),
      postgresUrl: `postgres://${user}:${password}@${host}:${port}/${database}`,
    });
    const tables = tablesOf(results);
    console.log(`\n${tables}\n`);
    if (isQuick) {
      console.log(
        'One short round: it shows that the bench runs. Its figures are noise; nothing was written.',
      );
      return;
    }
    writeFileSync(PAGE, pageOf(tables, new Date().toISOString().slice(0, 10), amounts));
    console.log('Written to docs/benchmarks.md.');
  } finally {
    await stop();
  }
}

function say(what: string): void {
  console.error(`${what} …`);
}

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
await main(values.quick);
