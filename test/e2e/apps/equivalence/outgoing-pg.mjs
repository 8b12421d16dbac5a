// Statements, transactions and pools of pg, and a database that goes away.
import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { rejection, tell, watch } from './journal.mjs';

const CLIENT_EVENTS = ['connect', 'error', 'end', 'notice'];
const POOL_EVENTS = ['connect', 'acquire', 'release', 'error'];

/** A pool for one scene, ended whatever comes of it. */
async function withPool({ pg, database, scene, log }, options, work) {
  const pool = watch(scene, 'pool', new pg.Pool({ ...database, ...options }), POOL_EVENTS);
  let made = 0;
  let removed = 0;
  pool.on('connect', () => made++).on('remove', () => removed++);
  try {
    await work(pool);
  } finally {
    await pool.end();
    // That a connection is gone is told some time after.
    while (removed < made) await sleep(1);
    log('removed', removed);
  }
}

function counts({ totalCount, idleCount, waitingCount }) {
  return `total ${totalCount} idle ${idleCount} waiting ${waitingCount}`;
}

function shown({ command, rowCount, rows, fields, oid }) {
  return JSON.stringify({ command, rowCount, oid, rows, fields: fields?.map(({ name }) => name) });
}

export const pgScenes = {
  'pg: a client by promises': async ({ pg, database, scene, log }) => {
    const client = watch(scene, 'client', new pg.Client(database), CLIENT_EVENTS);
    log((await client.connect()) === undefined, await rejection(client.connect()));
    log(shown(await client.query('select 1 as one')));
    log(shown(await client.query('select $1::int as n, $2::text as t', [7, 'x'])));
    log(
      shown(
        await client.query({ text: 'select $1::int as n', values: [1], name: 'named', rowMode: 'array' }),
      ),
    );
    log(shown(await client.query({ text: 'select $1::int as n', values: [2], name: 'named' })));
    const many = await client.query('select 1 as a; select 2 as b');
    log(many.map(shown).join());
    log(
      await rejection(client.query('select nonsense')),
      await rejection(client.query({ text: 'select 1/0' })),
    );
    log(await rejection(client.query({ name: 'named', text: 'select 2', values: [] })));
    log((await client.end()) === undefined, await rejection(client.query('select 1')));
  },
  'pg: a client by callbacks': ({ pg, database, scene, log }) =>
    new Promise((resolve) => {
      const client = watch(scene, 'client', new pg.Client(database), CLIENT_EVENTS);
      const result = client.connect((error, ...rest) => {
        log('connected', String(error), rest.length);
        client.query('select 1 as one', (failure, answer) => log(String(failure), shown(answer)));
        client.query('select nonsense', (failure, answer) => log(tell(failure), String(answer)));
        client.query('select $1::int as n', [3], function (failure, answer) {
          log(String(failure), shown(answer), String(this === undefined), arguments.length);
          client.end(() => {
            log('ended');
            resolve();
          });
        });
      });
      log(String(result));
    }),
  'pg: a query object of its own': async ({ pg, database, log }) => {
    const client = new pg.Client(database);
    await client.connect();
    const query = new pg.Query('select generate_series(1, 3) as n');
    query.on('row', (row) => log('row', JSON.stringify(row)));
    query.on('error', (error) => log(tell(error)));
    const over = new Promise((resolve) => query.on('end', resolve));
    log(client.query(query) === query);
    await over;
    const failing = client.query(new pg.Query('select nonsense'));
    await new Promise((resolve) => {
      failing.on('error', (error) => {
        log(tell(error));
        resolve();
      });
    });
    await client.end();
  },
  'pg: a cursor': async ({ pg, database, log }) => {
    // What pg-cursor and pg-query-stream are: an object with `submit` and handlers.
    class Cursor {
      submit(connection) {
        this.connection = connection;
        connection.parse({ text: 'select generate_series(1, 4) as n' }, true);
        connection.bind({ values: [] }, true);
        connection.describe({ type: 'P', name: '' }, true);
        connection.execute({ rows: 2 }, true);
        connection.flush();
      }
      handleRowDescription(message) {
        log('columns', message.fields.length);
      }
      handleDataRow(message) {
        log('row', message.fields[0]);
      }
      handlePortalSuspended() {
        log('suspended');
        this.connection.execute({ rows: 10 }, true);
        this.connection.flush();
      }
      handleCommandComplete(message) {
        log('complete', message.text);
        this.connection.sync();
      }
      handleReadyForQuery() {
        log('ready');
        this.done();
      }
      handleError(error) {
        log(tell(error));
      }
    }
    const client = new pg.Client(database);
    await client.connect();
    const cursor = new Cursor();
    const over = new Promise((resolve) => {
      cursor.done = resolve;
    });
    log(client.query(cursor) === cursor);
    await over;
    log(shown(await client.query('select 5 as after')));
    await client.end();
  },
  'pg: a transaction': async (o) =>
    withPool(o, { max: 1 }, async (pool) => {
      const client = await pool.connect();
      await client.query('begin');
      await client.query('create temp table t (n int primary key)');
      await client.query('insert into t values ($1)', [1]);
      o.log(await rejection(client.query('insert into t values (1)')));
      o.log(await rejection(client.query('select 1')));
      o.log(shown(await client.query('rollback')));
      client.release();
      o.log(counts(pool));
      try {
        client.release();
      } catch (error) {
        o.log(tell(error));
      }
    }),
  'pg: a pool': async (o) =>
    withPool(o, { max: 2 }, async (pool) => {
      o.log(shown(await pool.query('select 1 as one')), counts(pool));
      await new Promise((resolve) => {
        pool.query('select $1::int as n', [4], (error, answer) => {
          o.log(String(error), shown(answer));
          resolve();
        });
      });
      await new Promise((resolve) => {
        pool.connect((error, client, done) => {
          o.log(String(error), typeof client.query, typeof done);
          done();
          resolve();
        });
      });
      o.log(await rejection(pool.query('select nonsense')), counts(pool));
      o.log(await rejection(pool.query(undefined)), await rejection(pool.query()));
    }),
  'pg: a pool that is used up': async (o) =>
    withPool(o, { max: 1 }, async (pool) => {
      const client = await pool.connect();
      // Read each time; from the start on, it might end the first connect.
      pool.options.connectionTimeoutMillis = 60;
      o.log(await rejection(pool.query('select 1')), counts(pool));
      o.log(await rejection(pool.connect()), counts(pool));
      client.release();
      o.log(shown(await pool.query('select 2 as two')), counts(pool));
    }),
  'pg: waiters of a pool': async (o) =>
    withPool(o, { max: 1 }, async (pool) => {
      const own = new AsyncLocalStorage();
      const all = ['a', 'b', 'c'].map((value) =>
        own.run(value, async () => {
          const { rows } = await pool.query('select $1::text as value', [value]);
          o.log(value, own.getStore(), JSON.stringify(rows));
          await new Promise((resolve) => {
            pool.query('select $1::text as value', [value], () => {
              o.log('callback', value, own.getStore());
              resolve();
            });
          });
        }),
      );
      o.log(counts(pool));
      await Promise.all(all);
    }),
  'pg: query_timeout': async (o) =>
    withPool(o, { max: 1 }, async (pool) => {
      const slow = { text: 'select pg_sleep(0.4)', query_timeout: 60 };
      o.log(await rejection(pool.query(slow)), counts(pool));
      const client = await pool.connect();
      // The next statement on the same connection waits until the server is done with the one before.
      o.log(await rejection(client.query(slow)), shown(await client.query('select 1 as one')));
      client.release();
    }),
  'pg: statement_timeout': async (o) =>
    withPool(o, { max: 1, statement_timeout: 250 }, async (pool) => {
      o.log(await rejection(pool.query('select pg_sleep(10)')), counts(pool));
      const client = await pool.connect();
      o.log(
        await rejection(client.query('select pg_sleep(10)')),
        shown(await client.query('select 1 as one')),
      );
      client.release();
    }),
  'pg: connection timeout': async ({ pg, silent, log }) => {
    const client = new pg.Client({ ...silent, connectionTimeoutMillis: 80 });
    log(await rejection(client.connect()));
    const pool = new pg.Pool({ ...silent, connectionTimeoutMillis: 80 });
    log(await rejection(pool.query('select 1')), counts(pool));
    await pool.end();
  },
  'pg: nobody there': async ({ pg, database, closed, log }) => {
    const nowhere = { ...database, port: closed };
    log(await rejection(new pg.Client(nowhere).connect()));
    const pool = new pg.Pool(nowhere);
    log(await rejection(pool.query('select 1')), await rejection(pool.connect()), counts(pool));
    await pool.end();
    log(await rejection(pool.query('select 1')), await rejection(pool.end()));
  },
  'pg: wrong database': async ({ pg, database, log }) => {
    log(await rejection(new pg.Client({ ...database, database: 'nope' }).connect()));
  },
  'pg: a pool that ends with work in it': async ({ pg, database, log }) => {
    const pool = new pg.Pool({ ...database, max: 1 });
    await pool.query('select 1');
    const query = pool.query('select pg_sleep(0.05)');
    await nextTurn();
    const ended = pool.end().then(() => log('ended'));
    log(shown(await query));
    await ended;
  },
  'pg: a client that is discarded': async (o) =>
    withPool(o, { max: 1 }, async (pool) => {
      const client = await pool.connect();
      client.release(new Error('broken'));
      o.log(counts(pool));
      o.log(shown(await pool.query('select 1 as one')), counts(pool));
    }),
  'pg: the database goes away and comes back': async (o) => {
    // Through a proxy that the test cuts when it sees the statement.
    const pool = watch(o.scene, 'pool', new o.pg.Pool({ ...o.fragile, max: 1 }), ['error']);
    o.log(shown(await pool.query('select 1 as one')));
    o.log(await rejection(pool.query('select pg_sleep(10) as cut_me')), counts(pool));
    o.log(await rejection(pool.query('select 2 as two')));
    o.log('away');
    let answer;
    while (answer === undefined) {
      await sleep(5);
      answer = await pool.query('select 3 as three').catch(() => undefined);
    }
    o.log(shown(answer), counts(pool));
    await pool.end();
  },
  'pg: an idle connection is lost': async (o) => {
    const pool = watch(o.scene, 'pool', new o.pg.Pool({ ...o.fragile, max: 1 }), ['error']);
    const lost = new Promise((resolve) => pool.once('error', resolve));
    const { rows } = await pool.query('select pg_backend_pid() as pid');
    const other = new o.pg.Client(o.database);
    await other.connect();
    await other.query('select pg_terminate_backend($1)', [rows[0].pid]);
    await lost;
    o.log(counts(pool), shown(await pool.query('select 1 as one')));
    await Promise.all([other.end(), pool.end()]);
  },
  'pg: events in order': async (o) =>
    withPool(o, { max: 1 }, async (pool) => {
      // Whatever is awaited must not be later by a turn of the loop.
      await pool.query('select 1');
      const order = [];
      const turn = (name) => setImmediate(() => order.push(name));
      const pending = pool.query('select 1').then(() => {
        order.push('answer');
        turn('after the answer');
        return null;
      });
      await pending;
      await nextTurn();
      await nextTurn();
      o.log(order.join());
    }),
};
