/** How a call over HTTP ended, where it was not by reading the whole answer. */
import type { CallEnding } from './call-recorder.ts';
import type { CallRecord } from './records.ts';

/** Timers of undici, Node, axios and got. ETIMEDOUT is also the system's word for a connect that nobody answered. */
const TIMEOUT_CODES: ReadonlySet<string> = new Set([
  'ETIMEDOUT',
  'ESOCKETTIMEDOUT',
  'ERR_SOCKET_CONNECTION_TIMEOUT',
  'UND_ERR_HEADERS_TIMEOUT',
  'UND_ERR_BODY_TIMEOUT',
  'UND_ERR_CONNECT_TIMEOUT',
]);
const ABORT_CODES: ReadonlySet<string> = new Set(['ABORT_ERR', 'UND_ERR_ABORTED', 'ERR_CANCELED']);
const ABORT_NAMES: ReadonlySet<string> = new Set(['AbortError', 'CanceledError', 'BudgetError']);
/** axios's word for its own timeout, and the system's for a connection that its host gave up. */
const AXIOS_TIMEOUT = 'ECONNABORTED';

/** Wrappers seen so far are one deep (`fetch failed`, AbortError of node:http); the bound is for circles. */
const MAX_CAUSES = 4;

/**
 * undefined where the error does not tell: it has no code, as an application's own reason for giving up mostly
 * has none. A timeout inside an abort is a timeout: node:http reports `AbortSignal.timeout` so.
 */
export function endingOf(error: unknown): Exclude<CallEnding, 'answered'> | undefined {
  let ending: 'aborted' | 'failed' | undefined;
  let current = error;
  for (let depth = 0; depth <= MAX_CAUSES && typeof current === 'object' && current !== null; depth++) {
    const name = textUnder(current, 'name');
    const code = textUnder(current, 'code');
    if (isTimeout(current, name, code)) return 'timed_out';
    if (ABORT_NAMES.has(name ?? '') || ABORT_CODES.has(code ?? '')) ending = 'aborted';
    else if (code !== undefined) ending ??= 'failed';
    current = Reflect.get(current, 'cause');
  }
  return ending;
}

/**
 * The application had the head of the answer and let go of the body: that is an answer, and no cancelled call,
 * unless there was a reason to cancel by then. How long the rest would have taken is not known, so it teaches
 * nothing about what is usual.
 */
export function endingOfDiscard(call: CallRecord, now: number): 'answered' | 'aborted' {
  call.teaches = false;
  const isUseless = now >= call.deadlineAt || call.scope?.request.cancelSource !== undefined;
  return isUseless ? 'aborted' : 'answered';
}

function isTimeout(error: object, name: string | undefined, code: string | undefined): boolean {
  if (name === 'TimeoutError' || TIMEOUT_CODES.has(code ?? '')) return true;
  return code === AXIOS_TIMEOUT && !('errno' in error);
}

/** The text under this key of an error, which may be anything. */
export function textUnder(error: unknown, key: string): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  const value: unknown = Reflect.get(error, key);
  return typeof value === 'string' ? value : undefined;
}
