// One hop of a chain: spends some time of its own, then calls the next. Says what it was sent, and how its clock ran.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });

/** With node:http, through one socket, so that calls queue. */
function getByHttp(url) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent }, async (response) => {
      resolve(Buffer.concat(await response.toArray()).toString());
    });
    request.on('error', reject);
  });
}

async function getByFetch(url, { fresh, limit }) {
  const response = await fetch(url, {
    headers: fresh === null ? {} : { 'x-request-timeout-ms': fresh },
    ...(limit === null ? {} : { signal: AbortSignal.timeout(Number(limit)) }),
  });
  return response.text();
}

const server = http.createServer(async (request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  const begunAt = performance.now();
  const next = process.env.NEXT_URL;
  await sleep(Number(searchParams.get('spend') ?? process.env.SPEND_MS ?? 0));
  globalThis.stepClock?.(Number(searchParams.get('step') ?? 0));
  const spentMs = performance.now() - begunAt;
  const wallMs = Date.now();
  const own = {
    budget: request.headers['time-budget'],
    timeout: request.headers['x-request-timeout-ms'],
    spentMs,
    wallMs,
  };
  let further = [];
  if (next !== undefined) {
    try {
      const url = `${next}${pathname}`;
      const [fresh, limit] = [searchParams.get('fresh'), searchParams.get('limit')];
      const text = await (pathname === '/queue' ? getByHttp(url) : getByFetch(url, { fresh, limit }));
      further = text.startsWith('[') ? JSON.parse(text) : [text];
    } catch (error) {
      further = [error.name];
    }
  }
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify([own, ...further]));
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
