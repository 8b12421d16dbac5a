// Keeps its loop busy for as long as it is asked, or holds a request until the next one to `/open`.
import http from 'node:http';

let held = [];
const server = http.createServer((request, response) => {
  const [path, ms] = request.url.split('?');
  if (path === '/hold') {
    held.push(response);
    return;
  }
  if (path === '/open') {
    for (const each of held) each.end();
    held = [];
  }
  const until = performance.now() + Number(ms ?? 0);
  while (performance.now() < until);
  response.end();
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
