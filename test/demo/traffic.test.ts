import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, it } from 'vitest';
import { Child } from '../support/child.ts';

const TRAFFIC = fileURLToPath(new URL('../../demo/traffic.ts', import.meta.url));

const requests: IncomingMessage[] = [];
let arrived: (() => void) | undefined;
const server = createServer((request, response) => {
  requests.push(request);
  response.end('{}');
  arrived?.();
});

afterEach(() => {
  server.close();
  server.closeAllConnections();
});

it('sends healthy requests with a budget and the first situation at once, and stops when it is asked to', async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  // A server that listens on a port has such an address.
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const traffic = new Child([TRAFFIC], { GATEWAY_URL: url, ORDERS_URL: url });
  const sent = (path: RegExp, budget: string) =>
    requests.filter(
      ({ url: at, headers }) => path.test(at ?? '') && headers['x-request-timeout-ms'] === budget,
    ).length;
  await new Promise<void>((done) => {
    arrived = () => {
      if (sent(/^\/orders\/\d+$/, '1500') >= 3 && sent(/^\/orders\/42\?inventory_ms=1000$/, '600') >= 1)
        done();
    };
  });
  expect(await traffic.stop()).toEqual({ code: 0, signal: null });
  expect(traffic.stderr).toBe('');
});
