// Services with somebody else's limiter, which know nothing of any telemetry. LIMITER says whose.
import http from 'node:http';

const limiters = {
  // Five requests a minute, before the routes and in one.
  async 'express-rate-limit'() {
    const { default: express } = await import('express');
    const { rateLimit } = await import('express-rate-limit');
    const limit = () => rateLimit({ windowMs: 60_000, limit: 5 });
    const app = express();
    app.use(
      '/all',
      limit(),
      express.Router().get('/:id', (_request, response) => response.send('ok')),
    );
    app.get('/one/:id', limit(), (_request, response) => response.send('ok'));
    app.get('/broken', (_request, response) => response.status(503).send('broken'));
    return http.createServer(app);
  },
  // Under pressure for good from its first look on; one route does not mind.
  async 'under-pressure'() {
    const { default: fastify } = await import('fastify');
    const { default: underPressure } = await import('@fastify/under-pressure');
    const app = fastify();
    await app.register(underPressure, { maxHeapUsedBytes: 1, sampleInterval: 10 });
    app.get('/work', async () => 'ok');
    app.get('/free', { config: { pressureHandler: () => undefined } }, async () => 'ok');
    await app.ready();
    return app.server;
  },
};

const server = await limiters[process.env.LIMITER]();
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
