// Calls through undici as a package, in each version that is in use.
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import { PassThrough } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { rejection } from './journal.mjs';

async function read(log, { statusCode, headers, body, trailers }) {
  log(statusCode, JSON.stringify(headers), await body.text(), JSON.stringify(trailers));
}

function dispatcherEvents(log, dispatcher) {
  for (const event of ['connect', 'disconnect', 'connectionError', 'drain']) {
    dispatcher.on(event, (_origin, _targets, error) => log(event, error?.code ?? ''));
  }
  return dispatcher;
}

const perVersion = {
  request: async ({ log, url, undici }) => {
    const agent = new undici.Agent();
    await read(log, await undici.request(`${url}/ok`, { dispatcher: agent, headers: { 'X-A': '1' } }));
    await read(
      log,
      await undici.request(`${url}/ok`, {
        dispatcher: agent,
        headers: ['X-A', '1', 'time-budget', 'remaining=1'],
      }),
    );
    await read(
      log,
      await undici.request(`${url}/trailers`, { dispatcher: agent, method: 'POST', body: 'x' }),
    );
    await agent.close();
  },
  'a pool of one connection': async ({ log, url, undici }) => {
    const pool = dispatcherEvents(log, new undici.Pool(url, { connections: 1, pipelining: 1 }));
    await Promise.all(
      [1, 2, 3].map(async (i) => read(log, await pool.request({ path: `/slow?${i}`, method: 'GET' }))),
    );
    log(JSON.stringify(pool.stats));
    await pool.close();
  },
  'a pool with someone who gives up': async ({ log, url, undici }) => {
    const pool = new undici.Pool(url, { connections: 1 });
    const first = pool.request({ path: '/slow', method: 'GET' });
    const controller = new AbortController();
    const second = rejection(pool.request({ path: '/ok?2', method: 'GET', signal: controller.signal }));
    const third = pool.request({ path: '/ok?3', method: 'GET' });
    await nextTurn();
    controller.abort();
    await read(log, await first);
    log(await second);
    await read(log, await third);
    await pool.destroy();
    log(await rejection(pool.request({ path: '/ok', method: 'GET' })));
  },
  'a client with pipelining': async ({ log, url, undici }) => {
    const client = new undici.Client(url, { pipelining: 3 });
    const all = [1, 2, 3].map((i) => client.request({ path: `/ok?${i}`, method: 'GET' }));
    const texts = await Promise.all(all.map(async (answer) => (await answer).body.text()));
    log(texts.join());
    await client.close();
  },
  'a client that is destroyed': async ({ log, url, undici }) => {
    const client = dispatcherEvents(log, new undici.Client(url));
    const connected = once(client, 'connect');
    const pending = rejection(client.request({ path: '/hang', method: 'GET' }));
    const queued = rejection(client.request({ path: '/ok', method: 'GET' }));
    await connected;
    await nextTurn();
    await client.destroy(new Error('going down'));
    log(await pending, await queued);
  },
  stream: async ({ log, url, undici }) => {
    const agent = new undici.Agent();
    const target = new PassThrough();
    const over = target.toArray();
    await undici.stream(`${url}/ok`, { dispatcher: agent, opaque: { target } }, ({ statusCode, opaque }) => {
      log(statusCode);
      return opaque.target;
    });
    log(Buffer.concat(await over).toString());
    await agent.close();
  },
  pipeline: async ({ log, url, undici }) => {
    const agent = new undici.Agent();
    const duplex = undici.pipeline(
      `${url}/ok`,
      { dispatcher: agent, method: 'PUT' },
      ({ statusCode, body }) => {
        log(statusCode);
        return body;
      },
    );
    duplex.end('through');
    log(Buffer.concat(await duplex.toArray()).toString());
    await agent.close();
  },
  fetch: async ({ log, url, undici }) => {
    const agent = new undici.Agent();
    const response = await undici.fetch(`${url}/redirect`, { dispatcher: agent });
    log(response.status, response.redirected, await response.text());
    await agent.close();
  },
  errors: async ({ log, url, closedUrl, undici }) => {
    // One connection: who gets which is no matter of chance then.
    const agent = dispatcherEvents(log, new undici.Agent({ connections: 1 }));
    const get = (path, options) => undici.request(`${url}${path}`, { dispatcher: agent, ...options });
    await read(log, await get('/ok'));
    log(await rejection(get('/hang', { signal: AbortSignal.timeout(50) })));
    for (const path of ['/reset', '/close', '/malformed']) log(await rejection(get(path)));
    for (const path of ['/reset-half', '/close-half', '/bad-chunk']) {
      log(await rejection(get(path).then(({ body }) => body.text())));
    }
    log(await rejection(undici.request(closedUrl, { dispatcher: agent })));
    log(await rejection(get('/ok', { signal: AbortSignal.abort(new Error('before')) })));
    log(await rejection(get('/ok', { headers: { 'x-a': 'a\nb' } })));
    log(await rejection(get('/ok', { method: 'POST', body: 'abc', headers: { 'content-length': '2' } })));
    const { body } = await get('/half');
    body.on('error', () => {});
    body.destroy();
    await agent.destroy();
  },
  limits: async ({ log, url, undici }) => {
    const agent = new undici.Agent({ headersTimeout: 100, bodyTimeout: 100 });
    const [head, body] = await Promise.all([
      rejection(undici.request(`${url}/hang`, { dispatcher: agent })),
      rejection(undici.request(`${url}/half`, { dispatcher: agent }).then((answer) => answer.body.text())),
    ]);
    log(head);
    log(body);
    await agent.destroy();
  },
  interceptors: async ({ log, url, undici }) => {
    const { redirect, retry } = undici.interceptors;
    const seen = (dispatch) => (options, handler) => {
      log('dispatch', options.method, options.path, JSON.stringify(options.headers ?? null));
      return dispatch({ ...options, headers: { ...options.headers, 'x-seen': '1' } }, handler);
    };
    const agent = new undici.Agent({ connections: 1 }).compose(
      seen,
      redirect({ maxRedirections: 3 }),
      retry({ maxRetries: 2, minTimeout: 1, maxTimeout: 2 }),
    );
    await read(log, await undici.request(`${url}/redirect`, { dispatcher: agent }));
    log(await rejection(undici.request(`${url}/503`, { dispatcher: agent })));
    await agent.close();
  },
  mocks: async ({ log, url, undici }) => {
    const agent = new undici.MockAgent();
    agent.disableNetConnect();
    agent
      .get(url)
      .intercept({ path: '/mocked', headers: (headers) => log('mock sees', JSON.stringify(headers)) ?? true })
      .reply(200, 'from the mock');
    await read(log, await undici.request(`${url}/mocked`, { dispatcher: agent, headers: { 'x-a': '1' } }));
    log(await rejection(undici.request(`${url}/not-mocked`, { dispatcher: agent })));
    agent.assertNoPendingInterceptors();
    await agent.close();
  },
  'own storage': async ({ log, url, undici }) => {
    const own = new AsyncLocalStorage();
    const pool = new undici.Pool(url, { connections: 1 });
    await Promise.all(
      ['a', 'b', 'c'].map((value) =>
        own.run(value, async () => {
          const { body } = await pool.request({ path: '/ok', method: 'GET' });
          log(value, own.getStore());
          body.on('end', () => log('end', value));
          await body.text();
          log(value, own.getStore());
        }),
      ),
    );
    await pool.close();
  },
};

export const undiciScenes = Object.fromEntries(
  ['6', '7', '8'].flatMap((version) =>
    Object.entries(perVersion).map(([name, scene]) => [
      `undici ${version}: ${name}`,
      (o) => scene({ ...o, undici: o.undici[version] }),
    ]),
  ),
);

undiciScenes['undici 8: as the global dispatcher'] = async ({ log, url, undici }) => {
  const undici8 = undici['8'];
  const before = undici8.getGlobalDispatcher();
  const agent = new undici8.Agent({ connections: 1 });
  undici8.setGlobalDispatcher(agent);
  const answers = await Promise.all([1, 2].map((i) => fetch(`${url}/slow?${i}`).then((r) => r.text())));
  log(answers.join());
  undici8.setGlobalDispatcher(before);
  await agent.close();
  log(await (await fetch(`${url}/ok`)).text());
};

undiciScenes['undici 8: mocks for fetch'] = async ({ log, url, undici }) => {
  const undici8 = undici['8'];
  const before = undici8.getGlobalDispatcher();
  const agent = new undici8.MockAgent();
  agent.disableNetConnect();
  agent.get(url).intercept({ path: '/mocked', method: 'POST' }).reply(201, { mocked: true });
  undici8.setGlobalDispatcher(agent);
  const response = await fetch(`${url}/mocked`, { method: 'POST', body: 'x' });
  log(response.status, await response.text());
  log(await rejection(fetch(`${url}/other`)));
  undici8.setGlobalDispatcher(before);
  await agent.close();
};
