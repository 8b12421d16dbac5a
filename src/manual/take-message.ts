/** A message as a request: its budget, the time that it waited in its broker, and what became of it. */
import { SpanKind } from '@opentelemetry/api';
import { activeRecorder } from '../active.ts';
import { arrive } from '../arrival.ts';
import { readArrivalAttempt } from '../core/arrival-attempt.ts';
import { messageAgeMs } from '../core/message-age.ts';
import { readBudget } from '../core/received.ts';
import { MAX_ATTEMPT } from '../core/wire-time-budget.ts';
import { currentScope, runInScope } from '../current.ts';
import { guarded } from '../guarded.ts';
import type { Recorder } from '../recorder.ts';
import type { RequestRecord } from '../records.ts';
import { releaseSignal } from '../scope-signal.ts';
import { activeSpan } from '../telemetry/otel-globals.ts';
import { whenSettled } from '../when-settled.ts';
import { headerTexts } from './header-texts.ts';

export interface MessageOptions {
  /** Name of the work in metrics. From a short, fixed list: the name of the queue or topic, never a key. */
  readonly operation: string;
  /**
   * How long the message has been on its way, in ms by the broker's own time, where the broker tells it. Left out:
   * from `sent` in our header and the wall clock.
   */
  readonly ageMs?: number | undefined;
  /** Which delivery it is, 1 = the first. From 2 on it is a repeat, and the broker's. */
  readonly deliveries?: number | undefined;
  /** Its sender is inside the trust boundary. Left out: true where the service trusts everybody, as inside a system. */
  readonly trusted?: boolean | undefined;
}

/**
 * Runs work for a message: a request of its own, wherever it is called. Its budget is that of the headers (our own or
 * another known format, as texts or Buffers), less the message's age. A message whose time is up is run all the same;
 * `remainingMs() <= 0` tells. Gives what the work gives, and its errors. Never throws by itself. Where the package was
 * not started the work just runs.
 */
export function takeMessage<T>(headers: unknown, work: () => T, options: MessageOptions): T {
  const recorder = activeRecorder();
  const record = recorder && guarded(() => open(recorder, headers, options), recorder);
  // A consumer is called in the context of whoever opened the connection, whose request this is not.
  if (recorder === undefined || record === undefined) return runInScope(undefined, work);
  return whenSettled(
    () => runInScope(record, work),
    (failed) => guarded(() => close(recorder, record, failed), recorder),
  );
}

function open(recorder: Recorder, given: unknown, options: Partial<MessageOptions> = {}): RequestRecord {
  const now = recorder.clock.now();
  // The two clocks at one moment: what is done in between would make the message older.
  const wallNowMs = Date.now();
  const trusted = options.trusted ?? recorder.config.isTrusted(undefined);
  const headers = headerTexts(given);
  const received = readBudget(headers, { trusted });
  const { sentWallMs, remainingMs } = received;
  const ageMs = messageAgeMs({ ageMs: options.ageMs, sentWallMs, remainingMs, wallNowMs });
  const record = arrive(recorder, received, trusted, nameOf(options.operation), now - ageMs, now);
  // Most of it was spent in the broker, while this process had other things to do or none.
  record.ownBusyMs = Math.min(ageMs, recorder.clock.waitMs(now));
  const { attempt, repeated } = readArrivalAttempt(headers, received, trusted);
  record.attempt = attempt;
  record.repeated = repeated;
  const { deliveries } = options;
  if (typeof deliveries === 'number' && deliveries >= 2) {
    recorder.workloads.repeat(record, 'broker', Math.floor(Math.min(deliveries, MAX_ATTEMPT)));
  }
  record.span = spanOfMessage();
  recorder.handling(record, undefined, now);
  if (record.operation !== undefined) recorder.admit(record, now, true);
  return record;
}

function close(recorder: Recorder, record: RequestRecord, failed: boolean): void {
  recorder.finish(record, { completed: true, status: failed ? 500 : undefined }, recorder.clock.now());
  releaseSignal(record);
}

function nameOf(operation: unknown): string | undefined {
  return typeof operation === 'string' && operation !== '' ? operation : undefined;
}

/** In the context of another request, only a span that says it is a consumer's is this message's. */
function spanOfMessage(): RequestRecord['span'] {
  const span = activeSpan();
  if (span?.isRecording() !== true) return undefined;
  return currentScope() === undefined || Reflect.get(span, 'kind') === SpanKind.CONSUMER ? span : undefined;
}
