import type { Call } from '../../src/core/call.ts';

/** Milliseconds by phase index, of its own; undefined for a phase that did not happen. */
export function phaseSums(call: Call, toAt: number): (number | undefined)[] {
  return Array.from(call.phaseTimes(toAt), (ms) => (Number.isNaN(ms) ? undefined : ms));
}
