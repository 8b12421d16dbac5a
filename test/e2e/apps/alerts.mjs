// A service that gets into every situation an alert is about, as its requests say. DEPENDENCIES has the addresses of
// its dependencies by name. It knows nothing of metrics; it asks the retry guard, has a gate and two degraded modes.
import { setTimeout as sleep } from 'node:timers/promises';
import { ConsecutiveBreaker, circuitBreaker, handleAll } from 'cockatiel';
import express from 'express';
import { admission, degradedMode } from 'otel-time-budget/admission';
import { reconcile, recordUnknown } from 'otel-time-budget/recovery';
import { mayRetry, watchCockatielBreaker } from 'otel-time-budget/retry';

const dependencies = JSON.parse(process.env.DEPENDENCIES);
const [limit, size, maxAgeMs] = (process.env.GATE ?? '100 1 1000').split(' ').map(Number);
const gate = admission({ name: 'front', limit, queue: { size, maxAgeMs } });
const modes = {
  stale: degradedMode('stale', { nonDegradable: ['GET /pay'] }),
  brief: degradedMode('brief', {}),
};
const breakers = Object.fromEntries(
  ['fragile', 'wavering'].map((name) => {
    const breaker = circuitBreaker(handleAll, { halfOpenAfter: 200, breaker: new ConsecutiveBreaker(3) });
    return [name, watchCockatielBreaker(name, breaker)];
  }),
);

async function call(name, options) {
  const answer = await fetch(`${dependencies[name]}/items`, options);
  await answer.arrayBuffer();
  return answer.status;
}

const app = express();

// One call, within a limit of its own unless it is told to have none. Its failure is the service's.
app.get('/plain/:name', async (request, response) => {
  const unlimited = request.query.limit === 'none';
  const status = await call(request.params.name, unlimited ? {} : { signal: AbortSignal.timeout(30_000) });
  response.sendStatus(status);
});

// As it was written before anybody knew of budgets.
app.get('/loop/:name', async (request, response) => {
  let status = 503;
  for (let attempt = 1; attempt <= 3 && status >= 500; attempt++) status = await call(request.params.name);
  response.sendStatus(status);
});

// Asks before it repeats, and can do without the answer.
app.get('/guarded/:name', async (request, response) => {
  const dependency = request.params.name;
  let status = await call(dependency);
  if (status >= 500) {
    const error = Object.assign(new Error(String(status)), { response: { status } });
    const { isAllowed } = mayRetry({ dependency, error, attempt: 1, maxAttempts: 2 });
    if (isAllowed) status = await call(dependency);
  }
  response.sendStatus(200);
});

// Computes for so long before it asks anybody.
app.get('/thinks/:ms', async (request, response) => {
  await sleep(Number(request.params.ms));
  response.sendStatus(await call('stock'));
});
app.get('/glances/:ms', async (request, response) => {
  await sleep(Number(request.params.ms));
  response.sendStatus(await call('stock'));
});

app.get('/gated', gate.express, async (_request, response) => {
  response.sendStatus(await call('vault'));
});

app.get('/limited', (request, response) => response.sendStatus(Number(request.query.status)));

app.get('/breaker/:name', async (request, response) => {
  const { name } = request.params;
  const work = async () => {
    if ((await call(name)) >= 500) throw new Error(name);
  };
  await breakers[name].execute(work).catch(() => undefined);
  response.sendStatus(200);
});

app.get('/modes/:name/:change', (request, response) => {
  modes[request.params.name][request.params.change]();
  response.sendStatus(200);
});
app.get('/pay', (_request, response) => {
  modes.stale.answer({ isPartial: true });
  response.sendStatus(200);
});

// A commit whose answer was lost, and what was found out about it.
app.get('/commits/:name/:key', (request, response) => {
  const { name, key } = request.params;
  if (name === 'unknown') recordUnknown(key);
  else reconcile(key, 'done');
  response.sendStatus(200);
});

const server = app.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
