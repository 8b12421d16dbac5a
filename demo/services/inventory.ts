/**
 * Stock of items. Knows nothing of time budgets: what is measured here comes from outside.
 *
 * GET /stock/:item            answers after its usual 120 ms
 *   ?inventory_ms=1000        takes that much longer, like a store that has become slow
 *   ?stall_ms=1000            sends its headers and half of the answer, then nothing for so long
 */
import { setTimeout as sleep } from 'node:timers/promises';
import express from 'express';

const USUAL_MS = 120;

const app = express();

app.get('/stock/:item', async (request, response) => {
  await sleep(USUAL_MS + Number(request.query.inventory_ms ?? 0));
  const answer = JSON.stringify({ item: request.params.item, available: 7 });
  const stallMs = Number(request.query.stall_ms ?? 0);
  response.setHeader('content-type', 'application/json');
  if (stallMs > 0) {
    response.write(answer.slice(0, 10));
    await sleep(stallMs);
    response.end(answer.slice(10));
    return;
  }
  response.end(answer);
});

app.listen(Number(process.env.PORT), process.env.HOST ?? '127.0.0.1', () => console.log('inventory is up'));
