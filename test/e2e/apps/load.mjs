// A service for many requests: plain ones, calls of both kinds, uploads, and figures of the process itself.
import { AsyncLocalStorage } from 'node:async_hooks';
import http from 'node:http';
import net from 'node:net';
import express from 'express';
import pg from 'pg';

const { NEXT_URL, NEXT_PORT } = process.env;
const agent = new http.Agent({ keepAlive: true, maxSockets: 8 });
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 4, idleTimeoutMillis: 0 });
const attached = new AsyncLocalStorage();

const app = express();
app.get('/items/:id', async (request, response) => {
  // Another host for each id, and another connection.
  const host = `h-${request.params.id}.example.com`;
  const createConnection = () => net.connect(NEXT_PORT, '127.0.0.1');
  await new Promise((resolve) => {
    http.get({ host, path: '/', createConnection }, (answer) => answer.resume().on('end', resolve));
  });
  response.json({ id: request.params.id });
});

function collect(request, response) {
  let size = 0;
  request.on('data', (piece) => {
    size += piece.length;
  });
  request.on('end', () => response.end(String(size)));
}

const handlers = {
  '/plain': (_request, response) => response.end('ok'),
  '/upload': collect,
  async '/fetch'(_request, response) {
    response.end(await (await fetch(NEXT_URL)).text());
  },
  '/http'(_request, response) {
    http.get(NEXT_URL, { agent }, (answer) => answer.resume().on('end', () => response.end('ok')));
  },
  async '/pg'(_request, response) {
    const { rows } = await pool.query('select $1::int as n', [1]);
    response.end(String(rows[0].n));
  },
  '/ignored'(_request, response) {
    // Nobody listens for the answer: Node throws it away.
    const request = http.get(NEXT_URL, { agent });
    request.on('close', () => response.end('ok'));
  },
  async '/attached'(_request, response) {
    // 64 KB that live as long as the request, and a connection that outlives it.
    await attached.run(Buffer.alloc(65_536, 'x'), async () => {
      await (await fetch(NEXT_URL)).text();
      response.end(String(attached.getStore().length));
    });
  },
  async '/stats'(_request, response) {
    // Sockets that are closing, and what finalizers let go of, take a few turns.
    for (let i = 0; i < 4; i++) {
      globalThis.gc();
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const { heapUsed, external, arrayBuffers } = process.memoryUsage();
    const sockets = Object.values(agent.freeSockets).flat();
    response.end(
      JSON.stringify({
        heapUsed,
        external,
        arrayBuffers,
        resources: process.getActiveResourcesInfo().length,
        serverListeners: countListeners(server),
        processListeners: countListeners(process),
        mostSocketListeners: Math.max(0, ...sockets.map(countListeners)),
        records: globalThis.countRecords?.(),
      }),
    );
  },
};

function countListeners(emitter) {
  return emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0);
}

const server = http.createServer((request, response) => {
  const handler = handlers[request.url];
  if (handler === undefined) app(request, response);
  else void handler(request, response);
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
