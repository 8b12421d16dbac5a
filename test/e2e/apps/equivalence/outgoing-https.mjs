// Calls over TLS, to a server of the scene's own. With a shared key, so that no certificate is needed.
import { once } from 'node:events';
import https from 'node:https';
import net from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { rejection, watch } from './journal.mjs';

const KEY = Buffer.from('0123456789abcdef0123456789abcdef', 'hex');
const TLS = { ciphers: 'PSK', maxVersion: 'TLSv1.2' };
const CLIENT = {
  ...TLS,
  host: '127.0.0.1',
  pskCallback: () => ({ psk: KEY, identity: 'scene' }),
  checkServerIdentity: () => undefined,
};

/** A server that says what it was sent, but for the one header that may be there or not. */
async function withServer({ log, scene }, work) {
  const server = https.createServer({ ...TLS, pskCallback: () => KEY }, (request, response) => {
    const names = Object.keys(request.headers).filter((name) => !/^(time-budget|traceparent)$/.test(name));
    log('server', request.method, request.url, names.join(), request.headers['x-a'] ?? '');
    watch(scene, 'server request', request, ['aborted', 'close']);
    watch(scene, 'server response', response, ['finish', 'close']);
    if (request.url === '/hang') return;
    const pieces = [];
    request.on('data', (piece) => pieces.push(piece));
    request.on('end', () => response.end(`over TLS: ${Buffer.concat(pieces)}`));
  });
  server.on('tlsClientError', ({ code }) => log('tlsClientError', code));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  try {
    await work(server.address().port);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

async function get({ log }, options, body) {
  const request = https.request({ ...CLIENT, ...options });
  request.end(body);
  const [response] = await once(request, 'response');
  const pieces = await response.toArray();
  log(response.statusCode, Buffer.concat(pieces).toString(), 'reused', request.reusedSocket);
}

export const httpsScenes = {
  'https: keep-alive': (o) =>
    withServer(o, async (port) => {
      const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
      for (const path of ['/a', '/b']) {
        await get(o, { port, path, agent });
        await nextTurn();
      }
      await get(o, { port, path: '/c', agent, method: 'POST' }, 'a body');
      agent.destroy();
    }),
  'https: a budget header of its own, and a body': (o) =>
    withServer(o, (port) => {
      const headers = { 'Time-Budget': 'remaining=1', 'x-a': 'ä' };
      return get(o, { port, path: '/', agent: false, method: 'PUT', headers }, 'ŭtf-8');
    }),
  'https: headers as a list': (o) =>
    withServer(o, (port) => get(o, { port, path: '/', agent: false, headers: ['Host', 'a', 'X-A', '1'] })),
  'https: all at once over one socket': (o) =>
    withServer(o, async (port) => {
      const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
      await Promise.all(['/a', '/b', '/c'].map((path) => get(o, { port, path, agent })));
      agent.destroy();
    }),
  'https: a key that is not the right one': (o) =>
    withServer(o, async (port) => {
      const pskCallback = () => ({ psk: Buffer.alloc(16), identity: 'wrong' });
      const request = https.get({ ...CLIENT, pskCallback, port, agent: false });
      watch(o.scene, 'request', request, ['socket', 'error', 'close']);
      await new Promise((resolve) => request.once('close', resolve));
    }),
  'https: no TLS at the other end': async (o) => {
    const server = net.createServer((socket) => socket.on('error', () => {}).end('not TLS\r\n'));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    o.log(await rejection(once(https.get({ ...CLIENT, port, agent: false }), 'response')));
    server.close();
  },
  'https: a handshake that does not come': async (o) => {
    const sockets = [];
    const server = net.createServer((socket) => sockets.push(socket.on('error', () => {}).resume()));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address();
    const options = { ...CLIENT, port, agent: false, signal: AbortSignal.timeout(60) };
    o.log(await rejection(once(https.get(options), 'response')));
    server.close();
    for (const socket of sockets) socket.destroy();
  },
  'https: aborted in the answer': (o) =>
    withServer(o, async (port) => {
      const agent = new https.Agent({ keepAlive: true, maxSockets: 1 });
      await get(o, { port, path: '/', agent });
      await nextTurn();
      const controller = new AbortController();
      const request = https.get({ ...CLIENT, port, path: '/hang', agent, signal: controller.signal });
      watch(o.scene, 'request', request, ['socket', 'finish', 'error']);
      request.on('finish', () => setImmediate(() => controller.abort(new Error('not needed'))));
      await new Promise((resolve) => request.once('close', resolve));
      agent.destroy();
    }),
};
