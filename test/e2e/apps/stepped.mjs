// The same work behind gates of different limits: `/limit/4` is let in four at a time.
import http from 'node:http';
import { admission } from 'otel-time-budget/admission';

const queue = { size: 1_000, maxAgeMs: 60_000 };
const gates = new Map(
  process.env.LIMITS.split(',').map((limit) => [
    `/limit/${limit}`,
    admission({ name: `limit-${limit}`, limit: Number(limit), queue }).handler(work),
  ]),
);

function work(_request, response) {
  return new Promise((resolve) => {
    http.get(process.env.NEXT_URL, (answer) => {
      answer.resume();
      answer.on('end', () => {
        response.end('done');
        resolve();
      });
    });
  });
}

const server = http.createServer((request, response) => gates.get(request.url)(request, response));
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
