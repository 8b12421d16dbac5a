/** The compiler takes a gate for what Express, Fastify and node:http want, without a word more. */
import http from 'node:http';
import express from 'express';
import fastify from 'fastify';
import { expect, test } from 'vitest';
import { admission } from '../../src/admission/index.ts';
import { ask, close, listen } from '../support/loopback.ts';

test('middleware of Express, a hook of Fastify, a handler of node:http', async () => {
  const gate = admission({ name: 'shapes', limit: 1 });
  const app = express()
    .use(gate.express)
    .get('/', gate.express, (_request, response) => void response.send('express'));
  const fast = fastify();
  fast.addHook('onRequest', gate.fastify);
  fast.get('/', { onRequest: gate.fastify }, async () => 'fastify');
  await fast.ready();
  const plain = http.createServer(
    gate.handler((request, response) => response.end(`plain ${request.method}`)),
  );
  // The package is not started here, so that each lets in.
  const bodies: string[] = [];
  for (const server of [http.createServer(app), fast.server, plain]) {
    bodies.push((await ask(await listen(server))).body);
    await close(server);
  }
  expect(bodies).toEqual(['express', 'fastify', 'plain GET']);
});
