/**
 * The adapter for pg (its JavaScript client) and pg-pool, which publish no channel. The native binding, with its own
 * client and query classes, is not seen. Wraps the main exports alone: OpenTelemetry patches inner files.
 */
import { diag } from '@opentelemetry/api';
import type { Adapter, Hooks, Undo } from '../adapter.ts';
import { wrapMethods } from '../shared/plain-wrap.ts';
import { memberOf, wrappedModule } from '../shared/wrapped-module.ts';
import { PgConnections } from './pg-connection.ts';
import { PgPools } from './pg-pool.ts';
import { createPgSpans, type PgSpans } from './pg-spans.ts';
import { PgStatements } from './pg-statements.ts';

/** What is known to have the methods that are wrapped; the ranges of instrumentation-pg 0.77. */
const PG_VERSIONS = ['>=8.0.3 <9'];
const POOL_VERSIONS = ['>=2.0.0 <4'];

export const pgAdapter: Adapter = {
  name: 'pg',
  start: () => () => {},
  modules(hooks) {
    const wrapper = new PgWrapper(hooks);
    return [
      wrappedModule('pg', PG_VERSIONS, (exports) => wrapper.wrapPg(exports)),
      wrappedModule('pg-pool', POOL_VERSIONS, (exports) => wrapper.wrapPool(exports)),
    ];
  },
};

/** Wraps what `require('pg')` returns, its pool included. */
export function wrapPg(pgExports: unknown, hooks: Hooks): Undo {
  return new PgWrapper(hooks).wrapPg(pgExports);
}

class PgWrapper {
  readonly #spans: PgSpans;
  readonly #connections: PgConnections;
  readonly #statements: PgStatements;
  readonly #pools: PgPools;

  constructor(hooks: Hooks) {
    this.#spans = createPgSpans(hooks);
    this.#connections = new PgConnections(hooks, this.#spans);
    this.#statements = new PgStatements(hooks, this.#connections, this.#spans);
    this.#pools = new PgPools(hooks, this.#connections, this.#statements, this.#spans);
  }

  wrapPg(pgExports: unknown): Undo {
    const client = prototypeOf(memberOf(pgExports, 'Client'));
    const query = prototypeOf(memberOf(pgExports, 'Query'));
    if (client === undefined || query === undefined || !('handleReadyForQuery' in query)) {
      diag.warn('otel-time-budget: this pg has another client (pg-native?); its statements are not seen');
      return () => {};
    }
    const undoQuery = this.#statements.wrapQuery(query);
    const undoClient = wrapMethods(client, {
      around: {
        connect: (self, args, inner) => this.#connections.connect(self, args, inner),
        query: (self, args, inner) => this.#statements.query(self, args, inner),
      },
    });
    // pg's own Pool extends pg-pool's, which is not loaded a second time where pg is an ES module.
    const pool: unknown = Object.getPrototypeOf(memberOf(pgExports, 'Pool') ?? Object.prototype);
    const undoPool = this.wrapPool(pool);
    const undoSpans = this.#spans.start();
    return () => {
      undoSpans();
      undoPool();
      undoClient();
      undoQuery();
    };
  }

  wrapPool(poolClass: unknown): Undo {
    const prototype = prototypeOf(poolClass);
    return prototype === undefined ? () => {} : this.#pools.wrapPool(prototype);
  }
}

function prototypeOf(type: unknown): object | undefined {
  const prototype = typeof type === 'function' ? memberOf(type, 'prototype') : undefined;
  return typeof prototype === 'object' && prototype !== null ? prototype : undefined;
}
