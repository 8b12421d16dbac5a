/**
 * Express before 5.3, by plain wraps around the layers of its router. What cannot be seen:
 * - with Express 4, when an async handler is over: Express drops its promise, and whoever watched it would take
 *   its rejection away from the process. The end of the reply is taken for it.
 * - which of several patterns of one route or mount matched: their list is the name.
 * - error handlers and handlers of parameters, which are not the operation's.
 */
import type { Hooks, Undo } from '../adapter.ts';
import { type Method, wrapMethods } from '../shared/plain-wrap.ts';
import { memberOf } from '../shared/wrapped-module.ts';
import { type ExpressRequest, ExpressRoutes, type HandlerRun } from './express-routes.ts';

interface Layer {
  handle: Method;
  /** Own property of a route's handlers only, undefined for those of `all`. */
  readonly method?: string | undefined;
  /** On the layer that leads into a route. */
  readonly route?: unknown;
}

/** Wraps what `require('express')` returns, unless its router tells of its handlers itself. */
export function wrapExpress(exports: unknown, hooks: Hooks): Undo {
  const layer = hooks.attempt(() => sampleLayer(memberOf(exports, 'Route')));
  // Came with the channel in router 2.3, which an older Express may have as well.
  if (layer === undefined || 'rawPath' in layer) return () => {};
  return wrapLayers(exports, layer, hooks);
}

/** `sample` is any layer; all of them share its prototype. */
export function wrapLayers(exports: unknown, sample: object, hooks: Hooks): Undo {
  const wraps = new LayerWraps(hooks);
  const router = memberOf(exports, 'Router');
  const prototype = memberOf(router, 'prototype');
  // The router of Express 4 is a function that every router inherits from.
  const routers = typeof memberOf(prototype, 'use') === 'function' ? prototype : router;
  const layers: unknown = Object.getPrototypeOf(sample);
  const undos = [
    isObject(layers)
      ? wrapMethods(layers, {
          around: {
            handle_request: (self, args, inner) => wraps.handle(self, args, inner, false),
            handleRequest: (self, args, inner) => wraps.handle(self, args, inner, true),
          },
        })
      : () => {},
    isObject(routers)
      ? wrapMethods(routers, { around: { use: (self, args, inner) => wraps.use(self, args, inner) } })
      : () => {},
  ];
  return () => {
    for (const undo of undos) undo();
  };
}

/** Layers are not exported, but a route is made of them. */
export function sampleLayer(route: unknown): object | undefined {
  if (typeof route !== 'function') return undefined;
  const made: unknown = Reflect.construct(route, ['/']);
  const all = memberOf(made, 'all');
  if (typeof all !== 'function') return undefined;
  Reflect.apply(all, made, [() => {}]);
  const layer = memberOf(memberOf(made, 'stack'), '0');
  return isObject(layer) ? layer : undefined;
}

class LayerWraps {
  readonly #hooks: Hooks;
  readonly #routes: ExpressRoutes;
  /** What a layer was mounted under; the layer itself has a matcher only. */
  readonly #patterns = new WeakMap<object, unknown>();

  constructor(hooks: Hooks) {
    this.#hooks = hooks;
    this.#routes = new ExpressRoutes(hooks);
  }

  use(self: object, args: unknown[], inner: Method): unknown {
    const before = this.#hooks.attempt(() => stackOf(self).length) ?? 0;
    const result = inner.apply(self, args);
    this.#hooks.attempt(() => {
      const pattern = isPattern(args[0]) ? args[0] : '/';
      for (const layer of stackOf(self).slice(before)) this.#patterns.set(layer, pattern);
    });
    return result;
  }

  /** `awaits`: the router deals with a rejection of the handler's promise itself, so that it may be watched. */
  handle(self: object, args: unknown[], inner: Method, awaits: boolean): unknown {
    const layer = self as Layer; // The prototype is that of Express's layers.
    let pending = false;
    const run = this.#hooks.attempt(() => this.#starts(layer, args));
    if (run === undefined) return inner.apply(self, args);
    const settled = this.#hooks.guard(() => this.#routes.settled(run));
    const watched = awaits
      ? onPromise(layer, (promise) => {
          pending = true;
          // Not its own `then`, which may do more.
          Reflect.apply(Promise.prototype.then, promise, [settled, settled]);
        })
      : self;
    try {
      return inner.apply(watched, args);
    } finally {
      this.#hooks.attempt(() => this.#routes.returned(run, pending));
    }
  }

  #starts(layer: Layer, args: unknown[]): HandlerRun | undefined {
    // What Express hands to every handler; one with more parameters is for errors and will not be called.
    const [req, res] = args as [ExpressRequest, HandlerRun['res']];
    if (layer.handle.length > 3 || layer.route !== undefined) return undefined;
    if (!('method' in layer)) {
      const pattern = this.#patterns.get(layer);
      if (pattern !== undefined) this.#routes.mounted(req, pattern);
      return undefined;
    }
    const route = memberOf(memberOf(req, 'route'), 'path');
    const run: HandlerRun = { req, res, layer, handler: layer.handle, route };
    return this.#routes.starts(run) ? run : undefined;
  }
}

/** The layer, as its own methods see it, with a handler that shows its promise. */
function onPromise(layer: Layer, tell: (promise: Promise<unknown>) => void): object {
  const { handle } = layer;
  const shown = function (this: unknown, ...args: unknown[]): unknown {
    const result = handle.apply(this, args);
    if (result instanceof Promise) tell(result);
    return result;
  };
  return Object.create(layer, { handle: { value: shown } });
}

function isPattern(first: unknown): boolean {
  let one = first;
  while (Array.isArray(one) && one.length > 0) one = one[0];
  return typeof one !== 'function';
}

function stackOf(router: object): object[] {
  const stack = memberOf(router, 'stack');
  return Array.isArray(stack) ? stack.filter(isObject) : [];
}

function isObject(value: unknown): value is object {
  return (typeof value === 'object' && value !== null) || typeof value === 'function';
}
