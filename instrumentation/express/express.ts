/**
 * Express. From 5.3 on its router tells of every handler on a channel. What is older publishes nothing and is
 * wrapped: see express-layers.ts, also for what cannot be seen there.
 */
import type { Adapter, Hooks } from '../adapter.ts';
import { wrappedModule } from '../shared/wrapped-module.ts';
import { wrapExpress } from './express-layers.ts';
import { ExpressRoutes, type HandlerRun } from './express-routes.ts';

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

/**
 * One message per call of a handler, the same object on all channels of the call. What is put on it is meant to be:
 * Node calls it a "shared object to correlate events through".
 */
interface LayerMessage extends HandlerRun {
  /** Only for handlers of parameters. */
  readonly param?: string;
  readonly errorHandler?: boolean;
  /** Not there before the handler has returned something that is no promise, or until the promise is settled. */
  readonly result?: unknown;
  readonly error?: unknown;
}

class ChannelWatch {
  readonly #routes: ExpressRoutes;

  constructor(hooks: Hooks) {
    this.#routes = new ExpressRoutes(hooks);
  }

  onStart(message: LayerMessage): void {
    if (message.param !== undefined || message.errorHandler === true) return;
    if ('method' in message.layer) this.#routes.starts(message);
    else this.#routes.mounted(message.req, message.route);
  }

  onEnd(message: LayerMessage): void {
    this.#routes.returned(message, !('result' in message || 'error' in message));
  }

  onAsyncEnd(message: LayerMessage): void {
    this.#routes.settled(message);
  }
}
