/**
 * The handlers of a request's route, as a framework tells of them: when the last of them is over, which may be
 * long after the reply, and the scope they run in, by which a reply from elsewhere is told from their own.
 */
import type { RequestRecord, Scope } from './records.ts';

export class HandlerWatch implements Scope {
  readonly request: RequestRecord;
  /** What the first handler was called in: handlers called in anything else have a narrower scope of their own. */
  readonly outer: Scope;
  #running = 0;
  #latest: object | undefined;

  private constructor(outer: Scope) {
    this.request = outer.request;
    this.outer = outer;
  }

  /** The watch of the request that a scope belongs to. */
  static of(scope: Scope): HandlerWatch {
    const known = scope.request.handlerScope;
    if (known instanceof HandlerWatch) return known;
    const watch = new HandlerWatch(scope);
    scope.request.handlerScope = watch;
    return watch;
  }

  /** Read late: the operation's entry policy may have moved it. */
  get deadlineAt(): number {
    return this.outer.deadlineAt;
  }

  get detached(): boolean {
    return this.outer.detached;
  }

  /** A handler is called. `handler` is whatever tells it from the others. */
  started(handler: object): void {
    this.#running++;
    this.#latest = handler;
    this.request.handlerTracked = true;
  }

  /**
   * A handler has returned without a promise. Unless it has replied, or has passed the request on, it works on
   * in callbacks, and nothing tells its end but the end of the reply.
   */
  returned(handler: object, replied: boolean): void {
    this.#running--;
    if (handler === this.#latest && !replied) this.request.handlerTracked = false;
    this.#letGo();
  }

  /** The promise of a handler has settled. */
  settled(): void {
    this.#running--;
    this.#letGo();
  }

  /**
   * A connection that was opened in here for a pool keeps this scope for as long as it lives: what is reached
   * from here must not be the request and its response (measured: 11 KB for each connection).
   */
  #letGo(): void {
    if (this.#running === 0) this.#latest = undefined;
  }

  /** No handler is running any more, and the last one's end was seen. */
  get isOver(): boolean {
    return this.#running === 0 && this.request.handlerTracked;
  }
}
