/** One request at one gate: waiting, working, or what is left of its work after its answer. */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Priority } from '../core/terms.ts';
import type { Waiting } from '../core/wait-queue.ts';
import type { Hold, RequestRecord } from '../records.ts';
import type { Refusal } from './refusal.ts';

export class Permit implements Hold, Waiting {
  readonly request: RequestRecord;
  readonly priority: Priority;
  readonly enteredAt: number;
  readonly dueAt: number;
  /** `released`: given back while the work goes on. */
  state: 'asking' | 'waiting' | 'held' | 'released' | 'over' = 'asking';
  readonly #onSettled: (permit: Permit, now: number) => void;
  #go: (() => void) | undefined;
  #refuse: ((refusal: Refusal) => void) | undefined;
  #inContext: ReturnType<typeof AsyncLocalStorage.snapshot> | undefined;

  constructor(
    request: RequestRecord,
    now: number,
    dueAt: number,
    onSettled: (permit: Permit, now: number) => void,
  ) {
    this.request = request;
    this.priority = request.priority;
    this.enteredAt = now;
    this.dueAt = dueAt;
    this.#onSettled = onSettled;
  }

  /** Told from now on when the request, its handler or the last of its calls has ended. */
  hold(): void {
    if (this.request.holds === undefined) this.request.holds = [this];
    else this.request.holds.push(this);
  }

  /** What comes after the wait runs in this context; the releaser's is another request's. */
  wait(go: () => void, refuse: (refusal: Refusal) => void): void {
    this.state = 'waiting';
    this.#go = go;
    this.#refuse = refuse;
    this.#inContext = AsyncLocalStorage.snapshot();
    this.hold();
  }

  /** Not at once: the releaser's code is running, and what the handler throws must not get into it. */
  go(): void {
    const [go, inContext] = [this.#go, this.#inContext];
    this.#letGo();
    if (go !== undefined) queueMicrotask(() => inContext?.(go));
  }

  refuse(refusal: Refusal): void {
    const [refuse, inContext] = [this.#refuse, this.#inContext];
    this.#letGo();
    if (refuse !== undefined) queueMicrotask(() => inContext?.(refuse, refusal));
  }

  settle(now: number): void {
    this.#onSettled(this, now);
  }

  #letGo(): void {
    this.#go = undefined;
    this.#refuse = undefined;
    this.#inContext = undefined;
  }
}
