/** Services as child processes, with an environment of their own and everything they print. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = new URL('../../', import.meta.url);
/** The built flag, as an installed package has it. */
export const REGISTER = new URL('dist/instrumentation/register.js', ROOT).href;
/** Another Node can be tried with it. */
const NODE = process.env.TEST_NODE ?? process.execPath;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class Child {
  stdout = '';
  stderr = '';
  readonly ended: Promise<Ended>;
  readonly #process: ChildProcess;
  #onOutput: (() => void) | undefined;

  /** `openFiles`: the most that it may have open. */
  constructor(args: readonly string[], env: Readonly<Record<string, string>>, openFiles?: number) {
    const limit = openFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`];
    const [program = NODE, ...rest] = [...limit, NODE, ...args];
    this.#process = spawn(program, rest, {
      env: { PATH: process.env.PATH, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
      this.#onOutput?.();
    });
    this.#process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    this.ended = new Promise((resolve) => {
      this.#process.once('close', (code, signal) => {
        resolve({ code, signal });
        this.#onOutput?.();
      });
    });
  }

  /** The port that the service says it listens on. */
  async port(): Promise<number> {
    return Number(await this.says(/listening on (\d+)/));
  }

  /** Waits for a line on stdout; gives its first group. */
  async says(pattern: RegExp, timeoutMs = 40_000): Promise<string> {
    return new Promise((resolve, reject) => {
      const fail = (why: string) =>
        reject(new Error(`${why}, waiting for ${pattern}:\n${this.stdout}${this.stderr}`));
      const timer = setTimeout(() => fail('too late'), timeoutMs);
      this.#onOutput = () => {
        const found = pattern.exec(this.stdout);
        const isOver = this.#process.exitCode !== null || this.#process.signalCode !== null;
        if (found === null && !isOver) return;
        clearTimeout(timer);
        this.#onOutput = undefined;
        if (found === null) fail('ended');
        else resolve(found[1] ?? '');
      };
      this.#onOutput();
    });
  }

  /** How it ended, and all that it printed. */
  async output(): Promise<Ended & { readonly stdout: string; readonly stderr: string }> {
    const ended = await this.ended;
    return { ...ended, stdout: this.stdout, stderr: this.stderr };
  }

  signal(signal: NodeJS.Signals): void {
    this.#process.kill(signal);
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Ended> {
    this.signal(signal);
    return this.ended;
  }
}

export function testFile(path: string): string {
  return fileURLToPath(new URL(`test/e2e/${path}`, ROOT));
}

/** Installs what a service with an SDK of its own has, as its lock file says, unless it is there. */
export function installForeign(name: string): void {
  const folder = testFile(`foreign/${name}`);
  if (existsSync(`${folder}/node_modules/.package-lock.json`)) return;
  execFileSync('npm', ['ci', '--no-audit', '--no-fund'], { cwd: folder, stdio: 'pipe' });
}
