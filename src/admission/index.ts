/**
 * Admission and overload: gates with a bounded queue, queues and bulkheads of others measured, and degraded modes. No
 * library is imported. Every function is safe to call anywhere, as those of the main entry.
 */
export { type Admission, admission } from './admission.ts';
export { watchBulkhead } from './bulkhead.ts';
export { type DegradedFacts, type DegradedMode, degradedMode } from './degraded-mode.ts';
export type { AdmissionOptions } from './options.ts';
export { type QueueState, watchQueue } from './watch-queue.ts';
