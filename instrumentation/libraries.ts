/** Every library that is known, one adapter each. */
import type { Adapter } from './adapter.ts';
import { express } from './express.ts';
import { got } from './got.ts';
import { httpClient } from './http-client.ts';
import { httpServer } from './http-server.ts';
import { pgAdapter } from './pg.ts';
import { undiciClient } from './undici.ts';

/** An entry comes before the calls that are made in it. */
export const LIBRARIES: readonly Adapter[] = [httpServer, express, httpClient, undiciClient, got, pgAdapter];
