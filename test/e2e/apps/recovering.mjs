// A dependency that is down, then holds what comes, then works: told by signals. Says when its requests came.
import http from 'node:http';

let state = 'down';
let held = [];
const arrivals = [];

function answer(response) {
  response.statusCode = state === 'up' ? 200 : 503;
  response.end(state);
}

const server = http.createServer((request, response) => {
  request.resume();
  arrivals.push(performance.now());
  if (state === 'held') held.push(response);
  else answer(response);
});
process.on('SIGUSR1', () => {
  state = 'held';
  console.log('holding.');
});
process.on('SIGUSR2', () => {
  state = 'up';
  for (const response of held) answer(response);
  held = [];
});
process.on('SIGHUP', () => console.log(`arrivals ${JSON.stringify(arrivals)}.`));
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
