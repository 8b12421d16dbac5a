/** A repeat between the answer that lets it through and the call that it becomes. */
import type { Call } from './core/call.ts';
import type { AttemptKind, AttemptOwner } from './core/terms.ts';
import type { LiveRetryBudget } from './live-retry-budget.ts';

/** A repeat that was let through. Its call takes it up; what is left at the end of the request was given up. */
export interface PendingRepeat {
  readonly dependency: string;
  readonly budget: LiveRetryBudget | undefined;
  /** What was withdrawn for it; 0 where nothing was. */
  readonly paid: number;
  /** When its backoff is over. */
  readonly dueAt: number;
  /** The wait before it, as a term of the request's ledger. */
  readonly wait: Call | undefined;
  /** Who asked; undefined where that is a client library that the service did not write. */
  readonly owner: AttemptOwner | undefined;
  /** Ordinal of the attempt that it is; 2 = the first repeat. */
  readonly attempt: number;
  /** Attempts that may be made in all, the original included; undefined where nobody said. */
  readonly permitted: number | undefined;
  /** What it is after the failure that it was asked about, where its call itself does not tell. */
  readonly kind: Exclude<AttemptKind, 'original' | 'hedge'>;
}

/** What is known of a repeat that is let through, beside what it costs. */
export type RepeatFacts = Pick<PendingRepeat, 'owner' | 'attempt' | 'permitted' | 'kind'>;
