/**
 * What is left to do after a fault: outcomes that nobody knows, and old work that is let run again. Every function is
 * safe to call anywhere, as those of the main entry.
 */
export { RECONCILED_RESULTS, type ReconciledResult } from '../core/terms.ts';
export { reconcile, recordUnknown } from './unknown.ts';
