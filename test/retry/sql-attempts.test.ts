/**
 * Statements are no attempts of each other by what they look like. One that the guard was asked for is, by its owner's
 * word; with a real PostgreSQL and pg.
 */
import { createRequire } from 'node:module';
import pRetry from 'p-retry';
import type Pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Undo } from '../../instrumentation/adapter.ts';
import { wrapPg } from '../../instrumentation/pg/pg.ts';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { enterScope, runInScope } from '../../src/current.ts';
import { guardPRetry } from '../../src/retry/index.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { usePostgres } from '../support/postgres.ts';

// The module that its own pool requires, too; vitest's import would be another instance.
const pg = createRequire(import.meta.url)('pg') as typeof Pg;
const postgres = usePostgres();
const dependency = 'orders_db';
const OPERATION = 'GET /orders/:id';
/** A serialization failure, which asks for the transaction again. */
const FAILS = "do $$ begin raise exception 'again' using errcode = '40001'; end $$";

let t: TestHooks;
let unwrap: Undo;
let pool: Pg.Pool;

function openPool(options: Pg.PoolConfig = {}): Pg.Pool {
  const made = new pg.Pool({ ...postgres.connection, max: 1, ...options });
  made.on('error', () => {});
  // A pool has ended before its connections have, and then the server stops.
  made.on('connect', (client) => client.on('error', () => {}));
  return made;
}

beforeEach(async () => {
  enterScope(undefined);
  const { host, port } = postgres.connection;
  t = createTestHooks({
    config: {
      mode: 'enforce',
      dependencies: { [dependency]: { match: [`${host}:${port}`, `${host}:1`] } },
      retryBudgets: { [dependency]: { model: 'token_bucket', ratio: 0, reservePerSecond: 1, ttlMs: 10_000 } },
    },
  });
  activateRecorder(t.recorder);
  unwrap = wrapPg(pg, t.hooks);
  pool = openPool();
  await pool.query('select 1');
});

afterEach(async () => {
  if (!pool.ending) await pool.end();
  unwrap();
  deactivateRecorder(t.recorder);
});

async function inRequest<T>(work: () => Promise<T>): Promise<T> {
  const facts = { headers: {}, remoteAddress: '127.0.0.1', method: 'GET', path: '/orders/1' };
  const record = t.recorder.enter(facts, t.hooks.now());
  t.recorder.handling(record, OPERATION, t.hooks.now());
  try {
    return await runInScope(record, work);
  } finally {
    t.recorder.finish(record, { completed: true, status: 200 }, t.hooks.now());
  }
}

/** Repeats work that fails so often, with the guard. */
function repeated(failures: number, work: (statement: string) => Promise<unknown>): Promise<unknown> {
  let made = 0;
  const options = guardPRetry({ dependency }, { retries: 5, minTimeout: 1, factor: 1 });
  return pRetry(() => work(made++ < failures ? FAILS : 'select 2'), options);
}

const attempts = () =>
  t.recorder.families.attempts.cells
    .filter(({ value }) => value > 0)
    .map(({ attributes: { operation, kind, owner }, value }) => [operation, kind, owner, value]);

describe('attempts of SQL', () => {
  test('two failures and a success with p-retry and the guard: two repeats, by the service, paid for', async () => {
    await inRequest(() => repeated(2, (statement) => pool.query(statement)));
    expect(attempts()).toEqual([[OPERATION, 'reexecute', 'service', 2]]);
    expect(t.value('calls', { dependency })).toBeGreaterThanOrEqual(3);
    expect(t.value('retryWithdrawals', { result: 'granted' })).toBe(2);
    expect(t.value('retryDeposits', { source: 'refund' })).toBe(0);
    expect(t.value('workloadCalls', { dependency, workload: 'retry' })).toBe(2);
  });

  test('a transaction that is repeated is one repeat, at its first statement', async () => {
    await inRequest(() =>
      repeated(1, async (statement) => {
        const client = await pool.connect();
        try {
          await client.query('begin');
          await client.query(statement);
          await client.query('commit');
        } catch (error) {
          await client.query('rollback');
          throw error;
        } finally {
          client.release();
        }
      }),
    );
    expect(attempts()).toEqual([[OPERATION, 'reexecute', 'service', 1]]);
  });

  test('the same without the guard is not taken for one: equal statements follow each other everywhere', async () => {
    await inRequest(async () => {
      await pool.query(FAILS).catch(() => {});
      await pool.query(FAILS).catch(() => {});
      await pool.query('select 2');
      await pool.query('select 2');
    });
    expect(attempts()).toEqual([]);
    expect(t.value('violations', { kind: 'double_owner' })).toBe(0);
  });

  test('a server that refuses connections never saw an attempt: a reconnect', async () => {
    await pool.end();
    pool = openPool({ port: 1 });
    await inRequest(() => repeated(9, () => pool.query('select 2')).catch(() => {}));
    expect(new Set(attempts().map(([, kind]) => kind))).toEqual(new Set(['reconnect']));
  });

  test('outside a request, under no operation', async () => {
    await repeated(1, (statement) => pool.query(statement));
    expect(attempts()).toEqual([['unmatched', 'reexecute', 'service', 1]]);
  });
});
