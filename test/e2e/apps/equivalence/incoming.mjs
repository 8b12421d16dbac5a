// A plain server: what its handlers see of requests, replies and clients that leave.
import { AsyncLocalStorage } from 'node:async_hooks';
import { subscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { pipeline, Readable } from 'node:stream';
import { log, rejection, tell, watch } from './journal.mjs';
import { runOutgoing } from './outgoing.mjs';

const REQUEST_EVENTS = ['end', 'aborted', 'error', 'close'];
const RESPONSE_EVENTS = ['finish', 'error', 'close'];
const own = new AsyncLocalStorage();

const handlers = {
  text: (_request, response) => response.end('hello'),
  json(request, response) {
    response.writeHead(201, 'Made', {
      'X-Case': 'KEPT',
      'set-cookie': ['a=1', 'b=2'],
      'content-type': 'text/json',
    });
    response.end(JSON.stringify({ method: request.method, url: request.url, raw: request.rawHeaders }));
  },
  headers(request, response) {
    // Everything that an application can read of the headers.
    const { headers, headersDistinct, rawHeaders, httpVersion } = request;
    response.end(JSON.stringify({ headers, headersDistinct, rawHeaders, httpVersion }));
  },
  empty(_request, response) {
    response.statusCode = 204;
    response.end();
  },
  'not-modified'(_request, response) {
    response.writeHead(304, { etag: '"1"' }).end();
  },
  trailers(_request, response) {
    response.writeHead(200, { trailer: 'x-sum' });
    response.write('one');
    response.write('two');
    response.addTrailers({ 'x-sum': '2' });
    response.end();
  },
  early(_request, response) {
    response.writeEarlyHints({ link: '</style.css>; rel=preload' });
    response.writeProcessing();
    response.end('after hints');
  },
  async echo(request, response, scene) {
    const chunks = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch (error) {
      log(scene, 'body', tell(error), request.complete, request.aborted);
      return;
    }
    response.end(Buffer.concat(chunks));
  },
  paused(request, response) {
    // Reads nothing at first, which Node makes up for when the reply is over.
    request.pause();
    setTimeout(() => {
      let size = 0;
      request.on('data', (chunk) => {
        size += chunk.length;
      });
      request.resume();
      request.on('end', () => response.end(String(size)));
    }, 20);
  },
  unread: (_request, response) => response.end('not interested'),
  pipe(request, response, scene) {
    pipeline(request, response, (error) => log(scene, 'pipeline', error ? tell(error) : 'ok'));
  },
  big(_request, response, scene) {
    // More than a socket takes: the reader decides how fast.
    const piece = Buffer.alloc(64 * 1024, 'x');
    const source = Readable.from(Array.from({ length: 64 }, () => piece));
    // Whether the request or the source closes first hangs on whether the last piece had to wait for the reader; with
    // us and without, one time in thirty. So this is said when both have.
    pipeline(source, response, (error) =>
      setImmediate(() => log(scene, 'pipeline', error ? tell(error) : 'ok')),
    );
  },
  hang(_request, _response, scene) {
    log(scene, 'started');
  },
  half(_request, response, scene) {
    response.write('half of it', () => log(scene, 'started'));
  },
  upload(request, response, scene) {
    request.once('data', () => log(scene, 'started'));
    request.on('end', () => response.end('all'));
  },
  async late(_request, response, scene) {
    // Writes to a client that has left.
    log(scene, 'started');
    await once(response, 'close');
    const can = response.write('more', (error) => log(scene, 'write', tell(error)));
    response.end('late', () => log(scene, 'end called back'));
    log(
      scene,
      'late',
      can,
      response.writableEnded,
      response.writableFinished,
      response.destroyed,
      response.headersSent,
    );
  },
  destroy(request) {
    request.socket.destroy();
  },
  'destroy-half'(request, response) {
    response.write('half', () => request.socket.destroy());
  },
  'destroy-error'(_request, response, scene) {
    response.destroy(new Error('on purpose'));
    log(scene, 'destroyed', response.destroyed, tell(response.errored));
  },
  twice(_request, response, scene) {
    response.end('once');
    response.end('twice', (error) => log(scene, 'second end', tell(error)));
    try {
      response.setHeader('x', '1');
    } catch (error) {
      log(scene, 'late header', tell(error));
    }
    log(
      scene,
      'write after',
      response.write('x', (error) => log(scene, 'late write', tell(error))),
    );
  },
  invalid(_request, response, scene) {
    for (const value of ['a\nb', undefined, 'żółw']) {
      try {
        response.setHeader('x-bad', value);
      } catch (error) {
        log(scene, tell(error));
      }
    }
    response.end('rejected');
  },
  'idle-limit'(_request, response, scene) {
    response.setTimeout(60, () => {
      log(scene, 'idle limit');
      response.end('gave up');
    });
  },
  'idle-limit-default'(_request, response) {
    // Without a listener Node destroys the connection.
    response.setTimeout(60);
  },
  async storage(_request, response, scene) {
    // The store of the application is its own, before and after everything that can change it.
    const before = own.getStore();
    const [a, b] = await Promise.all(
      ['a', 'b'].map((value) =>
        own.run(value, async () => {
          await new Promise((resolve) => setTimeout(resolve, 5));
          return own.getStore();
        }),
      ),
    );
    own.enterWith('entered');
    response.on('finish', () => log(scene, 'finish', own.getStore()));
    response.on('close', () => log(scene, 'close', own.getStore()));
    response.end(`${before} ${a} ${b}`);
  },
  listeners(request, response, _scene) {
    // Ten are allowed before Node warns of a leak; some are Node's, the scene's own, and OpenTelemetry's.
    const free = [
      [response, { close: 8, finish: 8, prefinish: 10, error: 9, timeout: 10 }],
      [request, { close: 9, end: 8, error: 9, timeout: 10 }],
    ];
    for (const [emitter, counts] of free) {
      for (const [event, count] of Object.entries(counts)) {
        for (let i = 0; i < count; i++) emitter.on(event, () => {});
      }
    }
    response.end();
  },
  'remove-listeners'(request, response) {
    // Some middleware does, and all must go on.
    request.removeAllListeners('close');
    response.removeAllListeners('prefinish');
    response.removeAllListeners('close');
    response.end('bare');
  },
  throw() {
    throw new Error('in the handler');
  },
  async reject() {
    throw new Error('in the async handler');
  },
  patched(request, response) {
    // As compression and sessions do.
    const { end, write, writeHead } = response;
    response.write = function (chunk, ...rest) {
      return write.call(this, String(chunk).toUpperCase(), ...rest);
    };
    response.end = function (chunk, ...rest) {
      if (chunk) this.write(chunk);
      return end.call(this, ...rest);
    };
    response.writeHead = function (...args) {
      this.setHeader('x-patched', 'yes');
      return writeHead.apply(this, args);
    };
    response.write('part ');
    response.end('rest');
    void request;
  },
};

process.on('warning', ({ name, code, message }) => {
  // How many listeners there are then is not what is asked for.
  log('warning', name, code, message.replaceAll(/\d+/g, 'N'));
});

export function startIncoming(libraries) {
  const { http } = libraries;
  const server = http.createServer({ connectionsCheckingInterval: 20, keepAliveTimeout: 5000 });
  server.on('request', (request, response) => {
    const scene = request.headers['x-scene'] ?? 'unnamed';
    const { pathname } = new URL(request.url, 'http://localhost');
    const name = pathname.slice(1);
    watch(scene, 'request', request, REQUEST_EVENTS);
    watch(scene, 'response', response, RESPONSE_EVENTS);
    if (name === 'run') {
      void runOutgoing(libraries, new URL(request.url, 'http://localhost')).then(() =>
        response.end('played'),
      );
      return;
    }
    const handler = handlers[name];
    if (handler === undefined) {
      response.writeHead(404).end();
      return;
    }
    if (name === 'reject') {
      void rejection(handler()).then((text) => response.writeHead(500).end(text));
      return;
    }
    try {
      void handler(request, response, scene);
    } catch (error) {
      response.writeHead(500).end(tell(error));
    }
  });
  server.on('upgrade', (request, socket, head) => {
    log(request.headers['x-scene'], 'upgrade', request.headers.upgrade);
    socket.unshift(head);
    socket.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n');
    socket.pipe(socket);
  });
  server.on('connect', (request, socket) => {
    log(request.headers['x-scene'], 'connect', request.url);
    socket.end('HTTP/1.1 405 No\r\n\r\n');
  });
  server.on('clientError', (error, socket) => {
    log('client-error', error.code, error.bytesParsed);
    if (socket.writable) socket.end('HTTP/1.1 400 Bad\r\nconnection: close\r\n\r\n');
  });
  return server;
}

/** A server with the limits of Node set low, and without listeners that change what Node does. */
export function startLimited({ http }) {
  const server = http.createServer(
    { connectionsCheckingInterval: 20, headersTimeout: 300, requestTimeout: 400, keepAliveTimeout: 100 },
    (request, response) => {
      const scene = request.headers['x-scene'];
      watch(scene, 'request', request, REQUEST_EVENTS);
      watch(scene, 'response', response, RESPONSE_EVENTS);
      request.on('data', () => {});
      request.on('end', () => response.end('in time'));
    },
  );
  server.keepAliveTimeoutBuffer = 0;
  return server;
}

/** A server that decides on `expect` itself, and has a timeout for every connection. */
export function startExpecting({ http }) {
  const server = http.createServer((_request, response) => {
    log('idle', 'started');
    response.write('and then nothing');
  });
  server.timeout = 300;
  server.on('checkContinue', (request, response) => {
    const scene = request.headers['x-scene'];
    log(scene, 'asked to continue');
    response.writeContinue();
    request.resume().on('end', () => response.end('continued'));
  });
  server.on('checkExpectation', (request, response) => {
    log(request.headers['x-scene'], 'expects', request.headers.expect);
    response.writeHead(417).end();
  });
  return server;
}

for (const name of [
  'http.server.request.start',
  'http.server.response.finish',
  'http.client.request.start',
]) {
  // The application listens to the same channels.
  subscribe(name, ({ request }) => {
    const scene = request.headers?.['x-scene'] ?? request.getHeader?.('x-scene');
    if (scene !== undefined) log(scene, 'channel', name);
  });
}
