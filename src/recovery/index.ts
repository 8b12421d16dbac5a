/**
 * What is left to do after a fault: outcomes that nobody knows, and old work that is let run again. Every function is
 * safe to call anywhere, as those of the main entry.
 */
export type { ReplayFacts, ReplayLimits } from '../core/replay-limit.ts';
export { RECONCILED_RESULTS, REPLAY_STOPS, type ReconciledResult, type ReplayStop } from '../core/terms.ts';
export { type Replay, type ReplayAnswer, type ReplayOptions, replay } from './replay.ts';
export { reconcile, recordUnknown } from './unknown.ts';
