/**
 * Orders: rows from PostgreSQL, stock from inventory. Knows nothing of time budgets.
 *
 * GET /orders/:id             the order's row, then its stock and its customer side by side
 *   ?query_ms=1000            a query that takes that much longer
 *   ?compute_ms=1000          computes a discount without letting go of the event loop
 * GET /reports/:day           the neighbour that takes what others wait for
 *   ?hold_ms=1000             holds its place among the requests let in
 *   ?transaction_ms=1000      holds a connection in an open transaction
 */
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import express, { type RequestHandler } from 'express';
import pg from 'pg';

const INVENTORY_URL = process.env.INVENTORY_URL;
/** Requests worked on at a time; the others wait in line, as behind a semaphore or a worker pool. */
const MAX_RUNNING = 12;
const MAX_CONNECTIONS = 6;

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: MAX_CONNECTIONS });
const agent = new http.Agent({ keepAlive: true });
const app = express();

app.use(limitRunning(MAX_RUNNING));

app.get('/orders/:id', async (request, response) => {
  const queryS = Number(request.query.query_ms ?? 0) / 1000;
  const rows = await pool.query('select id, item, customer, pg_sleep($2) from orders where id = $1', [
    request.params.id,
    queryS,
  ]);
  const order = rows.rows[0];
  if (order === undefined) {
    response.status(404).json({ error: 'no such order' });
    return;
  }
  const search = new URL(request.originalUrl, INVENTORY_URL).search;
  const [stock, customer] = await Promise.all([
    getJson(new URL(`/stock/${order.item}${search}`, INVENTORY_URL)),
    findCustomer(order.customer, Number(request.query.compute_ms ?? 0)),
  ]);
  response.json({ id: order.id, item: order.item, customer, stock });
});

app.get('/reports/:day', async (request, response) => {
  await sleep(Number(request.query.hold_ms ?? 0));
  const transactionMs = Number(request.query.transaction_ms ?? 0);
  if (transactionMs > 0) await inTransaction(() => sleep(transactionMs));
  response.json({ day: request.params.day });
});

app.listen(Number(process.env.PORT), process.env.HOST ?? '127.0.0.1', () => console.log('orders is up'));

function limitRunning(limit: number): RequestHandler {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (_request, response, next) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    const leave = () => {
      const nextInLine = waiting.shift();
      if (nextInLine === undefined) running--;
      else nextInLine();
    };
    if (response.closed) leave();
    else response.once('close', leave);
    next();
  };
}

async function findCustomer(name: string, discountMs: number): Promise<unknown> {
  const { rows } = await pool.query('select name from customers where name = $1', [name]);
  compute(discountMs);
  return rows[0];
}

function getJson(url: URL): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { agent }, (response) => {
      let text = '';
      response.setEncoding('utf8');
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        try {
          resolve(JSON.parse(text));
        } catch (error) {
          reject(error);
        }
      });
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end();
  });
}

/** A connection is held while something else is waited for: the usual way to run out of them. */
async function inTransaction(work: () => Promise<unknown>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query('begin');
    await work();
    await client.query('commit');
  } finally {
    client.release();
  }
}

function compute(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until) Math.sqrt(until);
}
