/**
 * Express. From 5.3 on its router tells of every handler on a channel. What is older publishes nothing and is
 * wrapped: see express-layers.ts, also for what cannot be seen there.
 */
import type { Adapter, Hooks } from './adapter.ts';
import { wrapExpress } from './express-layers.ts';
import { type ExpressRequest, ExpressRoutes, type HandlerCall } from './express-routes.ts';
import { wrappedModule } from './wrapped-module.ts';

const CHANNEL = 'tracing:express.router.request';
/** With `Route`, `Router` and their layers as they are wrapped; from 5.3 on the channel is used instead. */
const WRAPPED_VERSIONS = ['>=4.0.0 <6'];

export const express: Adapter = {
  name: 'express',
  start(hooks) {
    const watch = new ChannelWatch(hooks);
    const undos = [
      hooks.subscribe(`${CHANNEL}:start`, (message) => watch.onStart(message)),
      hooks.subscribe(`${CHANNEL}:end`, (message) => watch.onEnd(message)),
      hooks.subscribe(`${CHANNEL}:asyncEnd`, (message) => watch.onAsyncEnd(message)),
    ];
    return () => {
      for (const undo of undos) undo();
    };
  },
  modules: (hooks) => [wrappedModule('express', WRAPPED_VERSIONS, (exports) => wrapExpress(exports, hooks))],
};

/** One message per call of a handler, the same object on all channels of the call. */
interface LayerMessage {
  readonly req: ExpressRequest;
  readonly res: HandlerCall['response'];
  readonly layer: { readonly method?: string | undefined };
  readonly handler: (...args: unknown[]) => unknown;
  /** Of several patterns the one that matched. */
  readonly route: unknown;
  /** Only for handlers of parameters. */
  readonly param?: string;
  readonly errorHandler?: boolean;
}

class ChannelWatch {
  readonly #routes: ExpressRoutes;
  readonly #calls = new WeakMap<object, HandlerCall>();

  constructor(hooks: Hooks) {
    this.#routes = new ExpressRoutes(hooks);
  }

  onStart(message: unknown): void {
    // Express's own channel, with the shape that it documents.
    const {
      req: request,
      res: response,
      layer,
      handler,
      route: pattern,
      param,
      errorHandler,
    } = message as LayerMessage;
    if (param !== undefined || errorHandler === true) return;
    if (!('method' in layer)) {
      this.#routes.mounted(request, pattern);
      return;
    }
    const anyMethod = layer.method === undefined;
    const call = this.#routes.starts({ request, response, handle: handler, pattern, anyMethod });
    if (call !== undefined) this.#calls.set(message as object, call); // Taken apart above.
  }

  onEnd(message: unknown): void {
    if (typeof message !== 'object' || message === null) return;
    const call = this.#calls.get(message);
    // Until a promise is settled the message has neither.
    if (call !== undefined) this.#routes.returned(call, !('result' in message || 'error' in message));
  }

  onAsyncEnd(message: unknown): void {
    const call = typeof message === 'object' && message !== null ? this.#calls.get(message) : undefined;
    if (call !== undefined) this.#routes.settled(call);
  }
}
