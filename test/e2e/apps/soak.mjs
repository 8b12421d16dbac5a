// A service that answers, calls on in two ways, is slow on request, and tells how much of itself there is.
// It knows nothing of any telemetry.
import http from 'node:http';

const UPSTREAM = process.env.STOCK_URL;

function callByHttp() {
  return new Promise((resolve, reject) => {
    http
      .get(`${UPSTREAM}/by-http`, (response) => {
        response.resume();
        response.once('end', resolve);
      })
      .once('error', reject);
  });
}

async function answer(path, response) {
  if (path.startsWith('/fetch')) await (await fetch(`${UPSTREAM}/by-fetch`)).text();
  else if (path.startsWith('/http')) await callByHttp();
  else if (path.startsWith('/slow')) await new Promise((done) => setTimeout(done, 20));
  response.end('ok');
}

let requests = 0;
const server = http.createServer((request, response) => {
  requests++;
  if (request.url === '/self') {
    for (let i = 0; i < 3; i++) globalThis.gc();
    const counts = {};
    for (const name of process.getActiveResourcesInfo()) counts[name] = (counts[name] ?? 0) + 1;
    const listeners = [server, process, request.socket].map((emitter) =>
      emitter.eventNames().reduce((sum, name) => sum + emitter.listenerCount(name), 0),
    );
    response.end(
      JSON.stringify({
        requests,
        heapUsed: process.memoryUsage().heapUsed,
        timers: counts.Timeout ?? 0,
        listeners,
      }),
    );
    return;
  }
  answer(request.url, response).catch(() => response.destroy());
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
