/**
 * Express. From 5.3 on its router tells of every handler on a channel. What is older publishes nothing and is
 * wrapped: see express-layers.ts, also for what cannot be seen there.
 */
import type { Adapter, Hooks } from '../adapter.ts';
import { wrappedModule } from '../shared/wrapped-module.ts';
import { wrapExpress } from './express-layers.ts';
import { type ExpressRequest, ExpressRoutes, type HandlerCall } from './express-routes.ts';

const CHANNEL = 'tracing:express.router.request';
/** With `Route`, `Router` and their layers as they are wrapped; from 5.3 on the channel is used instead. */
const WRAPPED_VERSIONS = ['>=4.0.0 <6'];

export const express: Adapter = {
  name: 'express',
  start(hooks) {
    const watch = new ChannelWatch(hooks);
    // Express's own channels; the shape of the messages is the one that it documents.
    const undos = [
      hooks.subscribe(`${CHANNEL}:start`, (message) => watch.onStart(message as LayerMessage)),
      hooks.subscribe(`${CHANNEL}:end`, (message) => watch.onEnd(message as LayerMessage)),
      hooks.subscribe(`${CHANNEL}:asyncEnd`, (message) => watch.onAsyncEnd(message as LayerMessage)),
    ];
    return () => {
      for (const undo of undos) undo();
    };
  },
  modules: (hooks) => [wrappedModule('express', WRAPPED_VERSIONS, (exports) => wrapExpress(exports, hooks))],
};

/** Ours on a message. Node means them for that: "shared object to correlate events through". A WeakMap is dear here. */
const CALL = Symbol('otel-time-budget.call');

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
  /** Not there before the handler has returned something that is no promise, or until the promise is settled. */
  readonly result?: unknown;
  readonly error?: unknown;
  [CALL]?: HandlerCall;
}

class ChannelWatch {
  readonly #routes: ExpressRoutes;

  constructor(hooks: Hooks) {
    this.#routes = new ExpressRoutes(hooks);
  }

  onStart(message: LayerMessage): void {
    const { req: request, res: response, layer, handler, route: pattern } = message;
    if (message.param !== undefined || message.errorHandler === true) return;
    if (!('method' in layer)) {
      this.#routes.mounted(request, pattern);
      return;
    }
    const anyMethod = layer.method === undefined;
    const call = this.#routes.starts({ request, response, handle: handler, pattern, anyMethod });
    if (call !== undefined) message[CALL] = call;
  }

  onEnd(message: LayerMessage): void {
    const call = message[CALL];
    if (call !== undefined) this.#routes.returned(call, !('result' in message || 'error' in message));
  }

  onAsyncEnd(message: LayerMessage): void {
    const call = message[CALL];
    if (call !== undefined) this.#routes.settled(call);
  }
}
