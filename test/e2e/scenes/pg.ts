/** Statements of a service against a real PostgreSQL. */

import { refusedPort } from '../../../demo/free-port.ts';
import { DatabaseProxy, startSilentServer } from '../../support/database-proxy.ts';
import { type Play, request } from '../../support/stage.ts';
import { pgScenes } from '../apps/equivalence/outgoing-pg.mjs';

/** `port` is that of the database. */
export function pgPlays(port: () => number): Readonly<Record<string, Play>> {
  const play: Play = async (stage, scene) => {
    const silent = await startSilentServer();
    const proxy = await DatabaseProxy.start(port(), (text) => {
      if (text.includes('cut_me')) proxy.cut();
    });
    try {
      const query = new URLSearchParams({
        scene,
        port: String(port()),
        fragile: String(proxy.port),
        silent: String(silent.port),
        closed: String(await refusedPort()),
      });
      const wire = stage.wire();
      wire.send(request(`GET /run?${query}`, 'run', ['Connection: close', 'x-request-timeout-ms: 30000']));
      if (scene.includes('comes back')) {
        await stage.says(scene, 'away');
        proxy.restore();
      }
      return (await wire.ends()).transcript;
    } finally {
      proxy.close();
      silent.close();
    }
  };
  return Object.fromEntries(Object.keys(pgScenes).map((name) => [name, play]));
}
