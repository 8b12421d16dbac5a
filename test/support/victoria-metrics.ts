/** A real VictoriaMetrics in a folder of its own, and its query API. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../demo/free-port.ts';
import type { Series } from './prometheus.ts';
import { findProgram } from './real-program.ts';

const program = findProgram('victoria-metrics');
export const hasVictoriaMetrics: boolean = program !== undefined;

export class VictoriaMetrics {
  readonly url: string;
  readonly #process: ChildProcess;
  readonly #folder: string;
  #log = '';

  private constructor(url: string, child: ChildProcess, folder: string) {
    this.url = url;
    this.#process = child;
    this.#folder = folder;
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#log = (this.#log + text).slice(-4000);
    });
  }

  static async start(args: readonly string[] = []): Promise<VictoriaMetrics> {
    const folder = mkdtempSync(join(tmpdir(), 'time-budget-victoria-'));
    const port = await freePort();
    const child = spawn(
      program ?? 'victoria-metrics',
      [
        `-storageDataPath=${folder}`,
        `-httpListenAddr=127.0.0.1:${port}`,
        '-retentionPeriod=1d',
        '-memory.allowedBytes=64MiB',
        // Else a query does not see the last half minute.
        '-search.latencyOffset=0s',
        '-loggerLevel=WARN',
        ...args,
      ],
      { stdio: ['ignore', 'ignore', 'pipe'] },
    );
    const store = new VictoriaMetrics(`http://127.0.0.1:${port}`, child, folder);
    await store.until('VictoriaMetrics answers', async () => (await fetch(`${store.url}/health`)).ok);
    return store;
  }

  /** Throws what it says where it cannot answer. */
  async query(expression: string): Promise<Series[]> {
    // What came in the last second is not to be found before it is asked for by a search that flushes.
    await fetch(`${this.url}/internal/force_flush`);
    const parameters = new URLSearchParams({ query: expression, nocache: '1' });
    const response = await fetch(`${this.url}/api/v1/query`, { method: 'POST', body: parameters });
    // What its HTTP API answers, which is that of Prometheus.
    const answer = (await response.json()) as {
      readonly status: string;
      readonly error?: string;
      readonly data?: {
        readonly result: readonly { metric: Record<string, string>; value: [number, string] }[];
      };
    };
    if (answer.status !== 'success' || answer.data === undefined) {
      throw new Error(`${answer.error}: ${expression}`);
    }
    return answer.data.result.map(({ metric, value }) => ({ labels: metric, value: Number(value[1]) }));
  }

  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const giveUpAt = performance.now() + 40_000;
    while (!(await holds().catch(() => false))) {
      if (this.#process.exitCode !== null) throw new Error(`VictoriaMetrics ended:\n${this.#log}`);
      if (performance.now() > giveUpAt) throw new Error(`too late: ${what}\n${this.#log}`);
      await sleep(50);
    }
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode === null) {
      const ended = new Promise((done) => this.#process.once('close', done));
      this.#process.kill('SIGTERM');
      await ended;
    }
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
