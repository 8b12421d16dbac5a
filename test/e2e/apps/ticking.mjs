// A dependency of fixed capacity: every TICK_MS it serves at most CAPACITY of those that wait, in the order of arrival.
// It counts in ticks in which it served anything, so that a busy machine makes it slower and not smaller.
import http from 'node:http';

const { CAPACITY, TICK_MS } = process.env;
const waiting = [];
let counts = { served: 0, ticks: 0, most: 0 };

const server = http.createServer((request, response) => {
  if (request.url === '/counts') {
    response.end(JSON.stringify(counts));
    counts = { served: 0, ticks: 0, most: 0 };
    return;
  }
  waiting.push(response);
  counts.most = Math.max(counts.most, waiting.length);
});
setInterval(() => {
  const batch = waiting.splice(0, Number(CAPACITY));
  if (batch.length === 0) return;
  counts.ticks++;
  counts.served += batch.length;
  for (const response of batch) response.end('served');
}, Number(TICK_MS));
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
