// A plain server and nothing else; its uploads are read to the end.
import http from 'node:http';

const server = http.createServer((request, response) => {
  request.resume();
  if (request.url === '/upload') request.on('end', () => response.end('read'));
  else response.end('ok');
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
