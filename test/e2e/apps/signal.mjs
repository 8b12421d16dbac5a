// A service that uses the API of the package: the signal of the request's budget.
import { getEventListeners } from 'node:events';
import http from 'node:http';
import { signal } from '../../../dist/src/index.js';

const warnings = [];
process.on('warning', ({ message }) => warnings.push(message));

/** Listeners of many calls on one signal: while they run, and afterwards. */
async function share(given) {
  const calls = Array.from({ length: 200 }, (_, i) =>
    fetch(`${process.env.NEXT_URL}/${i % 10}`, { signal: given }).then((response) => response.text()),
  );
  await Promise.all(calls);
  return getEventListeners(given, 'abort').length;
}

const server = http.createServer(async (request, response) => {
  if (request.url === '/until-signal') {
    const given = signal();
    if (!given.aborted)
      await new Promise((resolve) => given.addEventListener('abort', resolve, { once: true }));
    response.end(given.reason.code);
    return;
  }
  const ofBudget = await share(signal());
  const own = await share(new AbortController().signal);
  await new Promise((resolve) => setImmediate(resolve));
  response.end(JSON.stringify({ ofBudget, own, warnings }));
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
