import type { Recorder } from '../recorder.ts';

/** What `record` gives; undefined where it fails: that is counted, and never reaches the service. */
export function guarded<T>(recorder: Recorder, record: () => T): T | undefined {
  try {
    return record();
  } catch {
    recorder.families.internalErrors.cell().add(1);
    return undefined;
  }
}
