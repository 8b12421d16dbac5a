// A service with two workers that share a port.
import cluster from 'node:cluster';
import { createServer } from 'node:http';

if (cluster.isPrimary) {
  let listening = 0;
  cluster.on('listening', (_worker, { port }) => {
    listening++;
    console.log(`listening on ${port}`);
    if (listening === 2) setTimeout(() => console.log('2 workers listen'), 200);
  });
  for (let i = 0; i < 2; i++) cluster.fork();
} else {
  process.on('disconnect', () => process.exit());
  createServer((_request, response) => response.end('done')).listen(0, '127.0.0.1');
}
