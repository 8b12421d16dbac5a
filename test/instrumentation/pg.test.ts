import { AsyncLocalStorage } from 'node:async_hooks';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { INVALID_SPAN_CONTEXT, trace } from '@opentelemetry/api';
import type Pg from 'pg';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Undo } from '../../instrumentation/adapter.ts';
import { wrapPg } from '../../instrumentation/pg/pg.ts';
import { loopWaitMs } from '../../instrumentation/process/loop-clock.ts';
import { phaseIndex } from '../../src/core/call.ts';
import { PHASES, type Phase } from '../../src/core/terms.ts';
import { currentScope, enterScope, runInScope } from '../../src/current.ts';
import type { CallRecord, RequestRecord } from '../../src/records.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { createTestHooks, REAL_CLOCK, type TestHooks } from '../support/hooks.ts';
import { phaseSums } from '../support/phase-sums.ts';
import { usePostgres } from '../support/postgres.ts';

// The module that its own pool requires, too; vitest's import would be another instance.
const pg = createRequire(import.meta.url)('pg') as typeof Pg;

const postgres = usePostgres({
  schema:
    'create table orders (id int primary key, note text); insert into orders values (1, $$a$$), (2, $$b$$)',
});

/** Timers and clocks differ by up to this; the statements here sleep far longer. */
const SLACK_MS = 5;
const OPERATION = 'GET /orders/:id';

let t: TestHooks;
let unwrap: Undo;
let calls: CallRecord[];
let closers: (() => unknown)[];

function start(config: ConfigOptions = {}, clock = REAL_CLOCK): void {
  t = createTestHooks({ config, clock });
  unwrap = wrapPg(pg, t.hooks);
  calls = [];
  const begin = t.hooks.calls.begin.bind(t.hooks.calls);
  vi.spyOn(t.hooks.calls, 'begin').mockImplementation((...args) => {
    const call = begin(...args);
    calls.push(call);
    return call;
  });
}

function restart(config: ConfigOptions = {}, clock = REAL_CLOCK): void {
  unwrap();
  start(config, clock);
}

beforeEach(() => {
  closers = [];
  enterScope(undefined);
  start();
});

afterEach(async () => {
  for (const close of closers.reverse()) await close();
  expect(t.value('internalErrors')).toBe(0);
  expect(t.value('executing')).toBe(0);
  unwrap();
});

function pool(options: Pg.PoolConfig = {}): Pg.Pool {
  const made = new pg.Pool({ ...postgres.connection, ...options });
  made.on('error', () => {});
  closers.push(async () => {
    if (!made.ending) await made.end();
  });
  return made;
}

async function client(options: Pg.ClientConfig = {}): Promise<Pg.Client> {
  const made = new pg.Client({ ...postgres.connection, ...options });
  made.on('error', () => {});
  await made.connect();
  closers.push(() => made.end());
  calls.length = 0;
  return made;
}

/** A pool of one whose client is there already. */
async function warmPool(options: Pg.PoolConfig = {}): Promise<Pg.Pool> {
  const made = pool({ max: 1, ...options });
  await made.query('select 1');
  calls.length = 0;
  return made;
}

function enter(budgetMs?: number): RequestRecord {
  const headers = budgetMs === undefined ? {} : { 'x-request-timeout-ms': String(budgetMs) };
  const now = t.hooks.now();
  const record = t.recorder.enter(
    { headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/orders/1' },
    now,
  );
  t.recorder.handling(record, OPERATION, now);
  return record;
}

function finish(record: RequestRecord, status = 200): void {
  // It is kept past the end only where somebody has asked for it before.
  expect(record.ledger.terms).toBeDefined();
  t.recorder.finish(record, { completed: true, status }, t.hooks.now());
}

/** The phases that happened, in the order of the closed list. */
function phases(call: CallRecord | undefined): Phase[] {
  const sums = call === undefined ? [] : phaseSums(call, call.endedAt ?? t.hooks.now());
  return PHASES.filter((_, index) => sums[index] !== undefined);
}

function ms(call: CallRecord | undefined, phase: Phase): number {
  return call === undefined ? 0 : (phaseSums(call, call.endedAt ?? t.hooks.now())[phaseIndex(phase)] ?? 0);
}

function ledgerMs(record: RequestRecord, phase: Phase): number {
  return record.ledger.terms.reduce((sum, term) => sum + (term.phaseMs[phaseIndex(phase)] ?? 0), 0);
}

function sleep(seconds: number): string {
  return `select pg_sleep(${seconds})`;
}

function later(delayMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, delayMs));
}

async function failure(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  return promise.then(
    () => {
      throw new Error('it should have failed');
    },
    (error: Error) => error,
  );
}

describe('one statement, one call', () => {
  test('an idle connection: db_execution until the first row, then response, named by the database', async () => {
    const db = await client();
    const result = await db.query(sleep(0.05));
    expect(result.rowCount).toBe(1);
    expect(calls).toHaveLength(1);
    const [call] = calls;
    expect(call?.dependency).toBe('postgresql/app');
    expect(call?.workKind).toBe('sql');
    expect(call?.succeeded).toBe(true);
    expect(phases(call)).toEqual(['db_execution', 'response']);
    expect(ms(call, 'db_execution')).toBeGreaterThanOrEqual(50 - SLACK_MS);
    expect(call?.dispatchedAt).toBe(call?.startedAt);
    expect(call?.handedDownMs).toBeUndefined();
  });

  test('a dependency is found by host and port, and by the name of the database', async () => {
    const { host, port } = postgres.connection;
    restart({ dependencies: { orders: { match: [`${host}:${port}`] } } });
    const byHost = await client();
    await byHost.query('select 1');
    expect(calls[0]?.dependency).toBe('orders');
    restart({ dependencies: { stock: { match: ['postgresql/app'] } } });
    const byName = await client();
    await byName.query('select 1');
    expect(calls[0]?.dependency).toBe('stock');
  });

  test('the result that streams in is response, not db_execution', async () => {
    const db = await client();
    await db.query('select i, pg_sleep(0.0001), repeat($$x$$, 2000) from generate_series(1, 400) i');
    const [call] = calls;
    expect(ms(call, 'response')).toBeGreaterThan(ms(call, 'db_execution'));
  });

  test.each([
    ['a query of pg', () => new pg.Query('')],
    ['one of a class of its own', () => new OwnQuery()],
  ])('%s: the columns alone are no answer, the first row is, and no row after it', async (_, make) => {
    const db = await client();
    let now = 100;
    restart({}, { ...REAL_CLOCK, now: () => now });
    // A class of its own has no need of what `Query` is typed with.
    const query = make() as unknown as OwnQuery;
    query.callback = () => {};
    query.submit = () => null;
    db.query(query as unknown as Pg.Query);
    const [call] = calls;
    now = 110;
    query.handleRowDescription({ fields: [] });
    expect(call?.phase).toBe('db_execution');
    for (now = 120; now < 150; now += 10) query.handleDataRow({ fields: [] });
    query.handleCommandComplete({ text: 'SELECT 3' });
    query.handleReadyForQuery();
    expect(call?.endedAt).toBe(150);
    expect([ms(call, 'db_execution'), ms(call, 'response')]).toEqual([20, 30]);
  });

  test('C: client.query on a busy client waits in its queue: pool_wait', async () => {
    const db = await client();
    const first = db.query(sleep(0.1));
    const second = db.query('select 1');
    await Promise.all([first, second]);
    expect(phases(calls[0])).toEqual(['db_execution', 'response']);
    expect(phases(calls[1])).toEqual(['pool_wait', 'db_execution', 'response']);
    expect(ms(calls[1], 'pool_wait')).toBeGreaterThanOrEqual(100 - SLACK_MS);
    expect(ms(calls[1], 'db_execution')).toBeLessThan(80);
    expect(calls[1]?.dispatchedAt).toBeGreaterThanOrEqual((calls[0]?.endedAt ?? 0) - SLACK_MS);
  });

  test('a query before the client is connected waits in connect', async () => {
    const db = new pg.Client(postgres.connection);
    closers.push(() => db.end());
    const connected = db.connect();
    await db.query('select 1');
    await connected;
    expect(phases(calls[0])).toEqual(['connect']);
    expect(phases(calls[1])).toEqual(['connect', 'db_execution', 'response']);
  });

  test('T-16: a blocked event loop is not the database: event_loop', async () => {
    restart({}, { ...REAL_CLOCK, waitMs: loopWaitMs });
    const db = await client();
    await later(20);
    const answered = db.query('select 1');
    const until = performance.now() + 80;
    while (performance.now() < until);
    await answered;
    expect(ms(calls[0], 'event_loop')).toBeGreaterThan(50);
    expect(ms(calls[0], 'db_execution')).toBeLessThan(30);
  });

  test('every step that a socket brings is given the lag of the loop', async () => {
    const db = await client();
    const pooled = await warmPool();
    restart({}, { ...REAL_CLOCK, waitMs: () => 20 });
    await db.query(sleep(0.05));
    expect(Math.round(ms(calls[0], 'event_loop'))).toBe(20);
    await pooled.query(sleep(0.05));
    expect(Math.round(ms(calls[1], 'event_loop'))).toBe(20);
  });
});

describe('waiting for the pool', () => {
  test('J6: pool.query with a new connection is one call: connect, db_execution, response', async () => {
    const db = pool();
    await db.query(sleep(0.02));
    expect(calls).toHaveLength(1);
    expect(phases(calls[0])).toEqual(['connect', 'db_execution', 'response']);
    expect(ms(calls[0], 'connect')).toBeGreaterThan(0);
  });

  test('J6: pool.query with an idle connection is one call without a wait', async () => {
    const db = await warmPool();
    await db.query('select 1');
    expect(calls).toHaveLength(1);
    expect(phases(calls[0])).toEqual(['db_execution', 'response']);
  });

  test('J6: pool.query with a full pool is one call that holds its wait', async () => {
    const db = await warmPool();
    const first = db.query(sleep(0.1));
    await later(0);
    await db.query('select 1');
    await first;
    expect(calls).toHaveLength(2);
    expect(phases(calls[1])).toEqual(['pool_wait', 'db_execution', 'response']);
    expect(ms(calls[1], 'pool_wait')).toBeGreaterThanOrEqual(100 - SLACK_MS);
    expect(calls[1]?.dispatchedAt).toBeGreaterThanOrEqual((calls[1]?.startedAt ?? 0) + 100 - SLACK_MS);
  });

  test('pool.connect that has to wait is a call of its own, and its statements have no wait', async () => {
    const db = await warmPool();
    const record = enter(1_000);
    const first = await db.connect();
    expect(calls).toHaveLength(0);
    setTimeout(() => first.release(), 100);
    await runInScope(record, async () => {
      const second = await db.connect();
      await second.query(sleep(0.03));
      await second.query('select 1');
      second.release();
    });
    expect(calls.map(phases)).toEqual([
      ['pool_wait'],
      ['db_execution', 'response'],
      ['db_execution', 'response'],
    ]);
    finish(record);
    expect(ledgerMs(record, 'pool_wait')).toBeGreaterThanOrEqual(100 - SLACK_MS);
    expect(ledgerMs(record, 'pool_wait')).toBeCloseTo(ms(calls[0], 'pool_wait'), 3);
  });

  test('a waiter that gets a new connection, as the busy one broke: pool_wait, then connect', async () => {
    const db = await warmPool();
    const broken = await db.connect();
    setTimeout(() => broken.release(new Error('broken')), 50);
    await db.query('select 1');
    expect(phases(calls[0])).toEqual(['pool_wait', 'connect', 'db_execution', 'response']);
    expect(ms(calls[0], 'pool_wait')).toBeGreaterThanOrEqual(50 - SLACK_MS);
  });

  test('a wait teaches nothing about how long the dependency usually takes', async () => {
    const db = await warmPool();
    const first = await db.connect();
    t.recorder.tally.count();
    const usual = vi.spyOn(t.recorder.typical, 'usualDependency');
    setTimeout(() => first.release(), 20);
    const second = await db.connect();
    second.release();
    expect(calls[0]?.teaches).toBe(false);
    t.recorder.tally.count();
    expect(usual).not.toHaveBeenCalled();
    await db.query('select 1');
    t.recorder.tally.count();
    expect(usual).toHaveBeenCalledTimes(1);
  });

  test('F2: budget 300, pool of one busy for 2 s: expired in pool_wait with 0 ms of db_execution', async () => {
    const db = await warmPool();
    const busy = db.query(sleep(2));
    const record = enter(300);
    const waiting = runInScope(record, () => db.query('select 1'));
    await later(320);
    finish(record, 504);
    expect(record.outcome).toBe('expired');
    expect(record.ledger.expiry?.phase).toBe('pool_wait');
    expect(record.ledger.expiry?.call?.dependency).toBe('postgresql/app');
    expect(ledgerMs(record, 'pool_wait')).toBeGreaterThanOrEqual(300 - SLACK_MS);
    expect(ledgerMs(record, 'db_execution')).toBe(0);
    expect(record.cause).toBe('pool_saturated');
    expect(t.value('expiries', { dependency: 'postgresql/app', phase: 'pool_wait' })).toBe(1);
    await Promise.all([busy, waiting]);
    expect(t.value('postCancelItems', { kind: 'sql', result: 'completed' })).toBe(1);
  });

  test('F2: the same with pool.connect', async () => {
    const db = await warmPool();
    const holder = await db.connect();
    const record = enter(100);
    const waiting = runInScope(record, () => db.connect());
    await later(120);
    finish(record, 504);
    expect(record.ledger.expiry?.phase).toBe('pool_wait');
    expect(ledgerMs(record, 'db_execution')).toBe(0);
    holder.release();
    (await waiting).release();
  });

  test('F2: connectionTimeoutMillis while waiting: timed out in pool_wait, by its own limit', async () => {
    const db = await warmPool({ connectionTimeoutMillis: 300 });
    const holder = await db.connect();
    const error = await failure(db.query('select 1'));
    expect(error.message).toBe('timeout exceeded when trying to connect');
    const [call] = calls;
    expect(phases(call)).toEqual(['pool_wait']);
    expect(call?.expiryPhase).toBe('pool_wait');
    expect(call?.cancelSource).toBe('local_timeout');
    expect(call?.ownTimeoutMs).toBe(300);
    expect(call?.mayStillRun).toBe(false);
    expect(call?.dispatchedAt).toBeUndefined();
    expect(t.value('poolTimeouts')).toBe(1);
    await failure(db.connect());
    expect(calls[1]?.ownTimeoutMs).toBe(300);
    expect(calls[1]?.cancelSource).toBe('local_timeout');
    expect(t.value('poolTimeouts')).toBe(2);
    expect(db.waitingCount).toBe(0);
    holder.release();
  });
});

describe('a new connection', () => {
  let silent: Server;
  let sockets: Socket[];

  /** Accepts, and never says a word. */
  async function silentPort(): Promise<number> {
    sockets = [];
    silent = createServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => {});
    });
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    closers.push(() => {
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => silent.close(resolve));
    });
    return (silent.address() as AddressInfo).port;
  }

  test('G2: the server accepts and is silent: the call ends at the limit, in connect', async () => {
    const db = pool({ port: await silentPort(), max: 2, connectionTimeoutMillis: 100 });
    const error = await failure(db.query('select 1'));
    expect(error.message).toBe('Connection terminated due to connection timeout');
    const [call] = calls;
    expect(phases(call)).toEqual(['connect']);
    expect(call?.expiryPhase).toBe('connect');
    expect(call?.cancelSource).toBe('local_timeout');
    expect((call?.endedAt ?? 0) - (call?.startedAt ?? 0)).toBeGreaterThanOrEqual(100 - SLACK_MS);
    expect((call?.endedAt ?? 0) - (call?.startedAt ?? 0)).toBeLessThan(200);
    expect(t.value('poolTimeouts')).toBe(1);
    expect(t.histogram('poolCreate').count).toBe(0);
    expect(t.histogram('poolWait').count).toBe(0);
    expect([db.totalCount, db.idleCount, db.waitingCount]).toEqual([0, 0, 0]);
  });

  test('F9: with TLS asked for, the silence is in tls', async () => {
    const db = pool({ port: await silentPort(), ssl: true, connectionTimeoutMillis: 100 });
    await failure(db.query('select 1'));
    expect(phases(calls[0])).toEqual(['connect', 'tls']);
    expect(calls[0]?.expiryPhase).toBe('tls');
  });

  test('F6: a name that is still being looked up is in dns', async () => {
    const db = pool({
      host: 'orders-db',
      connectionTimeoutMillis: 100,
      stream: () => neverResolving(),
    } as Pg.PoolConfig);
    await failure(db.query('select 1'));
    expect(phases(calls[0])).toEqual(['dns']);
    expect(calls[0]?.expiryPhase).toBe('dns');
  });

  test('a name that resolves goes over to connect', async () => {
    const db = pool({ host: 'localhost' });
    await db.query('select 1');
    expect(phases(calls[0])).toEqual(['connect', 'db_execution', 'response', 'dns']);
  });

  test('client.connect on its own is a call that teaches nothing', async () => {
    const record = enter(1_000);
    const db = new pg.Client(postgres.connection);
    closers.push(() => db.end());
    await runInScope(record, () => db.connect());
    expect(phases(calls[0])).toEqual(['connect']);
    expect(calls[0]?.succeeded).toBe(true);
    expect(calls[0]?.teaches).toBe(false);
    finish(record);
    expect(ledgerMs(record, 'connect')).toBeGreaterThan(0);
  });

  test('a refused connection failed, in connect, and pool.query says why', async () => {
    const db = pool({ port: 1 });
    expect((await failure(db.query('select 1'))).code).toBe('ECONNREFUSED');
    expect(phases(calls[0])).toEqual(['connect']);
    expect(calls[0]?.succeeded).toBe(false);
    expect(calls[0]?.cancelSource).toBeUndefined();
  });

  test('a database that does not exist is no answer', async () => {
    const db = new pg.Client({ ...postgres.connection, database: 'nowhere' });
    expect((await failure(db.connect())).code).toBe('3D000');
    expect(calls[0]?.succeeded).toBe(false);
    expect(calls[0]?.dependency).toBe('postgresql/nowhere');
  });

  test('what the application does in a connect hook is not the work of the request that waits', async () => {
    const db = pool();
    const seen: unknown[] = [];
    db.on('connect', (made) => {
      seen.push(currentScope());
      made.query('set application_name = $$x$$').catch(() => {});
    });
    const record = enter(1_000);
    await runInScope(record, () => db.query('select 1'));
    expect(seen).toEqual([undefined]);
    expect(calls.map((call) => call.scope === record)).toEqual([true, false]);
  });
});

function neverResolving(): Socket {
  const emitter = new (createRequire(import.meta.url)('node:net') as typeof import('node:net')).Socket();
  emitter.connect = () => emitter;
  return emitter;
}

describe('how it ends', () => {
  test('an SQL error is an answer', async () => {
    const db = await client();
    expect((await failure(db.query('select nothing'))).code).toBe('42703');
    expect(calls[0]?.succeeded).toBe(true);
    expect(calls[0]?.cancelSource).toBeUndefined();
    expect(calls[0]?.mayStillRun).toBe(false);
    expect(t.value('cutOff')).toBe(0);
  });

  test('statement_timeout: timed out in db_execution, by its own limit, and over on the server', async () => {
    const db = await client({ statement_timeout: 50 });
    expect((await failure(db.query(sleep(2)))).code).toBe('57014');
    const [call] = calls;
    expect(call?.ownTimeoutMs).toBe(50);
    expect(call?.bindingTerm).toBe('own_timeout');
    expect(call?.cancelSource).toBe('local_timeout');
    expect(call?.expiryPhase).toBe('db_execution');
    expect(call?.mayStillRun).toBe(false);
    expect(t.value('expiries', { dependency: 'postgresql/app', phase: 'db_execution' })).toBe(1);
  });

  test('a cancel on request: aborted, and over on the server', async () => {
    const db = await client();
    const other = await client();
    const { rows } = await db.query('select pg_backend_pid() as pid');
    calls.length = 0;
    const running = failure(db.query(sleep(2)));
    await later(30);
    await other.query('select pg_cancel_backend($1)', [rows[0].pid]);
    expect((await running).code).toBe('57014');
    expect(calls[0]?.cancelSource).toBe('application');
    expect(calls[0]?.mayStillRun).toBe(false);
  });

  test('a cancel on request inside a cancelled request has its source', async () => {
    const db = await client();
    const other = await client();
    const { rows } = await db.query('select pg_backend_pid() as pid');
    calls.length = 0;
    const record = enter(5_000);
    const running = runInScope(record, () => failure(db.query(sleep(2))));
    await later(30);
    t.recorder.cancel(record, 'client_disconnect', t.hooks.now());
    await other.query('select pg_cancel_backend($1)', [rows[0].pid]);
    await running;
    expect(calls[0]?.cancelSource).toBe('client_disconnect');
    expect(t.value('postCancelItems', { kind: 'sql', result: 'stopped' })).toBe(1);
    finish(record);
  });

  test('E4, G1: query_timeout leaves the statement running; the next one waits for the same client', async () => {
    const db = await client({ query_timeout: 60 });
    const error = await failure(db.query(sleep(0.3)));
    expect(error.message).toBe('Query read timeout');
    const [first] = calls;
    expect(first?.ownTimeoutMs).toBe(60);
    expect(first?.cancelSource).toBe('local_timeout');
    expect(first?.expiryPhase).toBe('db_execution');
    expect(first?.mayStillRun).toBe(true);
    const patient: Pg.QueryConfig & { query_timeout: number } = { text: 'select 1', query_timeout: 5_000 };
    await db.query(patient);
    expect(phases(calls[1])).toEqual(['pool_wait', 'db_execution', 'response']);
    expect(ms(calls[1], 'pool_wait')).toBeGreaterThan(150);
    expect(calls[1]?.ownTimeoutMs).toBe(5_000);
  });

  test('E4: ten statements behind a client-side timeout are ten that may still run', async () => {
    const db = pool({ max: 10, query_timeout: 20 });
    await Promise.all(Array.from({ length: 10 }, () => failure(db.query(sleep(0.2)))));
    expect(calls).toHaveLength(10);
    expect(calls.map((call) => [call.cancelSource, call.mayStillRun])).toEqual(
      Array.from({ length: 10 }, () => ['local_timeout', true]),
    );
  });

  test('a query that times out in the queue never ran', async () => {
    const db = await client();
    const busy = db.query(sleep(0.2));
    const queued: Pg.QueryConfig & { query_timeout: number } = { text: 'select 1', query_timeout: 40 };
    await failure(db.query(queued));
    expect(calls[1]?.expiryPhase).toBe('pool_wait');
    expect(calls[1]?.mayStillRun).toBe(false);
    await busy;
  });

  test('G7: a terminated connection failed, by no timeout of its own', async () => {
    const db = await client();
    const other = await client();
    const { rows } = await db.query('select pg_backend_pid() as pid');
    calls.length = 0;
    const running = failure(db.query(sleep(2)));
    const queued = failure(db.query('select 1'));
    await later(30);
    await other.query('select pg_terminate_backend($1)', [rows[0].pid]);
    expect((await running).code).toBe('57P01');
    expect((await queued).message).toMatch('Connection terminated');
    expect(calls[0]?.succeeded).toBe(false);
    expect(calls[0]?.cancelSource).toBeUndefined();
    expect(calls[0]?.mayStillRun).toBe(false);
    expect(calls[1]?.succeeded).toBe(false);
    expect(calls[1]?.mayStillRun).toBe(false);
    // Refused without a word on the wire.
    await failure(db.query('select 1'));
    expect(calls.at(-1)?.succeeded).toBe(false);
    expect(calls.at(-1)?.mayStillRun).toBe(false);
  });

  test('our side closes the connection under a statement: the server may run on', async () => {
    const db = new pg.Client(postgres.connection);
    db.on('error', () => {});
    await db.connect();
    calls.length = 0;
    const running = failure(db.query(sleep(0.3)));
    await later(30);
    await db.end();
    expect((await running).message).toBe('Connection terminated');
    expect(calls[0]?.mayStillRun).toBe(true);
    expect(calls[0]?.commitUnknown).toBe(false);
  });

  test('what pg refuses itself has not run', async () => {
    const db = await client();
    // @ts-expect-error values must be an array
    expect((await failure(db.query({ text: 'select 1', values: 'x' }))).message).toBe(
      'Query values must be an array',
    );
    expect(calls[0]?.succeeded).toBe(false);
    expect(calls[0]?.mayStillRun).toBe(false);
  });

  test('G4: a COMMIT whose answer never came is unknown, never cancelled cleanly', async () => {
    const slow = `create function slow() returns trigger as $$ begin perform pg_sleep(1); return new; end $$ language plpgsql;
      create constraint trigger slow after insert on orders deferrable initially deferred for each row execute function slow()`;
    const db = await client();
    const other = await client();
    await db.query(slow);
    closers.push(() => other.query('drop trigger slow on orders'));
    const { rows } = await db.query('select pg_backend_pid() as pid');
    await db.query('begin');
    await db.query('insert into orders values (10)');
    calls.length = 0;
    const committing = failure(db.query('COMMIT'));
    await later(30);
    await other.query('select pg_cancel_backend($1)', [rows[0].pid]);
    await committing;
    expect(calls[0]?.cancelSource).toBe('application');
    expect(calls[0]?.commitUnknown).toBe(true);
    await db.query('begin');
    await db.query('insert into orders values (11)');
    calls.length = 0;
    const timed: Pg.QueryConfig & { query_timeout: number } = { text: 'commit', query_timeout: 30 };
    await failure(db.query(timed));
    expect(calls[0]?.commitUnknown).toBe(true);
    expect(calls[0]?.mayStillRun).toBe(true);
  });

  test('G4: a COMMIT that was answered is not unknown', async () => {
    const db = await client();
    await db.query('begin');
    await db.query('commit');
    expect(calls.map((call) => call.commitUnknown)).toEqual([false, false]);
  });

  test.each([
    ['the last accepted', 0, false],
    ['the first above', 1, true],
  ])('a static limit against what is left: %s', async (_, moreMs, reset) => {
    // Whole, so that adding and taking away is exact.
    const frozen = Math.floor(t.hooks.now());
    restart({}, { ...REAL_CLOCK, now: () => frozen });
    const record = enter(500);
    const db = new pg.Client({ ...postgres.connection, query_timeout: 500 + moreMs });
    await db.connect();
    calls.length = 0;
    await runInScope(record, () => db.query('select 1'));
    await db.end();
    expect(calls[0]?.resetViolation).toBe(reset);
    expect(t.value('violations', { kind: 'reset' })).toBe(reset ? 1 : 0);
  });

  test('the limits of the wait and of the statement bound a pool.query together', async () => {
    const db = await warmPool({ connectionTimeoutMillis: 300, query_timeout: 200 });
    const holder = await db.connect();
    setTimeout(() => holder.release(), 20);
    await db.query('select 1');
    expect(calls[0]?.allowanceMs).toBe(500);
    await db.query('select 1');
    expect(calls[1]?.allowanceMs).toBe(200);
  });
});

describe('whose work it is', () => {
  test.each(['promise', 'callback'] as const)(
    'three requests, a pool of one, %s: each has its own store',
    async (style) => {
      const db = await warmPool();
      const records = [enter(5_000), enter(5_000), enter(5_000)];
      const seen = await Promise.all(
        records.map((record) =>
          runInScope(record, async () => {
            if (style === 'promise') {
              await db.query(sleep(0.03));
              return currentScope();
            }
            return new Promise((resolve) => {
              db.query(sleep(0.03), () => resolve(currentScope()));
            });
          }),
        ),
      );
      expect(seen.map((scope) => records.indexOf(scope as RequestRecord))).toEqual([0, 1, 2]);
      // The first finds an idle client, so its call begins when it gets it; the others begin to wait at once.
      expect(calls.map((call) => records.indexOf(call.scope as RequestRecord))).toEqual([1, 2, 0]);
    },
  );

  test('pool.connect with a callback: the callback and its statements are the waiter’s', async () => {
    const db = await warmPool();
    const records = [enter(5_000), enter(5_000)];
    const seen = await Promise.all(
      records.map((record) =>
        runInScope(
          record,
          () =>
            new Promise((resolve, reject) => {
              db.connect((error, connected, release) => {
                if (error || connected === undefined) return reject(error);
                const scope = records.indexOf(currentScope() as RequestRecord);
                connected.query(sleep(0.03), [], (_, result) => {
                  release();
                  resolve([scope, records.indexOf(currentScope() as RequestRecord), result.rowCount]);
                });
              });
            }),
        ),
      ),
    );
    expect(seen).toEqual([
      [0, 0, 1],
      [1, 1, 1],
    ]);
  });

  test('a callback of client.query, and the end of a query object, speak in the name of their caller', async () => {
    const db = await client();
    const record = enter(5_000);
    const seen = await runInScope(record, () =>
      Promise.all([
        new Promise((resolve) => db.query('select 1', () => resolve(currentScope()))),
        new Promise((resolve) => db.query('select nothing', () => resolve(currentScope()))),
        new Promise((resolve) => db.query(new pg.Query('select 1')).on('end', () => resolve(currentScope()))),
      ]),
    );
    expect(seen.map((scope) => scope === record)).toEqual([true, true, true]);
  });

  test('a pool.query with a callback is answered in the name of its caller, a promised one in nobody’s', async () => {
    const db = await warmPool();
    const record = enter(5_000);
    const released: unknown[] = [];
    db.on('release', () => released.push(currentScope()));
    const seen = await runInScope(record, async () => {
      const called = await new Promise((resolve) => db.query('select 1', () => resolve(currentScope())));
      await db.query('select 1');
      return [called, currentScope()];
    });
    expect(seen.map((scope) => scope === record)).toEqual([true, true]);
    expect(released.map((scope) => scope === record)).toEqual([true, false]);
    expect(calls.map((call) => call.scope === record)).toEqual([true, true]);
  });

  test('a promised pool.query with an object of the application: its end is its caller’s', async () => {
    const db = await warmPool();
    const record = enter(5_000);
    const query = new pg.Query('select 1');
    const ended = new Promise((resolve) => query.on('end', () => resolve(currentScope())));
    await runInScope(record, () => db.query(query as unknown as string));
    expect(await ended).toBe(record);
  });

  test('a promised pool.query with a span: what its instrumentation calls is its caller’s', async () => {
    const db = await warmPool();
    const record = enter(5_000);
    let released: unknown;
    db.on('release', () => {
      released = currentScope();
    });
    await runInScope(record, async () => {
      const answered = db.query('select 1');
      // The pool hands out its client in the tick that it has asked for before.
      process.nextTick(() => {
        for (const call of calls) call.span = trace.wrapSpanContext(INVALID_SPAN_CONTEXT);
      });
      await answered;
    });
    expect(calls).toHaveLength(1);
    expect(released).toBe(record);
  });

  test('a pool with promises of another library: what waits for one runs in the name of its caller', async () => {
    const db = await warmPool({ Promise: SynchronousPromise } as Pg.PoolConfig);
    const record = enter(5_000);
    const seen = await new Promise((resolve) => {
      runInScope(record, () => db.query('select 1').then(() => resolve(currentScope())));
    });
    expect(seen).toBe(record);
  });

  test('a pool whose connect the application has replaced: its own statements and pg-pool’s are the caller’s', async () => {
    const db = await warmPool();
    const connect = db.connect.bind(db);
    type Callback = Parameters<typeof connect>[0];
    db.connect = ((callback: Callback) =>
      connect((error, connected, release) => {
        if (error || connected === undefined) return callback(error, connected, release);
        connected.query("set search_path to 'public'", () => callback(error, connected, release));
      })) as typeof db.connect;
    const record = enter(5_000);
    await runInScope(record, () => db.query('select 1'));
    expect(calls.map((call) => call.scope === record)).toEqual([true, true]);
  });

  test('J4: a pooled connection does not keep the request that opened it', async () => {
    const db = pool();
    const record = enter(5_000);
    const connected = await runInScope(record, () => db.connect());
    const seen = new Promise((resolve) => connected.once('notification', () => resolve(currentScope())));
    await connected.query('listen news');
    await connected.query('notify news');
    expect(await seen).toBeUndefined();
    connected.release();
  });

  test('other stores are left alone', async () => {
    const db = await warmPool();
    const theirs = new AsyncLocalStorage<string>();
    const seen = await theirs.run('a', () => db.query('select 1').then(() => theirs.getStore()));
    expect(seen).toBe('a');
  });
});

describe('the standard metrics of pools', () => {
  function poolName(): string {
    const { host, port, database } = postgres.connection;
    return `${host}:${port}/${database}`;
  }

  function histogram(metric: 'poolWait' | 'poolCreate' | 'poolUse') {
    return t.histogram(metric, { 'db.client.connection.pool.name': poolName() });
  }

  test('wait_time, create_time and use_time, in seconds, under the name that instrumentation-pg gives a pool', async () => {
    const db = pool({ max: 1 });
    const first = await db.connect();
    expect(histogram('poolCreate').count).toBe(1);
    expect(histogram('poolCreate').sum).toBeLessThanOrEqual(histogram('poolWait').sum);
    expect(histogram('poolWait').count).toBe(1);
    const openedS = histogram('poolWait').sum;
    expect(openedS).toBeLessThan(2);
    expect(histogram('poolUse').count).toBe(0);
    setTimeout(() => first.release(), 100);
    await db.query(sleep(0.05));
    expect(histogram('poolCreate').count).toBe(1);
    expect(histogram('poolWait').count).toBe(2);
    expect(histogram('poolWait').sum - openedS).toBeGreaterThanOrEqual((100 - SLACK_MS) / 1000);
    expect(histogram('poolUse').count).toBe(2);
    expect(histogram('poolUse').sum).toBeGreaterThanOrEqual((150 - 2 * SLACK_MS) / 1000);
    expect(histogram('poolUse').sum).toBeLessThan(1);
  });

  test('an idle connection counts, with about 0', async () => {
    const db = await warmPool();
    const before = histogram('poolWait').sum;
    await db.query('select 1');
    expect(histogram('poolWait').count).toBe(2);
    expect(histogram('poolWait').sum - before).toBeLessThan(0.02);
  });

  test('a pool that takes its address from elsewhere has the same name as with instrumentation-pg', async () => {
    const { host, port, database, user } = postgres.connection;
    const db = new pg.Pool({ connectionString: `postgres://${user}@${host}:${port}/${database}` });
    await db.query('select 1');
    expect(calls[0]?.dependency).toBe('postgresql/app');
    await db.end();
    const labels = { 'db.client.connection.pool.name': 'unknown_host:unknown_port/unknown_database' };
    expect(t.histogram('poolWait', labels).count).toBe(1);
  });

  test.each([
    ['the last that fits', 2, 0],
    ['the first too many', 3, 1],
  ])('as many names as dependencies: %s', async (_, pools, folded) => {
    restart({ labels: { dependencies: 2 } });
    for (let i = 0; i < pools; i++) {
      const db = pool({ host: `127.0.0.${i + 1}`, port: 1 });
      await failure(db.query('select 1'));
    }
    const names = new Set(
      t.recorder.families.poolWait.cells.map((cell) => cell.attributes['db.client.connection.pool.name']),
    );
    expect(names.has('other')).toBe(folded === 1);
    expect(names.size).toBe(pools);
    expect(t.value('labelOverflow', { label: 'dependency' })).toBe(folded);
  });
});

describe('wrapping', () => {
  test('J5: wrapped again, by any copy, it records once', async () => {
    const again = createTestHooks();
    const undo = wrapPg(pg, again.hooks);
    const db = await warmPool();
    await db.query('select 1');
    undo();
    expect(calls).toHaveLength(1);
    expect(again.value('calls')).toBe(0);
    await db.query('select 1');
    expect(calls).toHaveLength(2);
  });

  test('taken off, it records no more, not even what is on its way', async () => {
    const db = await client();
    const running = db.query(sleep(0.02));
    unwrap();
    await running;
    await db.query('select 1');
    expect(calls).toHaveLength(1);
    t.hooks.calls.end(calls[0] as CallRecord, 'failed', t.hooks.now());
    start();
  });

  test('pg’s native binding is left alone', () => {
    class NativeClient {
      query() {}
      connect() {}
    }
    class NativeQuery {
      handleError() {}
      submit() {}
    }
    const { query } = NativeClient.prototype;
    wrapPg({ Client: NativeClient, Query: NativeQuery, Pool: class {} }, t.hooks)();
    expect(NativeClient.prototype.query).toBe(query);
  });

  test('what instrumentation-pg itself sends before a statement is no statement of the service', async () => {
    const db = await client();
    await db.query({
      text: "SET application_name = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'",
    });
    expect(calls).toHaveLength(0);
    await db.query({ text: "SET application_name = 'orders'" });
    expect(calls).toHaveLength(1);
  });

  test('a pool of other clients is left alone', async () => {
    class OtherClient {
      connect(callback: (error: Error) => void) {
        callback(new Error('no'));
      }
      on() {}
    }
    const db = new pg.Pool({ Client: OtherClient } as unknown as Pg.PoolConfig);
    expect((await failure(db.query('select 1'))).message).toBe('no');
    expect(calls).toHaveLength(0);
  });

  test('G8, K4: no timer and no listener of ours stays', async () => {
    const db = await client({ query_timeout: 10_000 });
    await failure(db.query('select nothing'));
    await db.query('select 1');
    const { connection } = db as unknown as { connection: NodeJS.EventEmitter };
    expect(connection.listenerCount('dataRow')).toBe(1);
    expect(process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length).toBeLessThanOrEqual(
      timersOfTheTestRunner,
    );
  });
});

/** What pg calls on a query object. */
class OwnQuery {
  callback: (() => void) | undefined;
  submit: () => unknown = () => null;
  handleRowDescription(_message: object): void {}
  handleDataRow(_message: object): void {}
  handleCommandComplete(_message: object): void {}
  handleReadyForQuery(): void {}
  handleError(): void {}
}

/** Runs what waits for it where it is settled, as promises that know nothing of async contexts do. */
class SynchronousPromise {
  #value: unknown;
  #isSettled = false;
  readonly #waiting: ((value: unknown) => void)[] = [];

  constructor(work: (resolve: (value: unknown) => void, reject: (error: unknown) => void) => void) {
    work(
      (value) => {
        this.#value = value;
        this.#isSettled = true;
        for (const run of this.#waiting.splice(0)) run(value);
      },
      (error) => {
        throw error;
      },
    );
  }

  // biome-ignore lint/suspicious/noThenProperty: it stands for a promise
  then(run: (value: unknown) => void): this {
    if (this.#isSettled) run(this.#value);
    else this.#waiting.push(run);
    return this;
  }

  catch(): this {
    return this;
  }
}

/** What vitest itself has running while a test runs: its own time limit. */
const timersOfTheTestRunner = 1;
