/** Every library that is known, one adapter each. */
import type { Adapter } from './adapter.ts';
import { express } from './express/express.ts';
import { got } from './got.ts';
import { httpClient } from './http-client/http-client.ts';
import { httpServer } from './http-server/http-server.ts';
import { pgAdapter } from './pg/pg.ts';
import { undiciClient } from './undici/undici.ts';

/** An entry comes before the calls that are made in it. */
export const LIBRARIES: readonly Adapter[] = [httpServer, express, httpClient, undiciClient, got, pgAdapter];
