// Runs a scene of calls inside a request, which has a budget.
import { hide, log } from './journal.mjs';
import { fetchScenes } from './outgoing-fetch.mjs';
import { httpScenes } from './outgoing-http.mjs';
import { pgScenes } from './outgoing-pg.mjs';
import { undiciScenes } from './outgoing-undici.mjs';

export const outgoingScenes = { ...httpScenes, ...fetchScenes, ...undiciScenes };

export async function runOutgoing(libraries, url) {
  const { scene, port, closed, fragile, silent } = Object.fromEntries(url.searchParams);
  hide(`:${port}`, ':PORT');
  hide(`:${closed}`, ':CLOSED');
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
