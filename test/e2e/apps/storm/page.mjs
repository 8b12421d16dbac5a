// The outer service: it has a retry policy of its own, and its page a button to try again.
import http from 'node:http';
import { setRepeated } from 'otel-time-budget';
import { backoff, mayRetry } from 'otel-time-budget/retry';

const { NEXT_URL } = process.env;
const MAX_ATTEMPTS = 2;

async function ask(path) {
  const response = await fetch(NEXT_URL + path);
  await response.text();
  if (!response.ok) throw Object.assign(new Error(`status: ${response.status}`), { response });
}

async function askAgain(path) {
  for (let attempt = 1; ; attempt++) {
    try {
      return await ask(path);
    } catch (error) {
      const backoffMs = 40 + 20 * Math.random();
      const answer = mayRetry({
        dependency: 'status',
        error,
        attempt,
        maxAttempts: MAX_ATTEMPTS,
        backoffMs,
      });
      if (!answer.isAllowed || !(await backoff(answer))) throw error;
    }
  }
}

const server = http.createServer(async (request, response) => {
  // What the button of the page sends; the browser knows nothing of budgets.
  if (request.headers['x-pressed-again'] !== undefined) setRepeated('user');
  try {
    await askAgain(request.url);
    response.end('ok');
  } catch {
    response.statusCode = 503;
    response.end();
  }
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
