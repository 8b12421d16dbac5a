/** Which ends of an attempt are ones after which it may be repeated, and what its repeat is then. */
import type { AttemptKind, RepeatReason } from './terms.ts';

/** How an attempt failed. */
export interface AttemptFailure {
  readonly reason: RepeatReason;
  /** What the next attempt is after this one. */
  readonly next: Exclude<AttemptKind, 'original' | 'hedge'>;
}

type AttemptEnding = 'answered' | 'timed_out' | 'aborted' | 'failed';

/**
 * Why an attempt is one that may be repeated, or undefined for a success. Failed are: every end but an answer, and
 * the answers 408, 429 and 5xx. Other error answers are the caller's, and the same request would get them again.
 * `status` is undefined where no head of an answer came.
 */
export function failureOf(
  ending: AttemptEnding,
  status: number | undefined,
  wasSent: boolean,
): AttemptFailure | undefined {
  if (ending === 'answered' && !isErrorStatus(status)) return undefined;
  // Never sent: it loaded nothing. No answer: whether the work was done is not known. An answer: it was done.
  const next = !wasSent && status === undefined ? 'reconnect' : status === undefined ? 'resend' : 'reexecute';
  return { reason: reasonOf(ending, status, wasSent), next };
}

/** An answer after which the same request may be sent again. */
export function isErrorStatus(status: number | undefined): boolean {
  return status !== undefined && (status >= 500 || status === 429 || status === 408);
}

function reasonOf(ending: AttemptEnding, status: number | undefined, wasSent: boolean): RepeatReason {
  if (status === 429) return 'throttled';
  if (isErrorStatus(status)) return 'error_answer';
  if (ending === 'timed_out' || ending === 'aborted') return ending;
  if (status !== undefined) return 'broken_answer';
  return wasSent ? 'no_answer' : 'not_sent';
}
