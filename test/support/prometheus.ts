/** A real Prometheus over services of a test, and its query API. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../demo/free-port.ts';
import { findProgram } from './real-program.ts';

export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const program = findProgram('prometheus');

export function isPrometheusInstalled(): boolean {
  return program !== undefined && findProgram('promtool') !== undefined;
}

export interface PrometheusOptions {
  /** Pages to scrape, by job. */
  readonly pages: Readonly<Record<string, string>>;
  readonly scrapeInterval: string;
  /** A file of rules, as text. */
  readonly rules?: string;
}

export class Prometheus {
  readonly api: string;
  readonly #process: ReturnType<typeof spawn>;
  readonly #folder: string;

  private constructor(api: string, child: ReturnType<typeof spawn>, folder: string) {
    this.api = api;
    this.#process = child;
    this.#folder = folder;
  }

  static async start({ pages, scrapeInterval, rules }: PrometheusOptions): Promise<Prometheus> {
    const scrapes = Object.entries(pages).map(([job, page]) => ({
      job_name: job,
      scrape_interval: scrapeInterval,
      scrape_timeout: scrapeInterval,
      static_configs: [{ targets: [new URL(page).host] }],
    }));
    return Prometheus.run({ scrape_configs: scrapes }, { ...(rules === undefined ? {} : { rules }) });
  }

  /** With any configuration, and arguments for what is switched on by them. */
  static async run(
    settings: object,
    { rules, args = [] }: { readonly rules?: string; readonly args?: readonly string[] } = {},
  ): Promise<Prometheus> {
    const folder = mkdtempSync(join(tmpdir(), 'time-budget-prometheus-'));
    const port = await freePort();
    const rulesFile = join(folder, 'rules.yml');
    if (rules !== undefined) writeFileSync(rulesFile, rules);
    const config = join(folder, 'prometheus.json');
    // JSON is YAML too.
    writeFileSync(
      config,
      JSON.stringify({ rule_files: rules === undefined ? [] : [rulesFile], ...settings }),
    );
    const child = spawn(
      program ?? 'prometheus',
      [
        ...args,
        `--config.file=${config}`,
        `--storage.tsdb.path=${join(folder, 'data')}`,
        `--web.listen-address=127.0.0.1:${port}`,
      ],
      { stdio: 'ignore' },
    );
    const prometheus = new Prometheus(`http://127.0.0.1:${port}`, child, folder);
    await prometheus.until('Prometheus answers', async () => (await fetch(`${prometheus.api}/-/ready`)).ok);
    return prometheus;
  }

  /** Throws what Prometheus says where it cannot answer, and its warnings. `atS` is Unix seconds. */
  async query(expression: string, atS?: number): Promise<Series[]> {
    const parameters = new URLSearchParams({ query: expression });
    if (atS !== undefined) parameters.set('time', String(atS));
    const response = await fetch(`${this.api}/api/v1/query`, { method: 'POST', body: parameters });
    // What the HTTP API answers, in versions 2 and 3.
    const answer = (await response.json()) as {
      readonly status: string;
      readonly error?: string;
      readonly warnings?: readonly string[];
      readonly infos?: readonly string[];
      readonly data: {
        readonly resultType: string;
        readonly result: readonly { metric: Record<string, string>; value: [number, string] }[];
      };
    };
    const said = [answer.error, ...(answer.warnings ?? []), ...(answer.infos ?? [])].filter(Boolean);
    if (answer.status !== 'success' || said.length > 0) throw new Error(`${said.join('; ')}: ${expression}`);
    if (answer.data.resultType !== 'vector') throw new Error(`${answer.data.resultType}: ${expression}`);
    return answer.data.result.map(({ metric, value }) => ({
      labels: metric,
      value: Number(value[1].replace('Inf', 'Infinity')),
    }));
  }

  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const giveUpAt = performance.now() + 40_000;
    while (!(await holds().catch(() => false))) {
      if (performance.now() > giveUpAt) throw new Error(`too late: ${what}`);
      await sleep(50);
    }
  }

  async stop(): Promise<void> {
    const ended = new Promise((done) => this.#process.once('close', done));
    this.#process.kill('SIGTERM');
    await ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
