// A service that asks its dependency through a circuit breaker. A caller that is blocked waits as long as it was told
// and asks again. Knows nothing of any telemetry but the breaker that it has watched.
import http from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel';
import CircuitBreaker from 'opossum';
import { watchCockatielBreaker, watchOpossumBreaker } from 'otel-time-budget/retry';

const { BREAKER, NEXT_URL } = process.env;
const OPEN_MS = 50;

async function ask() {
  const response = await fetch(NEXT_URL);
  await response.text();
  if (!response.ok) throw new Error(`stock: ${response.status}`);
}

function makeAsk() {
  if (BREAKER === 'cockatiel') {
    const options = { halfOpenAfter: OPEN_MS, breaker: new ConsecutiveBreaker(1) };
    const breaker = watchCockatielBreaker('stock', circuitBreaker(handleAll, options));
    return () => breaker.execute(ask);
  }
  const options = { resetTimeout: OPEN_MS, timeout: false, errorThresholdPercentage: 1 };
  const breaker = watchOpossumBreaker('stock', new CircuitBreaker(ask, options));
  return () => breaker.fire();
}

const askThrough = makeAsk();
let inside = 0;

const server = http.createServer(async (request, response) => {
  if (request.url === '/inside') {
    response.end(String(inside));
    return;
  }
  const waitMs = Number(request.headers['x-wait-ms'] ?? 0);
  inside++;
  for (;;) {
    try {
      await askThrough();
      response.statusCode = 200;
      break;
    } catch (error) {
      response.statusCode = 503;
      const isBlocked = error.code === 'EOPENBREAKER' || error.isBrokenCircuitError === true;
      if (waitMs === 0 || !isBlocked) break;
      await sleep(waitMs);
    }
  }
  inside--;
  response.end();
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
