/**
 * A process that loads pg with the instrumentations that are named, in the order of their construction, plays a
 * script against it and prints what a service can see, which spans there were, and which calls were recorded.
 * Arguments: the connection as JSON, then any of `ours`, `theirs`, `again` (a second copy of ours).
 */
import { createRequire } from 'node:module';
import { setTimeout as sleep } from 'node:timers/promises';
import { InstrumentationBase } from '@opentelemetry/instrumentation';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { NodeSDK } from '@opentelemetry/sdk-node';
import type Pg from 'pg';
import type { Hooks } from '../../instrumentation/adapter.ts';
import { pgAdapter } from '../../instrumentation/pg/pg.ts';
import { PHASES } from '../../src/core/terms.ts';
import type { CallRecord } from '../../src/records.ts';
import { createTestHooks } from '../support/hooks.ts';
import { phaseSums } from '../support/phase-sums.ts';

export interface PgReport {
  /** What the service saw, by step. */
  readonly seen: Readonly<Record<string, unknown>>;
  readonly spans: readonly {
    readonly name: string;
    readonly attributes: Readonly<Record<string, unknown>>;
  }[];
  readonly calls: readonly {
    readonly phases: readonly string[];
    readonly ended: boolean;
    readonly cancelSource: string | undefined;
    readonly hadSpan: boolean;
  }[];
  readonly internalErrors: number;
}

const [connectionText = '{}', ...names] = process.argv.slice(2);
const connection = JSON.parse(connectionText) as Pg.ClientConfig;
const spans: PgReport['spans'][number][] = [];
const calls: { readonly call: CallRecord; hadSpan: boolean }[] = [];
const hooksOfAll: Hooks[] = [];

class Ours extends InstrumentationBase {
  override init() {
    const { hooks } = createTestHooks();
    hooksOfAll.push(hooks);
    const { calls: recorder } = hooks;
    const begin = recorder.begin.bind(recorder);
    const end = recorder.end.bind(recorder);
    recorder.begin = (...args) => {
      const call = begin(...args);
      calls.push({ call, hadSpan: false });
      return call;
    };
    recorder.end = (call, ...rest) => {
      const entry = calls.find((known) => known.call === call);
      if (entry !== undefined && call.endedAt === undefined)
        entry.hadSpan = call.span?.isRecording() === true;
      end(call, ...rest);
    };
    pgAdapter.start(hooks);
    return pgAdapter.modules?.(hooks) ?? [];
  }
}

const instrumentations = names.map((name) =>
  name === 'theirs' ? new PgInstrumentation() : new Ours(name, '1.0.0', {}),
);
const sdk = new NodeSDK({
  autoDetectResources: false,
  instrumentations,
  metricReaders: [],
  logRecordProcessors: [],
  spanProcessors: [
    {
      onStart() {},
      onEnd(span) {
        spans.push({ name: span.name, attributes: { ...span.attributes } });
      },
      forceFlush: () => Promise.resolve(),
      shutdown: () => Promise.resolve(),
    },
  ],
});
sdk.start();

const pg = createRequire(import.meta.url)('pg') as typeof Pg;
const seen: Record<string, unknown> = {};
const rejections: string[] = [];
process.on('unhandledRejection', (error: Error) => rejections.push(error.message));

/** A query object of a class of its own, with the methods that pg-cursor's has. */
class Reader {
  readonly text: string;
  readonly log: string[] = [];
  callback: ((error: Error | undefined, rows?: unknown[]) => void) | undefined;
  #rows: unknown[] = [];

  constructor(text: string) {
    this.text = text;
  }
  submit(connection: Pg.Connection): void {
    this.log.push('submit');
    connection.query(this.text);
  }
  handleRowDescription(): void {
    this.log.push('handleRowDescription');
  }
  handleDataRow(message: { fields: unknown[] }): void {
    this.#rows.push(message.fields);
  }
  handleCommandComplete(): void {
    this.log.push('handleCommandComplete');
  }
  handleReadyForQuery(): void {
    this.log.push('handleReadyForQuery');
    this.callback?.(undefined, this.#rows);
  }
  handleError(error: Error): void {
    this.log.push('handleError');
    this.callback?.(error);
  }
}

/** Of an error, what does not differ from run to run. Its stack leads to who asked. */
function facts(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  const code: unknown = Reflect.get(error, 'code');
  return { name: error.name, message: error.message, code, leadsHere: error.stack?.includes('pg-child.ts') };
}

async function attempt(work: () => unknown): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    return facts(error);
  }
}

function thrown(work: () => unknown): unknown {
  try {
    return work();
  } catch (error) {
    return facts(error);
  }
}

async function clientSteps(): Promise<void> {
  const client = new pg.Client(connection);
  // Without 'drain', which is left out where the answer to an error comes in two pieces.
  const events: string[] = [];
  for (const event of ['end', 'notice', 'notification'] as const)
    client.on(event as 'end', () => events.push(event));
  seen.connect = (await client.connect()) === (client as unknown);
  seen['connect again'] = await attempt(() => client.connect());
  const result = await client.query('select 1 as one');
  seen.text = [result.rows, result.command, result.constructor.name];
  seen.parameters = (await client.query('select $1::int as a', [5])).rows;
  const config = { name: 'named', text: 'select $1::text as a', values: ['x'], rowMode: 'array' as const };
  seen.named = [(await client.query(config)).rows, (await client.query(config)).rows, Object.keys(config)];
  seen.several = JSON.stringify(await client.query('select 1 as a; select 2 as b')).length;
  seen.empty = (await client.query('')).command;
  seen.promise = client.query('select 1').constructor === Promise;
  const log: unknown[] = [];
  await new Promise<void>((resolve) => {
    log.push(
      client.query('select 3 as three', (error: Error, rows: Pg.QueryResult) => log.push(error, rows.rows)),
    );
    log.push(
      client.query('select $1::int as four', [4], (error: Error, rows: Pg.QueryResult) =>
        log.push(error, rows.rows),
      ),
    );
    const withCallback = {
      text: 'select nothing',
      callback: (error: Error) => {
        log.push(facts(error));
        resolve();
      },
    };
    log.push(client.query(withCallback as Pg.QueryConfig) === undefined);
  });
  seen.callbacks = log;
  const query = new pg.Query('select generate_series(1, 3) as i');
  const rows: unknown[] = [];
  seen['query object'] = client.query(query) === query;
  query.on('row', (row) => rows.push(row));
  await new Promise((resolve) => query.on('end', resolve));
  seen['query events'] = [rows, Object.keys(query).includes('submit'), query.listenerCount('end')];
  const reader = new Reader('select 1');
  const keys = Object.keys(reader).join();
  const read = new Promise((resolve) => {
    reader.callback = (error, all) => resolve([error, all?.length]);
  });
  seen.submittable = [
    client.query(reader) === reader,
    await read,
    reader.log,
    Object.keys(reader).join() === keys,
  ];
  seen.null = thrown(() => client.query(null as unknown as string));
  seen['no function'] = thrown(() => client.query('select 1', [], 'x' as unknown as () => void));
  seen.values = await attempt(() => client.query({ text: 'select 1', values: 'x' as unknown as unknown[] }));
  seen['sql error'] = await attempt(() => client.query('select nothing'));
  client.query('select unheard').catch(() => {});
  client.query('select unhandled');
  await sleep(20);
  seen.notification = await attempt(async () => {
    await client.query('listen a');
    await client.query("notify a, 'b'");
  });
  seen.listeners = [client.eventNames().map(String).sort(), client.listenerCount('error')];
  seen['connection listeners'] = (
    client as unknown as { connection: NodeJS.EventEmitter }
  ).connection.listenerCount('dataRow');
  await client.end();
  seen['after the end'] = await attempt(() => client.query('select 1'));
  seen.events = events;
  await new Promise<void>((resolve) => {
    const other = new pg.Client(connection);
    seen['connect callback'] = other.connect((error: Error) => {
      seen['connect callback error'] = error;
      other.end(() => resolve());
    });
  });
  const nowhere = new pg.Client({ ...connection, port: 1 });
  seen['connect refused'] = await attempt(() => nowhere.connect());
}

async function poolSteps(): Promise<void> {
  const pool = new pg.Pool({ ...connection, max: 2 });
  // Without 'remove', which comes when the server has closed its end.
  const events: string[] = [];
  for (const event of ['connect', 'acquire', 'release', 'error'])
    pool.on(event as 'connect', () => events.push(event));
  seen['pool query'] = (await pool.query('select 1 as one')).rows;
  seen['pool query with values'] = (await pool.query('select $1::int as a', [5])).rows;
  const promised = pool.query('select 1');
  seen['pool promise'] = [promised.constructor === Promise, (await promised).rowCount];
  seen['pool query callback'] = await new Promise((resolve) => {
    const returned = pool.query('select 2 as two', (error: Error, result: Pg.QueryResult) =>
      resolve([returned, error, result.rows]),
    );
  });
  seen['pool query error'] = await attempt(() => pool.query('select nothing'));
  seen['pool query function'] = await attempt(() => pool.query((() => {}) as unknown as string));
  seen['pool query null'] = await attempt(() => pool.query(null as unknown as string));
  const first = await pool.connect();
  const second = await pool.connect();
  seen.clients = [first === second, first instanceof pg.Client, pool.totalCount, pool.idleCount];
  first.release();
  seen['double release'] = thrown(() => first.release());
  second.release(new Error('broken'));
  await sleep(20);
  seen['after broken'] = [pool.totalCount, pool.idleCount];
  await new Promise<void>((resolve, reject) => {
    seen['pool connect callback'] = pool.connect((error, client, release) => {
      if (error || client === undefined) return reject(error);
      seen.release = [client.release === release, release.length, client.listenerCount('error')];
      release();
      resolve();
    });
  });
  // Long enough for a connection on a busy machine, which must not run into it.
  const tight = new pg.Pool({ ...connection, max: 1, connectionTimeoutMillis: 400 });
  const only = await tight.connect();
  const waiting = tight.connect();
  seen.waiting = tight.waitingCount;
  seen['pool timeout'] = await attempt(() => waiting);
  seen['pool query timeout'] = await attempt(() => tight.query('select 1'));
  seen['waiting after'] = tight.waitingCount;
  only.release();
  await tight.end();
  const order: string[] = [];
  await Promise.all([
    pool.query('select pg_sleep(0.3)').then(() => order.push('1')),
    pool.query('select pg_sleep(0.8)').then(() => order.push('2')),
    pool.query('select 3').then(() => order.push('3')),
  ]);
  seen.order = order;
  class OwnPromise<T> extends Promise<T> {}
  const own = new pg.Pool({ ...connection, Promise: OwnPromise } as Pg.PoolConfig);
  const ownClient = own.connect();
  seen['own promise'] = [ownClient instanceof OwnPromise, own.query('select 1') instanceof OwnPromise];
  (await ownClient).release();
  await own.end();
  const reads = new pg.Pool({ ...connection, query_timeout: 30 });
  seen.query_timeout = await attempt(() => reads.query('select pg_sleep(0.2)'));
  seen['query_timeout callback'] = await new Promise((resolve) =>
    reads.query('select pg_sleep(0.2)', (error: Error) => resolve(facts(error))),
  );
  await reads.end();
  seen.lengths = [pool.query.length, pool.connect.length, pg.Client.prototype.query.length];
  await pool.end();
  seen['after pool end'] = [await attempt(() => pool.connect()), await attempt(() => pool.end())];
  seen['pool events'] = events;
  const refused = new pg.Pool({ ...connection, port: 1 });
  seen['pool refused'] = await attempt(() => refused.query('select 1'));
  refused.connect();
  await sleep(20);
}

await clientSteps();
await poolSteps();
await sleep(250);
seen['unhandled rejections'] = rejections;
const report: PgReport = {
  seen,
  spans,
  calls: calls.map(({ call, hadSpan }) => {
    const sums = phaseSums(call, call.endedAt ?? Infinity);
    return {
      phases: PHASES.filter((_, index) => sums[index] !== undefined),
      ended: call.endedAt !== undefined,
      cancelSource: call.cancelSource,
      hadSpan,
    };
  }),
  internalErrors: hooksOfAll.reduce(
    (sum, hooks) => sum + hooks.recorder.families.internalErrors.cell().value,
    0,
  ),
};
process.stdout.write(`${JSON.stringify(report)}\n`);
