import { activeRecorder } from './active.ts';
import type { Recorder } from './recorder.ts';

/**
 * What `work` of ours gives; undefined where it fails: that is counted, and never reaches the service or its library.
 * Counted by `recorder`, where the package is started.
 */
export function guarded<T>(work: () => T, recorder: Recorder | undefined = activeRecorder()): T | undefined {
  try {
    return work();
  } catch {
    recorder?.families.internalErrors.cell().add(1);
    return undefined;
  }
}
