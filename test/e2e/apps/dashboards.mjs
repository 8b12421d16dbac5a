// A service that does a little of all that the dashboards show, by path. STOCK_URL has a retry budget, PRICE_URL none.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { bulkhead, ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel';
import { detach, recordDuplicate, setRepeated, setWorkload, shed } from 'otel-time-budget';
import { admission, degradedMode, watchBulkhead, watchQueue } from 'otel-time-budget/admission';
import { reconcile, recordUnknown, replay } from 'otel-time-budget/recovery';
import { backoff, hedge, mayRetry, watchCockatielBreaker, watchFallback } from 'otel-time-budget/retry';

const { STOCK_URL, PRICE_URL } = process.env;
const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });

function ask(url) {
  return new Promise((resolve, reject) => {
    const request = http.get(url, { agent }, (response) => {
      response.resume();
      response.on('end', () => {
        if (response.statusCode === 200) resolve();
        else reject(Object.assign(new Error(`answered ${response.statusCode}`), { response }));
      });
    });
    request.on('error', reject);
  });
}

async function askAgain(dependency, url) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(url);
    } catch (error) {
      const answer = mayRetry({ dependency, error, attempt, maxAttempts: 3, backoffMs: 5 });
      if (!answer.isAllowed || !(await backoff(answer))) throw error;
    }
  }
}

const breaker = watchCockatielBreaker(
  'stock',
  circuitBreaker(handleAll, { halfOpenAfter: 50, breaker: new ConsecutiveBreaker(1) }),
);
const fallback = watchFallback({ dependency: 'stock', name: 'second' }, () => ask(`${STOCK_URL}/quick`));
const places = watchBulkhead('price', bulkhead(4, 4));
const mode = degradedMode('without_price', {});
const replaying = replay('outbox', { maxPerSecond: 100, read: () => ({ capacityPerSecond: 200 }) });

// Five come and eight go in a second, two of the five are repeats.
const startedAt = performance.now();
watchQueue('outbox', () => {
  const seconds = (performance.now() - startedAt) / 1000;
  const entered = 2000 + Math.floor(5 * seconds);
  const started = Math.floor(8 * seconds);
  return {
    depth: entered - started,
    oldestAt: performance.now() - 200,
    usefulLifeMs: 1000,
    entered,
    repeats: Math.floor(2 * seconds),
    left: { started },
  };
});

watchQueue('letters', () => ({
  depth: 4,
  work: { waiting: 12, entered: 12, done: 0 },
  entered: 4,
  left: {},
}));

let unsure = 0;
let settled = 0;

const PATHS = {
  '/work': () => ask(`${STOCK_URL}/quick`),
  '/slow': () => ask(`${STOCK_URL}/slow`),
  '/retry': () => askAgain('stock', `${STOCK_URL}/fail`),
  '/thrice': () => askAgain('price', `${PRICE_URL}/fail`),
  '/price': () => places.execute(() => ask(`${PRICE_URL}/quick`)),
  '/broken': () => breaker.execute(() => ask(`${STOCK_URL}/fail`)).catch(() => fallback()),
  '/mended': () => breaker.execute(() => ask(`${STOCK_URL}/quick`)),
  '/replay': () => {
    setWorkload('replay');
    replaying.tryRelease();
    return ask(`${STOCK_URL}/quick`);
  },
  '/pressed': () => {
    setRepeated('user');
    return ask(`${STOCK_URL}/quick`);
  },
  '/hedged': () => hedge({ dependency: 'stock', afterMs: 20 }, () => ask(`${STOCK_URL}/slow`)),
  '/twice': () => recordDuplicate('recognised', 'prevented'),
  '/unsure': () => recordUnknown(`order-${unsure++}`),
  '/settled': () => reconcile(`order-${settled++}`, 'done'),
  '/aside': () => detach(() => ask(`${STOCK_URL}/quick`)),
  '/restored': () => mode.exit(),
  '/degraded': () => {
    mode.enter();
    mode.answer();
  },
  '/full': () => {
    shed('memory');
    throw new Error('full');
  },
};

async function answer(request, response) {
  try {
    await PATHS[request.url]?.();
  } catch {
    response.statusCode = 503;
  }
  response.end();
}

const gate = admission({ name: 'counter', limit: 1, queue: { size: 2, maxAgeMs: 10_000 } });
const held = gate.handler(async (request, response) => {
  await sleep(Number(request.headers['x-hold-ms']));
  response.end();
});

const server = http.createServer((request, response) => {
  if (request.url === '/hold') held(request, response);
  else void answer(request, response);
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
