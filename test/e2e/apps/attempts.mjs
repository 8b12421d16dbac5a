// One tier of a chain, on plain node:http, with a retry loop written by hand. Knows nothing of any telemetry.
// ATTEMPTS in all, the first included. Without NEXT_URL it is the bottom, which never works.
import http from 'node:http';

const { ATTEMPTS, CLIENT, NEXT_URL } = process.env;
let arrivals = 0;

async function ask(path) {
  if (CLIENT === 'fetch') return (await fetch(NEXT_URL + path)).status;
  return new Promise((resolve, reject) => {
    const request = http.get(NEXT_URL + path, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
    });
    request.on('error', reject);
  });
}

async function askAgain(path) {
  let status = 503;
  for (let attempt = 1; attempt <= Number(ATTEMPTS) && status >= 500; attempt++) status = await ask(path);
  return status;
}

const server = http.createServer(async (request, response) => {
  arrivals++;
  response.statusCode = NEXT_URL === undefined ? 503 : await askAgain(request.url);
  response.end(String(response.statusCode));
});
process.on('SIGUSR2', () => console.log(`arrivals ${arrivals}.`));
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
