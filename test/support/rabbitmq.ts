/** A real RabbitMQ of its own: one node in a temporary folder, on free ports, with a port mapper of its own. */
import type { ChildProcess } from 'node:child_process';
import { accessSync, constants, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ChannelModel, connect } from 'amqplib';
import { freePort } from '../../demo/free-port.ts';
import { endKept, spawnKept } from '../../demo/kept-program.ts';

/** Debian's. The one on the PATH is a wrapper that changes to another user, with its folders. */
const SERVER = '/usr/lib/rabbitmq/bin/rabbitmq-server';
const EPMD = '/usr/bin/epmd';
/** It takes 10 s on a busy machine. */
const START_MS = 90_000;

export const hasRabbitMq: boolean = [SERVER, EPMD].every(isProgram);
if (!hasRabbitMq) console.warn('SKIPPED: no RabbitMQ here; scripts/real-parts.sh rabbitmq brings it');

interface Kept {
  readonly child: ChildProcess;
  readonly folder: string;
}

export class RabbitMq {
  readonly url: string;
  readonly #kept: readonly Kept[];

  private constructor(port: number, kept: readonly Kept[]) {
    this.url = `amqp://guest:guest@127.0.0.1:${port}`;
    this.#kept = kept;
  }

  static async start(): Promise<RabbitMq> {
    const [port, distribution, mapper] = await Promise.all([freePort(), freePort(), freePort()]);
    const folder = newFolder();
    // Otherwise Erlang starts one that outlives the node, or finds the machine's own.
    const env = { PATH: process.env.PATH, HOME: folder, ERL_EPMD_PORT: String(mapper) };
    const epmd = keep(EPMD, ['-port', String(mapper), '-address', '127.0.0.1'], env, newFolder());
    writeFileSync(join(folder, 'plugins'), '[].');
    const server = keep(
      SERVER,
      [],
      {
        ...env,
        RABBITMQ_NODENAME: 'time-budget@localhost',
        RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
        RABBITMQ_NODE_PORT: String(port),
        RABBITMQ_DIST_PORT: String(distribution),
        RABBITMQ_MNESIA_BASE: join(folder, 'data'),
        RABBITMQ_LOG_BASE: join(folder, 'log'),
        RABBITMQ_CONFIG_FILE: join(folder, 'none'),
        RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
        RABBITMQ_PID_FILE: join(folder, 'pid'),
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
        // So that the script becomes the server, and a signal reaches it.
        RUNNING_UNDER_SYSTEMD: 'true',
      },
      folder,
    );
    const rabbit = new RabbitMq(port, [server, epmd]);
    try {
      await (await rabbit.connect(START_MS)).close();
    } catch (error) {
      await rabbit.stop();
      throw error;
    }
    return rabbit;
  }

  /** Waits until it takes connections. */
  async connect(timeoutMs = 10_000): Promise<ChannelModel> {
    const giveUpAt = performance.now() + timeoutMs;
    for (;;) {
      try {
        return await connect(this.url);
      } catch (error) {
        if (performance.now() > giveUpAt) throw new Error('RabbitMQ takes no connection', { cause: error });
        await sleep(100);
      }
    }
  }

  async stop(): Promise<void> {
    for (const { child, folder } of this.#kept) await endKept(child, folder);
  }
}

function keep(path: string, args: readonly string[], env: NodeJS.ProcessEnv, folder: string): Kept {
  const child = spawnKept({ path, args, env, folder, signal: 'TERM' });
  child.stderr?.resume();
  return { child, folder };
}

function newFolder(): string {
  return mkdtempSync(join(tmpdir(), 'time-budget-rabbitmq-'));
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
