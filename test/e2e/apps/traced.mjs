// A service that passes each request on to BACK_URL and answers as that did: `/repeated` twice where the first attempt
// fails. Knows nothing of any telemetry.
import http from 'node:http';

async function ask(path) {
  const response = await fetch(process.env.BACK_URL + path);
  await response.arrayBuffer();
  return response.status;
}

async function askAgain(path) {
  const status = await ask(path);
  return status === 503 ? ask(path) : status;
}

const server = http.createServer(async (request, response) => {
  try {
    response.statusCode = request.url === '/repeated' ? await askAgain('/flaky') : await ask(request.url);
  } catch {
    response.statusCode = 502;
  }
  response.end();
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
