/** A dependency in a process of its own that counts what reaches it. */
import { Child, testFile } from './child.ts';

export interface CountedState {
  readonly arrivals: number;
  readonly working: number;
  /** The most it worked on at a time. */
  readonly most: number;
}

export class Counted {
  readonly url: string;
  readonly #child: Child;
  readonly #control: string;

  private constructor(child: Child, port: number, control: string) {
    this.#child = child;
    this.url = `http://127.0.0.1:${port}`;
    this.#control = `http://127.0.0.1:${control}`;
  }

  /** Without `holdMs` it answers only when it is opened. */
  static async start(holdMs?: number): Promise<Counted> {
    const env = holdMs === undefined ? {} : { HOLD_MS: String(holdMs) };
    const child = new Child([testFile('apps/counted.mjs')], env);
    const control = await child.says(/control on (\d+)/);
    return new Counted(child, await child.port(), control);
  }

  async #tell(what: string): Promise<CountedState> {
    const response = await fetch(`${this.#control}/${what}`);
    // What the service under test/e2e/apps says.
    return (await response.json()) as CountedState;
  }

  state(): Promise<CountedState> {
    return this.#tell('state');
  }

  /** Answers all that it holds. */
  open(): Promise<CountedState> {
    return this.#tell('open');
  }

  fail(): Promise<CountedState> {
    return this.#tell('fail');
  }

  heal(): Promise<CountedState> {
    return this.#tell('heal');
  }

  async until(holds: (state: CountedState) => boolean): Promise<CountedState> {
    const giveUpAt = performance.now() + 10_000;
    for (;;) {
      const state = await this.state();
      if (holds(state)) return state;
      if (performance.now() > giveUpAt) throw new Error(`the dependency has seen ${JSON.stringify(state)}`);
    }
  }

  async stop(): Promise<void> {
    await this.#child.stop('SIGKILL');
  }
}
