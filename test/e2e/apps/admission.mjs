// One service behind a gate, by SERVER on Express, Fastify or plain node:http. Its work is a call to NEXT_URL, which
// goes on when the client leaves. Says what it was asked and what it let in, as it counts it itself.
import http from 'node:http';
import { admission } from 'otel-time-budget/admission';

const { SERVER, NEXT_URL, LIMIT, QUEUE } = process.env;
const [size, maxAgeMs] = (QUEUE ?? '0 0').split(' ').map(Number);
const gate = admission({
  name: 'front',
  limit: Number(LIMIT),
  ...(size > 0 && { queue: { size, maxAgeMs } }),
});
const seen = { asked: 0, worked: 0 };

function ask(path) {
  return new Promise((resolve, reject) => {
    const request = http.get(NEXT_URL + path, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.on('end', () => resolve(text));
    });
    request.on('error', reject);
  });
}

async function work(request, response) {
  seen.worked++;
  const text = await ask(request.url);
  response.end(text);
}

const servers = {
  async plain() {
    return http.createServer(gate.handler(work));
  },
  async express() {
    const { default: express } = await import('express');
    const app = express();
    app.use(gate.express);
    app.get('/work/:id', work);
    return http.createServer(app);
  },
  async 'express-route'() {
    const { default: express } = await import('express');
    const app = express();
    app.get('/work/:id', gate.express, work);
    return http.createServer(app);
  },
  async fastify() {
    const { default: fastify } = await import('fastify');
    const app = fastify();
    app.addHook('onRequest', gate.fastify);
    app.get('/work/:id', async (request) => {
      seen.worked++;
      return ask(request.url);
    });
    await app.ready();
    return app.server;
  },
};

const server = await servers[SERVER]();
server.prependListener('request', (request, response) => {
  seen.asked++;
  // A timeout of the service's own, which knows of no gate.
  if (request.url === '/work/late') setTimeout(() => response.writeHead(503).end('too late'), 80);
});
process.on('SIGUSR2', () => console.log(`seen ${JSON.stringify(seen)}.`));
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
