// A service that answers after 300 ms and ends in the way its argument names.
import { createServer } from 'node:http';

const [, , ending] = process.argv;
const server = createServer((_request, response) => {
  // No connection is kept, so that closing waits for requests only.
  response.setHeader('connection', 'close');
  setTimeout(() => response.end('done'), 300);
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
const close = (after) => {
  server.close(after);
  server.closeIdleConnections();
};
const onRequest = (work) => server.once('request', (_request, response) => response.once('close', work));

if (ending === 'close') onRequest(() => close());
if (ending === 'exit') onRequest(() => process.exit(3));
if (ending === 'exitCode') {
  onRequest(() => {
    process.exitCode = 4;
    close();
  });
}
if (ending === 'throw') {
  onRequest(() => {
    throw new Error('a fault of the service');
  });
}
if (ending === 'graceful') process.on('SIGTERM', () => close(() => process.exit(5)));
if (ending === 'once') process.once('SIGINT', () => close(() => console.log('closed')));
if (ending === 'ignore') {
  process.on('SIGTERM', () => console.log('not now'));
  setTimeout(() => process.exit(6), 1500);
}
if (ending === 'late') setTimeout(() => process.on('SIGTERM', () => process.exit(7)), 200);
