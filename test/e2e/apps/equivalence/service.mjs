// The service of the equivalence suite. It knows nothing of any telemetry.
import { startExpress } from './express-app.mjs';
import { startExpecting, startIncoming, startLimited } from './incoming.mjs';

export async function start(libraries) {
  const { express, express4, http } = libraries;
  const servers = {
    incoming: startIncoming(libraries),
    limited: startLimited(libraries),
    expecting: startExpecting(libraries),
    express4: startExpress(express4, http, 4, 'production'),
    express5: startExpress(express, http, 5, 'production'),
    'express4 in development': startExpress(express4, http, 4, 'development'),
    'express5 in development': startExpress(express, http, 5, 'development'),
  };
  const ports = {};
  for (const [name, server] of Object.entries(servers)) {
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    ports[name] = server.address().port;
  }
  console.log(`listening on ${ports.incoming}`);
  console.log(`ports ${JSON.stringify(ports)}`);
}
