/**
 * The queue of undici's pools (`connections: n`). A request that waits there is announced on no channel until a
 * client takes it, and then, in undici 6 and 7, in the context of the request whose end made room. So the queue is
 * looked at where a pool and a client take requests, by the symbols that these methods have for names.
 */
import { endingOf } from '../../src/call-ending.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks, Undo } from '../adapter.ts';
import { putOwnMethod } from '../shared/own-method.ts';

/** What a pool or a client is given; both are the application's or a library's. */
type Dispatch = (this: object, options: object, handler: object) => unknown;

/** Marks a method that is wrapped, by whichever copy of this package. */
const WRAPPED = Symbol.for('otel-time-budget.undici-pool');
/** A queued handler hears of its end only if it ends in the queue: `onError` in undici 6 and 7. */
const ERROR_METHODS = ['onError', 'onResponseError'];

export class UndiciPools {
  readonly #hooks: Hooks;
  readonly #begin: (origin: string) => CallRecord | undefined;
  readonly #queued = new WeakMap<object, { readonly call: CallRecord; readonly restore: Undo }>();
  #resumed: CallRecord | undefined;

  /** `begin` begins a call to an origin in the current scope; undefined for one that is left out. */
  constructor(hooks: Hooks, begin: (origin: string) => CallRecord | undefined) {
    this.#hooks = hooks;
    this.#begin = begin;
  }

  /** Wraps what `require('undici')` returns. Without the methods as they are known nothing is wrapped. */
  wrap(undici: unknown): Undo {
    const pool = ownerOf(undici, 'Pool', 'dispatch');
    const client = ownerOf(undici, 'Client', 'dispatch');
    if (pool === undefined || client === undefined || pool.owner === client.owner) return () => {};
    const undoPool = replace(pool, (inner) => this.#aroundPool(inner));
    const undoClient = replace(client, (inner) => this.#aroundClient(inner));
    return () => {
      undoPool();
      undoClient();
    };
  }

  /** The call of the request that a client has just taken from a queue; once. */
  takeResumed(): CallRecord | undefined {
    const call = this.#resumed;
    this.#resumed = undefined;
    return call;
  }

  #aroundPool(inner: Dispatch): Dispatch {
    // The same for all pools of one copy of undici, and looked up once.
    let lengthKey: symbol | undefined;
    const lengthOf = (pool: object): unknown => {
      lengthKey ??= symbolOf(pool, 'queued');
      return lengthKey === undefined ? undefined : Reflect.get(pool, lengthKey);
    };
    const enqueued = this.#hooks.guard((pool: object, options: object, handler: object) => {
      const origin = originOf(options) ?? originOf({ origin: symbolValue(pool, 'url') });
      const call = origin === undefined ? undefined : this.#begin(origin);
      if (call !== undefined) this.#queued.set(handler, { call, restore: this.#endInQueue(handler, call) });
    });
    return function (this: object, options, handler) {
      const before = lengthOf(this);
      const result = Reflect.apply(inner, this, [options, handler]);
      const after = lengthOf(this);
      if (typeof before === 'number' && typeof after === 'number' && after > before) {
        enqueued(this, options, handler);
      }
      return result;
    };
  }

  #aroundClient(inner: Dispatch): Dispatch {
    const resume = (handler: object) => this.#resume(handler);
    const dropped = this.#hooks.guard((call: CallRecord) => this.#drop(call));
    return function (this: object, options, handler) {
      const call = resume(handler);
      if (call === undefined) return Reflect.apply(inner, this, [options, handler]);
      try {
        return Reflect.apply(inner, this, [options, handler]);
      } finally {
        dropped(call);
      }
    };
  }

  #resume(handler: object): CallRecord | undefined {
    const queued = this.#queued.get(handler);
    if (queued === undefined) return undefined;
    this.#queued.delete(handler);
    queued.restore();
    this.#resumed = queued.call;
    return queued.call;
  }

  /** The client refused the request before it became one. */
  #drop(call: CallRecord): void {
    if (this.takeResumed() === call) this.#hooks.calls.end(call, 'failed', this.#hooks.now());
  }

  /** Listens on the handler while it is queued: aborted (undici 8), or its pool destroyed. */
  #endInQueue(handler: object, call: CallRecord): Undo {
    const restores = ERROR_METHODS.map((name) => {
      const inner: unknown = Reflect.get(handler, name);
      if (typeof inner !== 'function') return () => {};
      const before = Object.getOwnPropertyDescriptor(handler, name);
      const tell = this.#hooks.guard((error: unknown) => {
        this.#hooks.calls.end(call, endingOf(error) ?? 'aborted', this.#hooks.now());
      });
      const own = function (this: unknown, ...args: unknown[]): unknown {
        restore();
        tell(args.at(-1));
        return Reflect.apply(inner, this, args);
      };
      const restore = () => {
        if (Reflect.get(handler, name) !== own) return;
        if (before === undefined) Reflect.deleteProperty(handler, name);
        else Reflect.defineProperty(handler, name, before);
      };
      putOwnMethod(handler, name, own);
      return restore;
    });
    return () => {
      for (const restore of restores) restore();
    };
  }
}

interface Place {
  readonly owner: object;
  readonly key: symbol;
}

/** Where a class of undici has a method whose name is a symbol, on itself or on one that it extends. */
function ownerOf(undici: unknown, className: string, method: string): Place | undefined {
  const type: unknown =
    typeof undici === 'object' && undici !== null ? Reflect.get(undici, className) : undefined;
  let owner: unknown = typeof type === 'function' ? Reflect.get(type, 'prototype') : undefined;
  while (typeof owner === 'object' && owner !== null) {
    const key = symbolOf(owner, method);
    if (key !== undefined) return { owner, key };
    owner = Object.getPrototypeOf(owner);
  }
  return undefined;
}

function replace({ owner, key }: Place, around: (inner: Dispatch) => Dispatch): Undo {
  const inner: unknown = Reflect.get(owner, key);
  if (typeof inner !== 'function' || WRAPPED in inner) return () => {};
  // Checked to be a function; undici calls it with options and handler.
  const wrapped = around(inner as Dispatch);
  Reflect.set(wrapped, WRAPPED, true);
  Reflect.set(owner, key, wrapped);
  return () => {
    if (Reflect.get(owner, key) === wrapped) Reflect.set(owner, key, inner);
  };
}

function symbolOf(object: object, description: string): symbol | undefined {
  return Object.getOwnPropertySymbols(object).find((symbol) => symbol.description === description);
}

function symbolValue(object: object, description: string): unknown {
  const key = symbolOf(object, description);
  return key === undefined ? undefined : Reflect.get(object, key);
}

/** An origin is a text or a URL, of whichever URL class. */
function originOf(options: object): string | undefined {
  const origin: unknown = Reflect.get(options, 'origin');
  if (typeof origin === 'string') return origin;
  const text: unknown =
    typeof origin === 'object' && origin !== null ? Reflect.get(origin, 'origin') : undefined;
  return typeof text === 'string' ? text : undefined;
}
