/**
 * got says on channels that it repeats a request, before it makes it. Its calls themselves are recorded where they
 * go out, through node:http; over HTTP/2 got is not seen.
 */
import type { Adapter, Hooks, Undo } from './adapter.ts';

const CHANNEL_RETRY = 'got:request:retry';
const CHANNEL_CREATE = 'got:request:create';
/** Repeats that got has announced and not begun: it waits in between. The oldest is forgotten. */
const MAX_WAITING = 256;

// got's own channels, each published with the members that its handler takes.
interface Message {
  readonly requestId: string;
  readonly retryCount: number;
  readonly url: string;
  readonly method: string;
}

export const got: Adapter = {
  name: 'got',
  start(hooks) {
    const undos = listen(hooks, new Map());
    return () => {
      for (const undo of undos) undo();
    };
  },
};

/** `waiting` holds the count of repeats by got's id of the request. */
function listen(hooks: Hooks, waiting: Map<string, number>): Undo[] {
  return [
    hooks.subscribe(CHANNEL_RETRY, (message) => {
      const { requestId, retryCount } = message as Message;
      if (!Number.isInteger(retryCount) || retryCount < 1) return;
      if (waiting.size >= MAX_WAITING) {
        for (const oldest of waiting.keys()) {
          waiting.delete(oldest);
          break;
        }
      }
      waiting.set(requestId, retryCount);
    }),
    hooks.subscribe(CHANNEL_CREATE, (message) => {
      const { requestId, url, method } = message as Message;
      const retryCount = waiting.get(requestId);
      if (retryCount === undefined) return;
      waiting.delete(requestId);
      const { host, pathname, search } = new URL(url);
      const declaration = { owner: 'got', attempt: retryCount + 1 } as const;
      hooks.calls.attempts.announce(host, method, `${pathname}${search}`, declaration);
    }),
  ];
}
