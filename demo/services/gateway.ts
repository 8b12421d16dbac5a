/**
 * The edge: hands requests on to orders. Knows nothing of time budgets.
 *
 * GET /orders/:id             what orders says
 *   ?fresh_timeout_ms=2000    gives orders so much time, whatever is left of the caller's
 */
import express from 'express';

const ORDERS_URL = process.env.ORDERS_URL;

const app = express();

app.get('/orders/:id', async (request, response) => {
  const freshMs = Number(request.query.fresh_timeout_ms ?? 0);
  const limits =
    freshMs > 0
      ? { headers: { 'x-request-timeout-ms': String(freshMs) }, signal: AbortSignal.timeout(freshMs) }
      : {};
  const answer = await fetch(new URL(request.originalUrl, ORDERS_URL), limits);
  const body = await answer.text();
  response.status(answer.status).type('json').send(body);
});

app.listen(Number(process.env.PORT), process.env.HOST ?? '127.0.0.1', () => console.log('gateway is up'));
