/** How long a message has been on its way: the part of its budget that is gone before anybody has it in hand. */

/** What is older counts as this old, so that a sender's clock in 1970 does not spoil every sum: seven days. */
export const MAX_MESSAGE_AGE_MS = 604_800_000;

export interface MessageTimes {
  /** Age by the broker's own time; what is no finite number counts as not known. */
  readonly ageMs: unknown;
  /** Wall clock of the sender when it sent the message, ms since 1970. */
  readonly sentWallMs: number | undefined;
  /** Wall clock of this process now. */
  readonly wallNowMs: number;
  /** What the message says it had left when it was sent. */
  readonly remainingMs: number | undefined;
}

/**
 * Milliseconds, >= 0, so that it never lengthens a budget: a message from the future was sent now. The broker's time
 * goes before `sent`, which takes two wall clocks to agree. 0 where neither is known. A budget that its age exceeds is
 * over, however large both are.
 */
export function messageAgeMs({ ageMs, sentWallMs, wallNowMs, remainingMs }: MessageTimes): number {
  const isKnown = typeof ageMs === 'number' && Number.isFinite(ageMs);
  const age = isKnown ? ageMs : wallNowMs - (sentWallMs ?? wallNowMs);
  return Math.min(Math.max(0, age), Math.max(MAX_MESSAGE_AGE_MS, remainingMs ?? 0));
}
