/**
 * The recorder of this process, where `register` or the instrumentation class has started one. The key is a
 * global symbol, so that two copies of the package in one process share one recorder instead of counting twice.
 */
import type { Recorder } from './recorder.ts';

const KEY = Symbol.for('otel-time-budget.recorder.1');

type Holder = { [KEY]?: Recorder };
// The symbol is ours alone; nothing else is read from the global object.
const holder = globalThis as Holder;

export function activeRecorder(): Recorder | undefined {
  return holder[KEY];
}

/** False where another one is active: the first stays. */
export function activateRecorder(recorder: Recorder): boolean {
  if (holder[KEY] !== undefined) return false;
  holder[KEY] = recorder;
  return true;
}

export function deactivateRecorder(recorder: Recorder): void {
  if (holder[KEY] === recorder) delete holder[KEY];
}
