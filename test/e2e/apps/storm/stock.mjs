// A dependency that does a few things at a time and queues the rest. It does not notice that a client has left, so
// what was given up on takes its turn like everything else. SIGUSR2 makes it slow, and quick again.
import http from 'node:http';

const PLACES = 2;
const QUICK_MS = 40;
const SLOW_MS = 400;

let free = PLACES;
let workMs = QUICK_MS;
const waiting = [];

function next() {
  while (free > 0 && waiting.length > 0) {
    const response = waiting.shift();
    free--;
    setTimeout(() => {
      free++;
      response.end('in stock');
      next();
    }, workMs);
  }
}

process.on('SIGUSR2', () => {
  workMs = workMs === QUICK_MS ? SLOW_MS : QUICK_MS;
  console.log(`works ${workMs} ms.`);
});

const server = http.createServer((_request, response) => {
  waiting.push(response);
  next();
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
