import type { EventEmitter } from 'node:events';

/**
 * Makes room for listeners of ours, at most one per event: Node warns of a leak when an emitter has more listeners
 * of an event than its limit, and a service that stays within it must not be warned because of us.
 */
export function makeRoom(emitter: EventEmitter): void {
  const most = emitter.getMaxListeners();
  // 0 and Infinity: no limit.
  if (most > 0 && most < Infinity) emitter.setMaxListeners(most + 1);
}
