// A dependency that counts its arrivals and how many it works on at a time. It answers when it is told, by `/open` of
// its second server, or HOLD_MS after the arrival. `/fail` of that server makes it answer 500 until `/heal`.
import http from 'node:http';

const HOLD_MS = Number(process.env.HOLD_MS ?? Number.POSITIVE_INFINITY);
const held = new Set();
const state = { arrivals: 0, working: 0, most: 0 };
let isFailing = false;

const server = http.createServer((request, response) => {
  state.arrivals++;
  if (isFailing) {
    response.writeHead(500).end();
    return;
  }
  state.working++;
  state.most = Math.max(state.most, state.working);
  const answer = () => {
    if (!held.delete(answer)) return;
    state.working--;
    response.end(`${request.headers['time-budget'] ?? ''}`);
  };
  held.add(answer);
  if (HOLD_MS < Number.POSITIVE_INFINITY) setTimeout(answer, HOLD_MS);
});
const control = http.createServer((request, response) => {
  if (request.url === '/open') for (const answer of [...held]) answer();
  if (request.url === '/fail') isFailing = true;
  if (request.url === '/heal') isFailing = false;
  response.end(JSON.stringify(state));
});
control.listen(0, '127.0.0.1', () => {
  console.log(`control on ${control.address().port}`);
  server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
});
