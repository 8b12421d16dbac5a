/** J7, J8: a service that is an ES module, or half of one, started with the flag alone. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { usePostgres } from '../support/postgres.ts';

const REGISTER = fileURLToPath(new URL('../../instrumentation/register.ts', import.meta.url));
const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const postgres = usePostgres();

const LOADS = {
  'import pg': `import pg from 'pg'; const { Client, Pool } = pg;`,
  'import names': `import { Client, Pool } from 'pg';`,
  'import pg-pool': `import Pool from 'pg-pool'; import { Client } from 'pg';`,
  'import()': `const { Client, Pool } = await import('pg');`,
  'require in an ES module': `import { createRequire } from 'node:module';
    const { Client, Pool } = createRequire(process.cwd() + '/x.js')('pg');`,
} as const;

const SERVICE = `
  const connection = JSON.parse(process.env.CONNECTION);
  const client = new Client(connection);
  await client.connect();
  await client.query('select 1');
  await client.end();
  const pool = new Pool(connection);
  await pool.query('select 2');
  await pool.end();
  const { recorder } = globalThis[Symbol.for('otel-time-budget.runtime.1')].hooks;
  const sum = (family) => family.cells.reduce((all, cell) => all + (cell.value ?? cell.count), 0);
  const { calls, poolWait, poolCreate, poolUse, internalErrors } = recorder.families;
  console.log(JSON.stringify([calls, poolWait, poolCreate, poolUse, internalErrors].map(sum)));
`;

test.each(Object.entries(LOADS))(
  '%s: a connection, two statements and one use of a pool',
  async (_, load) => {
    const args = ['--import', REGISTER, '--input-type=module', '--eval', load + SERVICE];
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, {
      cwd: ROOT,
      env: {
        PATH: process.env.PATH,
        CONNECTION: JSON.stringify(postgres.connection),
        OTEL_TRACES_EXPORTER: 'none',
        OTEL_METRICS_EXPORTER: 'none',
        OTEL_LOGS_EXPORTER: 'none',
      },
    });
    expect(stderr).toBe('');
    expect(JSON.parse(stdout)).toEqual([3, 1, 1, 1, 0]);
  },
);
