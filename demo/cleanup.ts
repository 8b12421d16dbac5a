/** Undoes what was started, in reverse, once. What is still starting is waited for and then undone. */
export class Cleanup {
  readonly #undos: (() => Promise<unknown>)[] = [];
  #running: Promise<void> | undefined;

  get hasBegun(): boolean {
    return this.#running !== undefined;
  }

  add(undo: () => Promise<unknown>): void {
    this.#undos.push(undo);
  }

  /** Resolves when all is undone; called again, it is the same run. Never rejects. */
  run(): Promise<void> {
    this.#running ??= this.#run();
    return this.#running;
  }

  async #run(): Promise<void> {
    for (let undo = this.#undos.pop(); undo !== undefined; undo = this.#undos.pop()) {
      // What did not come up has nothing to undo, and one that fails must not keep the others from running.
      await undo().catch(() => undefined);
    }
  }
}
