// How a process ends, and what it has left when it does. One of these per process.
import { fork } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

const SELF = fileURLToPath(import.meta.url);
const PROCESS_EVENTS = [
  'exit',
  'beforeExit',
  'SIGTERM',
  'SIGINT',
  'SIGHUP',
  'warning',
  'uncaughtException',
  'unhandledRejection',
  'message',
  'newListener',
];

/** A server, and its one request. */
async function serve(handler, { method = 'GET', body } = {}) {
  const server = http.createServer(handler);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  const request = http.request({ port, method, agent: false });
  request.on('error', ({ code }) => console.log('request failed', code));
  request.end(body);
  return { server, request };
}

const answer = (_request, response) => response.end('ok');

export const endings = {
  async 'by itself'() {
    const { server, request } = await serve(answer);
    const [response] = await once(request, 'response');
    response.resume();
    server.close();
    await once(server, 'close');
    // A service writes to both, sooner or later.
    console.log(process.stdout.writable, process.stderr.writable);
    process.on('beforeExit', () => console.log('left', process.getActiveResourcesInfo().join()));
    process.on('exit', (code) => console.log('exit', code));
  },
  async 'after fetch and a keep-alive agent'() {
    const agent = new http.Agent({ keepAlive: true });
    const { server } = await serve(answer);
    const { port } = server.address();
    const [response] = await once(http.get({ port, agent }), 'response');
    response.resume();
    await (await fetch(`http://127.0.0.1:${port}/`)).text();
    server.close();
    console.log('closing');
  },
  async 'a call that nobody waits for'() {
    let count = 0;
    const { server } = await serve(() => {
      if (++count === 2) process.exit(5);
    });
    http.get({ port: server.address().port }).on('error', () => {});
  },
  async 'process.exit in a handler'() {
    process.on('exit', (code) => console.log('exit', code));
    await serve(() => process.exit(3));
  },
  async exitCode() {
    process.exitCode = 4;
    const { server } = await serve((_request, response) => {
      response.end();
      server.close();
    });
  },
  'throws at the top'() {
    throw new TypeError('at the top');
  },
  async 'throws in a handler'() {
    await serve(() => {
      throw new TypeError('in a handler');
    });
  },
  async 'throws in a listener on the body'() {
    await serve(
      (request) => {
        request.on('data', () => {
          throw new TypeError('on the body');
        });
      },
      { method: 'POST', body: 'a body' },
    );
  },
  async 'throws in a listener on the end'() {
    await serve((_request, response) => {
      response.on('close', () => {
        throw new TypeError('on the end');
      });
      response.end();
    });
  },
  async 'throws in a callback of a call'() {
    const { server } = await serve(answer);
    http.get({ port: server.address().port }, () => {
      throw new TypeError('in a callback');
    });
  },
  async 'an error of a call that nobody listens for'() {
    const { server } = await serve((request) => request.socket.destroy());
    http.get({ port: server.address().port, agent: false });
  },
  async 'rejects in a handler'() {
    await serve(async () => {
      await null;
      throw new TypeError('in an async handler');
    });
  },
  async 'a fetch that nobody catches'() {
    const { server } = await serve(async () => {
      void fetch(`http://127.0.0.1:${server.address().port + 0}/`, { signal: AbortSignal.abort() });
    });
  },
  async 'listeners for what is not caught'() {
    process.on('uncaughtException', (error, origin) => console.log('caught', error.message, origin));
    process.on('unhandledRejection', (reason) => console.log('rejected', reason.message));
    const { server } = await serve(async (_request, response) => {
      setImmediate(() => {
        throw new Error('uncaught');
      });
      setImmediate(() => {
        response.end();
        server.close();
      });
      throw new Error('unhandled');
    });
  },
  async 'a signal nobody listens for'() {
    await serve(() => process.kill(process.pid, 'SIGTERM'));
  },
  async 'a signal that is heeded'() {
    const { server } = await serve(() => process.kill(process.pid, 'SIGTERM'));
    process.once('SIGTERM', () => {
      console.log('asked to go', process.listenerCount('SIGTERM'));
      server.close();
      server.closeAllConnections();
    });
  },
  'what a process looks like'() {
    for (const event of PROCESS_EVENTS) console.log(event, process.listenerCount(event));
    console.log(Object.keys(globalThis).join());
    console.log(
      process.argv.length,
      Object.keys(process.env)
        .filter((name) => !/^OTEL_|^TIME_BUDGET_/.test(name))
        .sort()
        .join(),
    );
    const names = ['createServer', 'request', 'get'];
    console.log(names.map((name) => `${name} ${http[name].name} ${http[name].length}`).join());
    console.log(http.createServer().eventNames().join(), new http.Agent().eventNames().join());
    console.log(fetch.name, fetch.length, process.getActiveResourcesInfo().join());
    console.log(
      Error.stackTraceLimit,
      Error.prepareStackTrace,
      process.hasUncaughtExceptionCaptureCallback(),
    );
  },
  async 'a module that is missing'() {
    await import('./not-there.mjs').catch(({ code, message }) =>
      console.log(code, message.replaceAll(SELF, 'SELF')),
    );
    await import('not-a-package').catch(({ code, message }) =>
      console.log(code, message.replaceAll(SELF, 'SELF')),
    );
    const { createRequire } = await import('node:module');
    const require = createRequire(import.meta.url);
    for (const name of ['./not-there.cjs', 'not-a-package', 'express/not-there']) {
      try {
        require(name);
      } catch ({ code, message }) {
        console.log(code, message.replaceAll(SELF, 'SELF'));
      }
    }
    console.log(
      require('express') === (await import('express')).default,
      require.resolve('express') in require.cache,
    );
    console.log(require('express/package.json').name, Object.keys(await import('express')).join());
    const { default: json } = await import('express/package.json', { with: { type: 'json' } });
    console.log(json.name, new URL(import.meta.resolve('express')).pathname.endsWith('express/index.js'));
    require.extensions['.txt'] = (module) => {
      module.exports = 'read by an extension';
    };
    console.log(require('./file.txt'));
  },
  async 'a worker'() {
    const worker = new Worker(new URL(import.meta.url));
    worker.on('message', (message) => console.log('worker says', message));
    const [code] = await once(worker, 'exit');
    console.log('worker ended', code);
  },
  async 'a child process'() {
    const child = fork(SELF, ['child'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
    child.on('message', (message) => {
      console.log('child says', message);
      child.disconnect();
    });
    console.log('child ended', (await once(child, 'exit')).join());
  },
};

if (!isMainThread) {
  const { server, request } = await serve(answer);
  const [response] = await once(request, 'response');
  response.resume();
  server.close();
  parentPort.postMessage(`status ${response.statusCode}`);
} else if (process.argv[2] === 'child') {
  process.send(`argv ${process.argv.length}`);
} else if (process.argv[2] !== undefined && process.argv[1] === SELF) {
  await endings[process.argv[2]]();
}
