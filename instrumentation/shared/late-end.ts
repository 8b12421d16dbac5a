import type { ServerResponse } from 'node:http';
import type { RequestRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import { putOwnMethod } from './own-method.ts';

/**
 * The request is over but its handler is not, and no framework tells its end: then the end of its useless reply
 * does. Puts an `end` of its own on this response, which takes itself away at the first call and changes nothing
 * else. A handler that notices and stops without a reply ends unseen.
 */
export function watchLateEnd(hooks: Hooks, response: ServerResponse, record: RequestRecord): void {
  const before = Object.getOwnPropertyDescriptor(response, 'end');
  const inner: unknown = response.end;
  if (typeof inner !== 'function') return;
  const seen = hooks.guard(() => {
    if (response.end === end) restore(response, before);
    hooks.recorder.handlerEnded(record, hooks.now());
  });
  function end(this: unknown, ...args: unknown[]): unknown {
    seen();
    return Reflect.apply(inner as () => unknown, this, args); // Checked to be a function above.
  }
  Object.defineProperty(end, 'length', { value: inner.length, configurable: true });
  putOwnMethod(response, 'end', end);
}

function restore(response: ServerResponse, before: PropertyDescriptor | undefined): void {
  if (before === undefined) Reflect.deleteProperty(response, 'end');
  else Object.defineProperty(response, 'end', before);
}
