// The service of the equivalence suite. It knows nothing of any telemetry.
import { startExpecting, startIncoming, startLimited } from './incoming.mjs';

export async function start(libraries) {
  const servers = {
    incoming: startIncoming(libraries),
    limited: startLimited(libraries),
    expecting: startExpecting(libraries),
  };
  const ports = {};
  for (const [name, server] of Object.entries(servers)) {
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    ports[name] = server.address().port;
  }
  console.log(`ports ${JSON.stringify(ports)}`);
}
