// A service with a degraded mode, declared in the configuration file: when its dependency fails too often it answers
// from what it knows, until the dependency is asked for its health by hand. `/pay` must never do that.
import http from 'node:http';
import { degradedMode } from 'otel-time-budget/admission';

const mode = degradedMode('cached-prices');
let known = 'none yet';

function ask(path) {
  return new Promise((resolve, reject) => {
    const request = http.get(process.env.NEXT_URL + path, (response) => {
      response.resume();
      response.on('end', () =>
        response.statusCode === 200 ? resolve('fresh') : reject(new Error('failed')),
      );
    });
    request.on('error', reject);
  });
}

const server = http.createServer(async (request, response) => {
  if (request.url === '/price' && mode.isActive()) {
    mode.answer({ ageMs: 60_000 });
    response.end(`known: ${known}`);
    return;
  }
  // One that does what it must not.
  if (request.url === '/pay?careless') {
    mode.answer();
    response.end('taken on trust');
    return;
  }
  if (request.url === '/pay' && mode.isActive()) throw new Error('never');
  try {
    known = await ask(request.url);
    response.end(known);
  } catch {
    response.statusCode = 502;
    response.end('failed');
  }
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
