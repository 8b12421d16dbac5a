/**
 * Wraps methods of a library by plain assignment. Not by `_wrap` of OpenTelemetry's InstrumentationBase: that one
 * first takes off whatever wrapper is there, so two users of it on one method undo each other.
 */
import type { Undo } from '../adapter.ts';

// A library's methods take and give anything, and are handed through as they are.
export type Method = (this: unknown, ...args: unknown[]) => unknown;

/** Runs in place of a method. `inner` is the method itself; it must be called once, with `self` and `args`. */
export type Around = (self: object, args: unknown[], inner: Method) => unknown;

/** Runs before a method, with the method's first argument. Must not throw. Costs no list of the arguments. */
export type Before = (self: object, first: unknown) => void;

/** Runs after a method that has returned, with its first two arguments. Must not throw. Costs no list either. */
export type After = (self: object, result: unknown, first: unknown, second: unknown) => void;

const CLAIMED = Symbol.for('otel-time-budget.wrapped');
const SHIMMED = '__wrapped';

/**
 * Wraps the methods that `owner` has. An owner that is wrapped already, even by another copy of this package, is
 * left alone, so that a call is never recorded twice. The undo works under a wrapper that came later, too.
 */
export function wrapMethods(
  owner: object,
  {
    around: arounds = {},
    before: befores = {},
    after: afters = {},
  }: {
    readonly around?: Readonly<Record<string, Around>>;
    readonly before?: Readonly<Record<string, Before>>;
    readonly after?: Readonly<Record<string, After>>;
  },
): Undo {
  const claimed = claimedOwners();
  if (claimed.has(owner)) return () => {};
  claimed.add(owner);
  const undos = [
    ...Object.entries(arounds).map(([name, around]) =>
      wrapMethod(owner, name, (wrap) => within(wrap, around)),
    ),
    ...Object.entries(befores).map(([name, before]) =>
      wrapMethod(owner, name, (wrap) => precededBy(wrap, before)),
    ),
    ...Object.entries(afters).map(([name, after]) =>
      wrapMethod(owner, name, (wrap) => followedBy(wrap, after)),
    ),
  ];
  return () => {
    for (const undo of undos) undo();
    claimed.delete(owner);
  };
}

/** True for a class whose instances have methods wrapped by `wrapMethods`, inherited ones included. */
export function isClaimed(prototype: unknown): boolean {
  const claimed = claimedOwners();
  let owner: unknown = prototype;
  while (typeof owner === 'object' && owner !== null) {
    if (claimed.has(owner)) return true;
    owner = Object.getPrototypeOf(owner);
  }
  return false;
}

/** A method that is wrapped: whether ours still has a part in it, and the method itself. */
interface Wrap {
  on: boolean;
  inner: Method;
}

function within(wrap: Wrap, around: Around): Method {
  return function (this: unknown, ...args: unknown[]): unknown {
    return wrap.on && isObject(this) ? around(this, args, wrap.inner) : wrap.inner.apply(this, args);
  };
}

function precededBy(wrap: Wrap, before: Before): Method {
  return function (this: unknown, first: unknown): unknown {
    if (wrap.on && isObject(this)) before(this, first);
    // biome-ignore lint/complexity/noArguments: handed through like this it is never made, a list of its own is
    return Reflect.apply(wrap.inner, this, arguments);
  };
}

function followedBy(wrap: Wrap, after: After): Method {
  return function (this: unknown, first: unknown, second: unknown): unknown {
    // biome-ignore lint/complexity/noArguments: as above
    const result = Reflect.apply(wrap.inner, this, arguments);
    if (wrap.on && isObject(this)) after(this, result, first, second);
    return result;
  };
}

/** A method called without its object fails in the library, in the library's words. */
function isObject(self: unknown): self is object {
  return (typeof self === 'object' && self !== null) || typeof self === 'function';
}

function wrapMethod(owner: object, name: string, make: (wrap: Wrap) => Method): Undo {
  const original: unknown = Reflect.get(owner, name);
  if (typeof original !== 'function') return () => {};
  // Checked to be a function just above.
  const wrap: Wrap = { on: true, inner: original as Method };
  const wrapped = make(wrap);
  Object.defineProperty(wrapped, 'name', { value: original.name, configurable: true });
  Object.defineProperty(wrapped, 'length', { value: original.length, configurable: true });
  if (SHIMMED in original) passOn(wrapped, wrap);
  Reflect.set(owner, name, wrapped);
  return () => {
    wrap.on = false;
    if (Reflect.get(owner, name) === wrapped) Reflect.set(owner, name, wrap.inner);
  };
}

/**
 * OpenTelemetry patches pg twice and takes its first patch off before the second, if it sees it. Under a wrapper
 * of ours it would not, and would trace each statement twice: so ours answers for it, and lets go of it when asked.
 */
function passOn(wrapped: Method, wrap: Wrap): void {
  Object.defineProperties(wrapped, {
    [SHIMMED]: { value: true, configurable: true },
    __original: { get: () => wrap.inner, configurable: true },
    __unwrap: {
      value: () => {
        const original: unknown = Reflect.get(wrap.inner, '__original');
        // Its `__original` is the method that it wrapped.
        if (typeof original === 'function') wrap.inner = original as Method;
      },
      configurable: true,
    },
  });
}

function claimedOwners(): WeakSet<object> {
  const known: unknown = Reflect.get(globalThis, CLAIMED);
  if (known instanceof WeakSet) return known;
  const claimed = new WeakSet<object>();
  Reflect.set(globalThis, CLAIMED, claimed);
  return claimed;
}
