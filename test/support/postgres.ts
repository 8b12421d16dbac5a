/** One PostgreSQL for a test file: started before its tests, stopped after them. */
import { afterAll, beforeAll } from 'vitest';
import {
  type Postgres,
  type PostgresConnection,
  type PostgresOptions,
  startPostgres,
} from '../../demo/postgres.ts';

/** Call at the top of a file or a describe. The connection is known from the first test on. */
export function usePostgres(options?: PostgresOptions): { readonly connection: PostgresConnection } {
  let postgres: Postgres | undefined;
  beforeAll(async () => {
    postgres = await startPostgres(options);
  }, 30_000);
  afterAll(async () => {
    await postgres?.stop();
  });
  return {
    get connection() {
      if (postgres === undefined)
        throw new Error('PostgreSQL is started before the tests, not before the file');
      return postgres.connection;
    },
  };
}
