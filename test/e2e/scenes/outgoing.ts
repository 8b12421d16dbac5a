/** Calls of a service, and what their peer sees of them. */
import type { Socket } from 'node:net';
import { refusedPort } from '../../../demo/free-port.ts';
import { RawPeer } from '../../support/raw-peer.ts';
import { type Play, request } from '../../support/stage.ts';
import { outgoingScenes } from '../apps/equivalence/outgoing.mjs';

const HALF = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n';

function reply(status: string, body = '', headers: readonly string[] = []): string {
  const all = [...headers, `Content-Length: ${body.length}`];
  return `HTTP/1.1 ${status}\r\n${all.map((header) => `${header}\r\n`).join('')}\r\n${body}`;
}

const ANSWERS: Readonly<Record<string, (socket: Socket) => void>> = {
  ok: (socket) =>
    socket.write(reply('200 Fine', 'ok', ['X-Case: Kept', 'Set-Cookie: a=1', 'Set-Cookie: b=2'])),
  head: (socket) => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n'),
  204: (socket) => socket.write('HTTP/1.1 204 No Content\r\n\r\n'),
  304: (socket) => socket.write('HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n'),
  503: (socket) => socket.write(reply('503 Busy', 'busy')),
  trailers: (socket) =>
    socket.write(
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: x-t\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\n\r\n',
    ),
  early: (socket) => socket.write(`HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n${reply('200 OK', 'ok')}`),
  slow: (socket) => setTimeout(() => socket.write(reply('200 OK', 'slow')), 60),
  hang: () => {},
  half: (socket) => socket.write(HALF),
  reset: (socket) => socket.resetAndDestroy(),
  'reset-upload': (socket) => socket.resetAndDestroy(),
  close: (socket) => socket.end(),
  // What was written has arrived before the connection ends.
  'reset-half': (socket) => socket.write(HALF, () => setTimeout(() => socket.resetAndDestroy(), 20)),
  'close-half': (socket) => socket.write(HALF, () => setTimeout(() => socket.end(), 20)),
  malformed: (socket) => socket.write('NOT HTTP\r\n\r\n'),
  'bad-chunk': (socket) => socket.write(`${HALF}zz\r\n`),
  big: (socket) => socket.write(reply('200 OK', 'z'.repeat(1_000_000))),
  redirect: (socket) => socket.write(reply('302 Found', '', ['Location: /ok?redirected'])),
  'redirect-307': (socket) => socket.write(reply('307 Again', '', ['Location: /ok?again'])),
  'redirect-loop': (socket) => socket.write(reply('302 Found', '', ['Location: /redirect-loop'])),
  continue: (socket) => {
    socket.write('HTTP/1.1 100 Continue\r\n\r\n');
    socket.once('data', () => socket.write(reply('200 OK', 'continued')));
  },
  upgrade: (socket) =>
    socket.write('HTTP/1.1 101 Switching\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\nfirst'),
  'a:1': (socket) => socket.write('HTTP/1.1 200 Connected\r\n\r\n'),
};

function answer(socket: Socket, head: string): void {
  const path = /^\S+ \/?([^ ?]*)/.exec(head)?.[1] ?? '';
  (ANSWERS[path] ?? ((other: Socket) => other.end(reply('404 Not Found'))))(socket);
}

/** Agents let go of idle connections after 5 s at most. */
const IDLE_MS = 8_000;

export const OUTGOING: Readonly<Record<string, Play>> = Object.fromEntries(
  Object.keys(outgoingScenes).map((name): [string, Play] => [
    name,
    async (stage, scene) => {
      const peer = await RawPeer.start(answer);
      const query = new URLSearchParams({
        scene,
        port: String(peer.port),
        closed: String(await refusedPort()),
      });
      const wire = stage.wire();
      wire.send(request(`GET /run?${query}`, 'run', ['Connection: close', 'x-request-timeout-ms: 30000']));
      stage.afterwards(scene, async () => {
        await peer.settled(IDLE_MS);
        peer.close();
        stage.budgets += peer.budgets;
        return peer.transcript;
      });
      return (await wire.ends()).transcript;
    },
  ]),
);
