// Runs a scene of calls inside a request, which has a budget.
import { subscribe } from 'node:diagnostics_channel';
import { hide, log } from './journal.mjs';
import { fetchScenes } from './outgoing-fetch.mjs';
import { httpScenes } from './outgoing-http.mjs';
import { httpsScenes } from './outgoing-https.mjs';
import { pgScenes } from './outgoing-pg.mjs';
import { undiciScenes } from './outgoing-undici.mjs';

export const outgoingScenes = { ...httpScenes, ...httpsScenes, ...fetchScenes, ...undiciScenes };

/** The scene that is being played. */
let playing = '';

/** The application listens to the channels of undici as well. */
let listen = () => {
  listen = () => {};
  for (const name of [
    'request:create',
    'client:sendHeaders',
    'request:headers',
    'request:trailers',
    'request:error',
  ]) {
    subscribe(`undici:${name}`, ({ request, error }) => {
      // What happens on several connections at once has no order.
      if (/at once|share|own storage|limits|pipelining|dispatcher/.test(playing)) return;
      const headers = request.headers.filter(
        (_, i) => i % 2 === 0 && !/^(time-budget|traceparent)$/i.test(request.headers[i]),
      );
      log(playing, 'channel', name, request.method, request.path, headers.join(), error?.name ?? '');
    });
  }
};

export async function runOutgoing(libraries, url) {
  const { scene, port, closed, fragile, silent } = Object.fromEntries(url.searchParams);
  hide(`:${port}`, ':PORT');
  hide(`:${closed}`, ':CLOSED');
  playing = scene;
  listen();
  const say = (...words) => log(scene, ...words);
  const database = { host: '127.0.0.1', user: 'postgres', database: 'app', port: Number(port) };
  // The same scene may be played several times, with a number behind its name.
  const name = scene.replace(/ #\d+$/, '');
  const play = outgoingScenes[name] ?? pgScenes[name];
  try {
    await play({
      ...libraries,
      scene,
      log: say,
      port: Number(port),
      url: `http://127.0.0.1:${port}`,
      closed: Number(closed),
      closedUrl: `http://127.0.0.1:${closed}`,
      database,
      fragile: { ...database, port: Number(fragile) },
      silent: { ...database, port: Number(silent) },
    });
  } catch (error) {
    say('failed', error.stack);
  }
}
