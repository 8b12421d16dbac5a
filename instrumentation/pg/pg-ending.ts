/** How a statement or a connection attempt of pg ended, read from its error. */
import { textUnder } from '../../src/call-ending.ts';
import type { CallEnding } from '../../src/call-recorder.ts';

/** pg and pg-pool give their own timeouts no code, only these words (pg 8.23, pg-pool 3.14). */
const CONNECT_TIMEOUT = 'timeout expired';
const CONNECT_TIMEOUTS: ReadonlySet<string> = new Set([
  CONNECT_TIMEOUT,
  'timeout exceeded when trying to connect',
  'Connection terminated due to connection timeout',
]);
export const READ_TIMEOUT = 'Query read timeout';
/** What pg says of a connection that ended under a statement, with or without "unexpectedly". */
const TERMINATED = 'Connection terminated';

/** A timer counts from the start of the step that sets it, so it may fire that much before its time is over. */
const TIMER_EARLY_MS = 5;

/** SQLSTATEs (PostgreSQL appendix A): cancelled, for a timeout or on request. */
const QUERY_CANCELED = '57014';
const TRANSACTION_TIMEOUT = '25P04';
/** A lock was not available: after lock_timeout, or at once for NOWAIT. */
const LOCK_NOT_AVAILABLE = '55P03';
/** Connection exceptions, and the server going away under its sessions. */
const LOST_CONNECTION = /^(?:08|57P|25P03)/;

/** A transaction's end, also as one of several statements; a comment in front does not hide it. */
const COMMITS = /(?:^|;|\*\/)\s*(?:commit|end|prepare\s+transaction)\b/i;

export interface PgFault {
  readonly ending: CallEnding;
  /**
   * What the server has said: that the work is over, or nothing, so that what it was sent may go on and take
   * effect. `not_asked`: pg refused the statement itself.
   */
  readonly server: 'answered' | 'silent' | 'not_asked';
}

export interface Circumstances {
  /** No statement was asked for yet, so an error answer is a connection that did not come about. */
  readonly connecting: boolean;
  /** A limit that the server was given for the statement has passed. */
  readonly limitReached: boolean;
}

export function readFault(error: unknown, circumstances: Circumstances): PgFault {
  const message = textUnder(error, 'message') ?? '';
  // Node's errors have codes too, some as long as an SQLSTATE (EPIPE); only the server's have a severity.
  const code = textUnder(error, 'severity') === undefined ? undefined : textUnder(error, 'code');
  if (code !== undefined) return { ending: endingOfState(code, message, circumstances), server: 'answered' };
  if (message === READ_TIMEOUT || CONNECT_TIMEOUTS.has(message))
    return { ending: 'timed_out', server: 'silent' };
  const isLost = message.startsWith(TERMINATED) || textUnder(error, 'syscall') !== undefined;
  return { ending: 'failed', server: isLost ? 'silent' : 'not_asked' };
}

/** The time to get a connection ran out: waiting for one of the pool's, or opening one. */
export function isConnectTimeout(error: unknown): boolean {
  return CONNECT_TIMEOUTS.has(textUnder(error, 'message') ?? '');
}

/**
 * Stands for the error of a connection, where only that there was one is known: a limit that has passed by then is
 * what ended it.
 */
export function connectError(
  error: unknown,
  startedAt: number,
  limitMs: number | undefined,
  now: number,
): unknown {
  const isOver = limitMs !== undefined && now - startedAt >= limitMs - TIMER_EARLY_MS;
  return error && isOver ? new Error(CONNECT_TIMEOUT) : error;
}

/** Whether a statement ends a transaction. Says yes to a look-alike in a string: unsure is what it is used for. */
export function commits(text: unknown): boolean {
  return typeof text === 'string' && COMMITS.test(text);
}

function endingOfState(code: string, message: string, circumstances: Circumstances): CallEnding {
  if (code === QUERY_CANCELED) return isByTimeout(message, circumstances) ? 'timed_out' : 'aborted';
  if (code === TRANSACTION_TIMEOUT) return 'timed_out';
  if (code === LOCK_NOT_AVAILABLE && message.includes('timeout')) return 'timed_out';
  return circumstances.connecting || LOST_CONNECTION.test(code) ? 'failed' : 'answered';
}

/** "due to statement timeout" or "due to user request", in the server's language: else the clock tells. */
function isByTimeout(message: string, circumstances: Circumstances): boolean {
  if (message.includes('user request')) return false;
  return message.includes('timeout') || circumstances.limitReached;
}
