import type { OutgoingHeader } from '../../src/carriage.ts';
import type { CallRecord } from '../../src/records.ts';
import type { Hooks } from '../adapter.ts';
import type { HeaderLine } from './header-block.ts';

/** Sends the call as of now, and gives those of the named headers that have something to say. */
export function dispatchLines(
  hooks: Hooks,
  call: CallRecord,
  names: readonly OutgoingHeader[],
  now: number,
): readonly HeaderLine[] {
  const remainingMs = hooks.calls.dispatch(call, now);
  let lines: HeaderLine[] | undefined;
  for (const name of names) {
    const value = hooks.carriage.render(name, call, remainingMs);
    if (value === undefined) continue;
    // Usually the only one: a list that is empty at first would get 17 places.
    if (lines === undefined) lines = [{ name, value }];
    else lines.push({ name, value });
  }
  return lines ?? [];
}
