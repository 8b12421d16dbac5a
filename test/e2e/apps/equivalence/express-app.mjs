// Everything that an Express service does with routes, errors and clients that leave, in versions 4 and 5.
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { log, tell, watch } from './journal.mjs';

const FILE = fileURLToPath(new URL('./file.txt', import.meta.url));

/** In `production` the page of an error does not show its stack. */
export function startExpress(express, http, version, env) {
  const app = express();
  app.set('env', env);
  const say = (request, ...words) => log(request.headers['x-scene'], ...words);
  app.use((request, response, next) => {
    const scene = request.headers['x-scene'];
    watch(scene, 'request', request, ['aborted', 'error', 'close']);
    watch(scene, 'response', response, ['finish', 'close']);
    response.on('finish', () =>
      say(request, 'routed', request.route?.path, request.baseUrl, request.originalUrl),
    );
    next();
  });
  app.param('id', (request, _response, next, id) => {
    say(request, 'param', id);
    next(id === 'bad' ? new RangeError('bad id') : undefined);
  });
  app.get('/items/:id', (request, response) =>
    response.json({ id: request.params.id, query: request.query }),
  );
  app.get(
    '/passing/:kind',
    function first(request, _response, next) {
      say(request, 'first');
      next(request.params.kind === 'route' ? 'route' : undefined);
    },
    [
      (request, _response, next) => {
        say(request, 'second');
        setTimeout(next, 5);
      },
      async (request, response) => {
        await null;
        response.send(`third of ${request.params.kind}`);
      },
    ],
  );
  app.get('/passing/:kind', (request, response) => response.send(`another route for ${request.params.kind}`));
  app.all(/^\/pattern\/(\d+)$/, (request, response) => response.send(`number ${request.params[0]}`));
  app
    .route('/chained')
    .all((_request, _response, next) => next())
    .get((_request, response) => response.sendStatus(202));
  app.post('/json', express.json({ limit: 100 }), (request, response) =>
    response.json({ body: request.body }),
  );
  app.post('/urlencoded', express.urlencoded({ extended: false }), (request, response) =>
    response.json(request.body),
  );
  app.get('/file', (_request, response) =>
    response.sendFile(FILE, { lastModified: false, cacheControl: false }),
  );
  app.get('/redirect', (_request, response) => response.redirect(301, '/items/1'));
  app.get('/cookie', (_request, response) =>
    response.cookie('a', 'b', { httpOnly: true }).type('txt').send('set'),
  );
  app.get('/stream', (_request, response) => {
    response.write('one ');
    setImmediate(() => response.end('two'));
  });
  app.get('/throws', () => {
    throw new TypeError('thrown');
  });
  app.get('/throws-late', (_request, response) => {
    response.write('half');
    throw new Error('after the head');
  });
  app.get('/passes-error', (_request, _response, next) =>
    next(Object.assign(new Error('passed on'), { status: 418 })),
  );
  app.get('/passes-text', (_request, _response, next) => next('not a route'));
  app.get('/sends-twice', (request, response) => {
    response.send('first');
    try {
      response.send('second');
    } catch (error) {
      say(request, tell(error));
    }
  });
  app.get('/slow', async (request, response) => {
    say(request, 'started');
    await once(response, 'close');
    say(request, 'goes on', response.writableEnded, response.destroyed);
    response.send('to nobody');
  });
  app.get(
    '/slow-middleware',
    (request, response, next) => {
      say(request, 'started');
      response.once('close', () => setImmediate(next));
    },
    (request, response) => {
      say(request, 'handler runs', response.writableEnded);
      response.end();
    },
  );
  if (version === 5) {
    app.get('/rejects', async () => {
      await null;
      throw new TypeError('rejected');
    });
    app.get('/rejects-nothing', () => Promise.reject());
    // biome-ignore lint/suspicious/noThenProperty: some handlers return what is none of Node's promises
    app.get('/returns-thenable', (_request, response) => ({ then: () => response.send('a thenable') }));
  }

  const inner = express.Router({ mergeParams: true });
  inner.use((request, _response, next) => {
    say(request, 'inner', request.baseUrl, request.url, JSON.stringify(request.params));
    next(request.url === '/leave' ? 'router' : undefined);
  });
  inner.get('/detail/:id', (request, response) => response.json(request.params));
  inner.get('/throws', () => {
    throw new Error('inside');
  });
  app.use(['/tenants/:tenant', '/t/:tenant'], inner);
  const sub = express();
  sub.on('mount', () => log('mounted', sub.mountpath));
  sub.get('/hello', (request, response) =>
    response.send(`${request.baseUrl} ${request.originalUrl} ${sub.path()}`),
  );
  sub.get('/fails', () => {
    throw new Error('of the sub-app');
  });
  sub.use((error, _request, response, _next) => response.status(502).send(`sub-app: ${tell(error)}`));
  app.use('/sub', sub);
  app.use('/static', express.static(fileURLToPath(new URL('.', import.meta.url)), { lastModified: false }));

  app.get('/page', () => {
    throw new Error('shown on a page');
  });
  app.use((error, request, response, next) => {
    say(request, 'error middleware', tell(error), response.headersSent);
    if (response.headersSent || request.url === '/page') return next(error);
    response.status(error.status ?? 500).send(`caught ${tell(error)}`);
  });
  // What a look at the routes shows.
  const names = (stack) =>
    stack.map(({ name, route, handle }) => [
      name,
      handle.name,
      handle.length,
      route?.path && String(route.path),
      route && names(route.stack),
    ]);
  log(`stack of express ${version}`, JSON.stringify(names((version === 5 ? app.router : app._router).stack)));
  return http.createServer(app);
}
