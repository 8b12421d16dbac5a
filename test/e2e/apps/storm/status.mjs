// The order-status service: its client library repeats.
import http from 'node:http';
import got from 'got';
import { guardGotDelay } from 'otel-time-budget/retry';

const { NEXT_URL } = process.env;

const jitter = ({ computedValue }) => (computedValue > 0 ? 20 + 20 * Math.random() : 0);
const client = got.extend({
  timeout: { request: 400 },
  retry: { limit: 2, calculateDelay: guardGotDelay({ dependency: 'stock' }, jitter) },
});

const server = http.createServer(async (request, response) => {
  try {
    await client(NEXT_URL + request.url).text();
    response.end('ok');
  } catch {
    response.statusCode = 503;
    response.end();
  }
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
