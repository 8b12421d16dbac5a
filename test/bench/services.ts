/**
 * The measured services: `service` (Express 5, one PostgreSQL query and one `fetch` per request) and `hello`
 * (plain node:http). They know nothing of time budgets.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

export type Workload = 'service' | 'hello';

export const CONNECTIONS = 8;
/** What a caller of ours sends: every path of the recorder is taken. */
export const HEADERS = { 'time-budget': 'remaining=30000, attempt=1, caller=bench' };

/** What the measured request asks for, and one that waits for its peer until that lets it go. */
export const PATHS: Readonly<Record<Workload, string>> = { service: '/items/7', hello: '/' };
export const HELD_PATH = '/held/7';
export const SCHEMA = `
create table items (id int primary key, name text not null);
insert into items select n, 'item-' || n from generate_series(1, 100) n;`;

/** Starts one on a free port of the loopback and gives its URL. */
export async function startService(workload: Workload): Promise<string> {
  const server = workload === 'service' ? await createService() : createHello();
  // Connections are kept between the slices, so that no variant pays for opening them.
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // A server that listens on a port has an address of this form.
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** Loaded only here, so that `hello` does not start with what it does not use. */
async function createService(): Promise<Server> {
  const [{ default: express }, { default: pg }] = await Promise.all([import('express'), import('pg')]);
  const peer = process.env.BENCH_PEER ?? '';
  const pool = new pg.Pool({ connectionString: process.env.BENCH_POSTGRES, max: 10 });
  const app = express();
  app.get('/items/:id', async (request, response) => {
    const rows = await pool.query('select id, name from items where id = $1', [request.params.id]);
    const stock = await (await fetch(`${peer}/stock`)).json();
    response.json({ item: rows.rows[0], stock });
  });
  app.get('/held/:id', async (_request, response) => {
    response.json(await (await fetch(`${peer}/hold`)).json());
  });
  return createServer(app);
}

function createHello(): Server {
  return createServer((_request, response) => response.end('hello'));
}
