// Calls through node:http, in every way that an application makes them and lets go of them.
import { AsyncLocalStorage } from 'node:async_hooks';
import { once } from 'node:events';
import net from 'node:net';
import { PassThrough, pipeline, Readable } from 'node:stream';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { rejection, tell, watch } from './journal.mjs';

const REQUEST_EVENTS = [
  'socket',
  'finish',
  'response',
  'timeout',
  'abort',
  'error',
  'close',
  'continue',
  'information',
  'upgrade',
  'drain',
];
const RESPONSE_EVENTS = ['end', 'aborted', 'error', 'close'];

/** One request to its end, with all of its events. */
function play({ log, scene }, request, { body, onResponse = (response) => response.resume() } = {}) {
  watch(scene, 'request', request, REQUEST_EVENTS);
  request.on('response', (response) => {
    watch(scene, 'response', response, RESPONSE_EVENTS);
    const { statusCode, statusMessage, rawHeaders, httpVersion } = response;
    log(statusCode, statusMessage, httpVersion, JSON.stringify(rawHeaders), request.reusedSocket);
    onResponse(response, request);
  });
  if (body !== null) request.end(body);
  return new Promise((resolve) => request.once('close', () => setImmediate(resolve)));
}

function text(log) {
  return (response) => {
    let all = '';
    response.setEncoding('utf8').on('data', (piece) => {
      all += piece;
    });
    response.on('end', () => log('body', all, JSON.stringify(response.rawTrailers), response.complete));
  };
}

/** A request that is over as soon as its answer has come. */
async function get({ log, http }, url, options = {}) {
  const request = http.get(url, options);
  const [response] = await once(request, 'response');
  const pieces = await response.toArray();
  log(response.statusCode, Buffer.concat(pieces).toString(), 'reused', request.reusedSocket);
}

/** An agent with a connection that stands: what is sent over it is gone before any timer can fire. */
async function warm(o) {
  const agent = new o.http.Agent({ keepAlive: true, maxSockets: 1 });
  await get(o, `${o.url}/ok`, { agent });
  await nextTurn();
  return agent;
}

export const httpScenes = {
  'http: get a text': (o) => play(o, o.http.request(`${o.url}/ok`), { onResponse: text(o.log) }),
  'http: get by options': (o) =>
    play(o, o.http.request({ host: '127.0.0.1', port: o.port, path: '/ok', headers: { 'X-Case': 'Kept' } })),
  'http: get with headers as pairs': (o) =>
    play(
      o,
      o.http.request(`${o.url}/ok`, {
        headers: [
          ['X-A', '1'],
          ['x-a', '2'],
        ],
      }),
    ),
  'http: get with headers as a list': (o) =>
    play(o, o.http.request(`${o.url}/ok`, { headers: ['Host', 'h', 'X-A', '1', 'x-a', '2'] })),
  'http: a budget header of the application': (o) =>
    play(
      o,
      o.http.request(`${o.url}/ok`, {
        headers: { 'time-budget': 'remaining=5', 'x-request-timeout-ms': '70' },
      }),
    ),
  'http: a budget header in a list': (o) =>
    play(
      o,
      o.http.request(`${o.url}/ok`, { headers: ['Host', 'h', 'Time-Budget', 'remaining=5', 'X-A', '1'] }),
    ),
  'http: head': (o) => play(o, o.http.request(`${o.url}/head`, { method: 'HEAD' })),
  'http: no content': (o) => play(o, o.http.request(`${o.url}/204`)),
  'http: not modified': (o) => play(o, o.http.request(`${o.url}/304`)),
  'http: trailers': (o) => play(o, o.http.request(`${o.url}/trailers`), { onResponse: text(o.log) }),
  'http: early hints': (o) => play(o, o.http.request(`${o.url}/early`), { onResponse: text(o.log) }),
  'http: post': (o) => play(o, o.http.request(`${o.url}/ok`, { method: 'POST' }), { body: 'a body' }),
  'http: post in pieces': async (o) => {
    const request = o.http.request(`${o.url}/ok`, { method: 'POST' });
    request.setHeader('X-Late', '1');
    const over = play(o, request, { body: null });
    request.write('one');
    await sleep(5);
    request.write('two');
    request.addTrailers({ 'X-T': '1' });
    request.end('three');
    await over;
  },
  'http: post with its head flushed': async (o) => {
    const request = o.http.request(`${o.url}/ok`, { method: 'POST', headers: { 'content-length': 3 } });
    const over = play(o, request, { body: null });
    request.flushHeaders();
    o.log(request.headersSent, request.getHeader('content-length'));
    await sleep(5);
    request.end('abc');
    await over;
  },
  'http: 100-continue': async (o) => {
    const headers = { expect: '100-continue', 'content-length': 3 };
    const request = o.http.request(`${o.url}/continue`, { method: 'POST', headers });
    request.on('continue', () => request.end('abc'));
    await play(o, request, { body: null });
  },
  'http: upgrade': async (o) => {
    const request = o.http.request(`${o.url}/upgrade`, {
      headers: { connection: 'upgrade', upgrade: 'echo' },
    });
    request.on('upgrade', (response, socket, head) => {
      o.log('upgraded', response.statusCode, head.toString());
      socket.end();
    });
    await play(o, request);
  },
  'http: connect': async (o) => {
    const request = o.http.request({ port: o.port, method: 'CONNECT', path: 'a:1' });
    request.on('connect', (response, socket) => {
      o.log('connected', response.statusCode);
      socket.end();
    });
    await play(o, request);
  },
  'http: keep-alive, one after another': async (o) => {
    const agent = new o.http.Agent({ keepAlive: true, maxSockets: 1 });
    for (let i = 0; i < 4; i++) {
      await get(o, `${o.url}/ok`, { agent });
      await nextTurn();
    }
    o.log(Object.keys(agent.freeSockets).length, Object.keys(agent.sockets).length);
    agent.destroy();
  },
  'http: keep-alive, all at once over one socket': async (o) => {
    const agent = new o.http.Agent({ keepAlive: true, maxSockets: 1 });
    await Promise.all([1, 2, 3, 4].map((i) => get(o, `${o.url}/ok?${i}`, { agent })));
    agent.destroy();
  },
  'http: without keep-alive, one at a time': async (o) => {
    const agent = new o.http.Agent({ maxSockets: 1 });
    await Promise.all([1, 2, 3, 4].map((i) => get(o, `${o.url}/ok?${i}`, { agent })));
  },
  'http: no agent': (o) => get(o, `${o.url}/ok`, { agent: false }),
  'http: a connection of its own': (o) =>
    get(o, `${o.url}/ok`, { createConnection: () => net.connect(o.port, '127.0.0.1') }),
  'http: an agent of its own': async (o) => {
    class Own extends o.http.Agent {
      createConnection(options, done) {
        setTimeout(() => done(null, net.connect(options)), 5);
      }
    }
    const agent = new Own({ keepAlive: true });
    await get(o, `${o.url}/ok`, { agent });
    await nextTurn();
    await get(o, `${o.url}/ok`, { agent });
    agent.destroy();
  },
  'http: an agent whose connection fails': async (o) => {
    const agent = new o.http.Agent();
    agent.createConnection = (_options, done) => done(new Error('no connection'));
    await play(o, o.http.request(`${o.url}/ok`, { agent }));
  },
  'http: a name that is not found': (o) =>
    play(
      o,
      o.http.request('http://nowhere.test/', {
        lookup: (_name, _options, done) => done(new Error('not found')),
      }),
    ),
  'http: a slow name': (o) => {
    const lookup = (_name, { all }, done) =>
      setTimeout(
        () => (all ? done(null, [{ address: '127.0.0.1', family: 4 }]) : done(null, '127.0.0.1', 4)),
        10,
      );
    return play(
      o,
      o.http.request(`http://slow.test:${o.port}/ok`, { lookup, headers: { host: 'slow.test' } }),
    );
  },
  'http: refused': (o) => play(o, o.http.request(o.closedUrl)),
  'http: refused, several addresses': (o) => {
    const lookup = (_name, _options, done) =>
      done(null, [
        { address: '127.0.0.1', family: 4 },
        { address: '::1', family: 6 },
      ]);
    return play(o, o.http.request(o.closedUrl.replace('127.0.0.1', 'two.test'), { lookup }));
  },
  'http: reset before the answer': (o) => play(o, o.http.request(`${o.url}/reset`)),
  'http: closed before the answer': (o) => play(o, o.http.request(`${o.url}/close`)),
  'http: reset in the answer': (o) => play(o, o.http.request(`${o.url}/reset-half`)),
  'http: closed in the answer': (o) => play(o, o.http.request(`${o.url}/close-half`)),
  'http: reset in the upload': async (o) => {
    const request = o.http.request(`${o.url}/reset-upload`, {
      method: 'POST',
      headers: { 'content-length': 100 },
    });
    const over = play(o, request, { body: null });
    request.write('a part');
    await over;
  },
  'http: an answer that is none': (o) => play(o, o.http.request(`${o.url}/malformed`)),
  'http: a broken chunk': (o) => play(o, o.http.request(`${o.url}/bad-chunk`)),
  'http: nobody reads the answer': (o) => {
    const request = o.http.request(`${o.url}/ok`);
    request.end();
    return once(request, 'close').then(() => o.log('closed', request.destroyed));
  },
  'http: nobody reads a big answer': (o) =>
    play(o, o.http.request(`${o.url}/big`), {
      onResponse: (response) => setTimeout(() => response.destroy(), 20),
    }),
  'http: answer destroyed with a reason': (o) =>
    play(o, o.http.request(`${o.url}/half`), {
      onResponse: (response) => response.destroy(new Error('enough')),
    }),
  'http: backpressure': async (o) => {
    const request = o.http.request(`${o.url}/ok`, { method: 'POST' });
    const over = play(o, request, { body: null });
    const piece = Buffer.alloc(300_000, 'y');
    for (let i = 0; i < 4; i++) if (!request.write(piece)) await once(request, 'drain');
    request.end();
    await over;
  },
  'http: pipeline up and down': async (o) => {
    const request = o.http.request(`${o.url}/ok`, { method: 'PUT' });
    const over = play(o, request, {
      body: null,
      onResponse: (response) => {
        pipeline(response, new PassThrough().resume(), (error) => o.log('down', error ? tell(error) : 'ok'));
      },
    });
    pipeline(Readable.from(['a', 'b', 'c']), request, (error) => o.log('up', error ? tell(error) : 'ok'));
    await over;
  },
  'http: pipeline whose source fails': async (o) => {
    const request = o.http.request(`${o.url}/ok`, { method: 'PUT' });
    const over = play(o, request, { body: null });
    const source = Readable.from(
      (async function* () {
        yield 'a';
        throw new Error('no more');
      })(),
    );
    pipeline(source, request, (error) => o.log('up', tell(error)));
    await over;
  },
  'http: timeout option, heeded': async (o) => {
    const request = o.http.request(`${o.url}/hang`, { agent: await warm(o), timeout: 50 });
    request.on('timeout', () => request.destroy());
    await play(o, request);
  },
  'http: timeout option, heeded with a reason': async (o) => {
    const request = o.http.request(`${o.url}/half`, { agent: await warm(o), timeout: 400 });
    request.on('timeout', () => request.destroy(new Error('took too long')));
    await play(o, request);
  },
  'http: timeout option, not heeded': async (o) => {
    const request = o.http.request(`${o.url}/hang`, { agent: await warm(o), timeout: 50 });
    request.on('timeout', () => setTimeout(() => request.destroy(), 10));
    await play(o, request);
  },
  'http: setTimeout': async (o) => {
    const request = o.http.request(`${o.url}/hang`, { agent: await warm(o) });
    request.setTimeout(50, () => {
      o.log('limit', request.destroyed);
      request.destroy();
    });
    await play(o, request);
  },
  'http: AbortSignal.timeout': async (o) => {
    const agent = await warm(o);
    await play(o, o.http.request(`${o.url}/hang`, { agent, signal: AbortSignal.timeout(50) }));
  },
  'http: AbortSignal.timeout in the answer': async (o) => {
    const agent = await warm(o);
    await play(o, o.http.request(`${o.url}/half`, { agent, signal: AbortSignal.timeout(400) }));
  },
  'http: aborted before it begins': (o) =>
    play(o, o.http.request(`${o.url}/ok`, { signal: AbortSignal.abort() })),
  'http: aborted with a reason': async (o) => {
    const controller = new AbortController();
    const request = o.http.request(`${o.url}/hang`, { signal: controller.signal });
    request.on('finish', () => setImmediate(() => controller.abort(new Error('not needed'))));
    await play(o, request);
  },
  'http: destroyed at once': (o) => {
    const request = o.http.request(`${o.url}/ok`);
    const over = play(o, request);
    request.destroy();
    return over;
  },
  'http: destroyed at its socket': (o) => {
    const request = o.http.request(`${o.url}/ok`);
    request.on('socket', () => request.destroy(new Error('changed my mind')));
    return play(o, request);
  },
  'http: destroyed in the queue': async (o) => {
    const agent = new o.http.Agent({ keepAlive: true, maxSockets: 1 });
    const first = get(o, `${o.url}/slow`, { agent });
    const second = o.http.request(`${o.url}/ok?2`, { agent });
    const over = play(o, second);
    const third = get(o, `${o.url}/ok?3`, { agent });
    await nextTurn();
    second.destroy(new Error('waited too long'));
    o.log(second.destroyed, tell(second.errored));
    await Promise.all([first, over, third]);
    agent.destroy();
  },
  'http: abort()': (o) => {
    const request = o.http.request(`${o.url}/hang`);
    request.on('finish', () => setImmediate(() => request.abort()));
    return play(o, request);
  },
  'http: listeners up to the limit': async (o) => {
    const request = o.http.request(`${o.url}/slow`);
    for (const event of ['socket', 'response', 'timeout', 'close', 'finish', 'error']) {
      while (request.listenerCount(event) < 8) request.on(event, () => {});
    }
    await play(o, request, {
      onResponse: (response) => {
        for (const event of ['end', 'close', 'data', 'error']) {
          while (response.listenerCount(event) < 10) response.on(event, () => {});
        }
      },
    });
  },
  'http: own storage': async (o) => {
    const own = new AsyncLocalStorage();
    const agent = new o.http.Agent({ keepAlive: true, maxSockets: 1 });
    await Promise.all(
      ['a', 'b'].map((value) =>
        own.run(
          value,
          () =>
            new Promise((resolve) => {
              const request = o.http.get(`${o.url}/ok`, { agent }, (response) => {
                o.log('response', value, own.getStore());
                response.on('end', () => o.log('end', value, own.getStore())).resume();
              });
              request.on('socket', () => o.log('socket', value, own.getStore()));
              request.on('close', () => {
                o.log('close', value, own.getStore());
                resolve();
              });
            }),
        ),
      ),
    );
    agent.destroy();
  },
  'http: wrong arguments': async (o) => {
    const attempts = [
      () => o.http.request('nonsense'),
      () => o.http.request('ftp://a/'),
      () => o.http.request({ path: '/a b' }),
      () => o.http.request({ headers: { 'x-a': 'a\nb' } }),
      () => o.http.request({ headers: { 'x a': '1' } }),
      () => o.http.request({ method: 'GE T' }),
      () => o.http.request({ timeout: 'soon', port: o.port }).destroy(),
    ];
    for (const attempt of attempts) {
      try {
        const request = attempt();
        request.on('error', () => {});
        o.log('no error');
      } catch (error) {
        o.log(tell(error));
      }
    }
    o.log(await rejection(once(o.http.get(o.closedUrl), 'response')));
  },
};
