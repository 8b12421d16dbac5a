/**
 * A process of the bench that is asked and answers. It ends when it is told to, and by itself when the channel
 * to the driver closes, however the driver ended.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** What a process can be asked, by name. */
// biome-ignore lint/suspicious/noExplicitAny: the one type that every parameter list is assignable to
type Answers = Record<string, (...args: any[]) => unknown>;

interface Question {
  readonly id: number;
  readonly name: string;
  readonly args: readonly unknown[];
}

interface Reply {
  readonly id: number;
  readonly value?: unknown;
  readonly problem?: string;
}

interface Waiting {
  resolve(value: unknown): void;
  reject(error: Error): void;
}

export interface ChildOptions {
  readonly execArgv?: readonly string[];
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
}

export class Child<A extends Answers> {
  /** Those that run, for the driver to stop when it is interrupted. */
  static readonly running = new Set<Child<Answers>>();

  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #nextId = 0;

  /** `file` is beside this one. Settings of the outer environment that would change a variant are taken out. */
  constructor(file: string, { execArgv = [], args = [], env = {} }: ChildOptions = {}) {
    this.#process = fork(fileURLToPath(new URL(file, import.meta.url)), args, {
      execArgv: [...execArgv],
      env: { ...cleanEnvironment(), ...env },
      stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
      // Values such as Infinity and undefined stay what they are.
      serialization: 'advanced',
    });
    this.#process.on('message', (reply: Reply) => this.#settle(reply));
    this.#process.once('exit', (code, signal) => {
      Child.running.delete(this);
      const error = new Error(`${file} ended (${signal ?? code}) while the bench was running`);
      for (const waiting of this.#waiting.values()) waiting.reject(error);
    });
    Child.running.add(this);
  }

  ask<K extends keyof A & string>(name: K, ...args: Parameters<A[K]>): Promise<Awaited<ReturnType<A[K]>>> {
    const id = this.#nextId++;
    return new Promise((resolve, reject) => {
      // What comes back under this id is what the function of that name returned.
      this.#waiting.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#process.send({ id, name, args } satisfies Question);
    });
  }

  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const ended = once(this.#process, 'exit');
    this.#waiting.clear();
    this.#process.kill('SIGKILL');
    await ended;
  }

  #settle({ id, value, problem }: Reply): void {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (problem === undefined) waiting?.resolve(value);
    else waiting?.reject(new Error(problem));
  }
}

function cleanEnvironment(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {};
  for (const [key, value] of Object.entries(process.env)) {
    if (!/^(OTEL_|TIME_BUDGET_|NODE_)/.test(key)) env[key] = value;
  }
  return env;
}

/** Answers the driver's questions from inside a child. */
export function answer(answers: Answers): void {
  process.on('message', async ({ id, name, args }: Question) => {
    try {
      const value = await answers[name]?.(...args);
      process.send?.({ id, value } satisfies Reply);
    } catch (error) {
      process.send?.({ id, problem: error instanceof Error ? error.stack : String(error) });
    }
  });
  process.once('disconnect', () => process.exit());
}
