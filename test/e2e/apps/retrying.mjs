// A service that repeats its call with the guard, for as long as the guard lets it. What its caller gets is the last
// answer of the dependency itself.
import http from 'node:http';
import { backoff, mayRetry } from 'otel-time-budget/retry';

const { NEXT_URL } = process.env;
const WAIT_MS = 40;

async function ask() {
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(NEXT_URL);
    const text = await response.text();
    if (response.ok) return { status: 200, text };
    const answer = mayRetry({
      dependency: 'stock',
      error: response,
      attempt,
      maxAttempts: 1_000,
      backoffMs: WAIT_MS,
    });
    if (!answer.isAllowed || !(await backoff(answer))) return { status: response.status, text };
  }
}

const server = http.createServer(async (_request, response) => {
  const { status, text } = await ask();
  response.statusCode = status;
  response.end(text);
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
