/** What a gate writes on the span of the request that it decided on (requirement S-20). */
import type { RequestRecord } from '../records.ts';
import { ATTR, EVENT, type GateRefusal } from '../telemetry/names.ts';

/** The wait is over and the permit taken. */
export function describeEntry({ span }: RequestRecord, queue: string, waitedMs: number): void {
  span?.setAttribute(ATTR.admissionQueue, queue);
  span?.setAttribute(ATTR.admissionWait, waitedMs);
}

export function describeRefusal(
  request: RequestRecord,
  why: GateRefusal,
  at: { readonly queue: string; readonly waitedMs: number; readonly mode: string; readonly now: number },
): void {
  const { span, priority } = request;
  if (span === undefined || !span.isRecording()) return;
  const remainingMs = request.remainingMs(at.now);
  span.addEvent(EVENT.refused, {
    [ATTR.refusalReason]: why,
    [ATTR.admissionQueue]: at.queue,
    [ATTR.admissionWait]: at.waitedMs,
    [ATTR.priority]: priority,
    [ATTR.mode]: at.mode,
    ...(remainingMs === undefined ? {} : { [ATTR.remaining]: remainingMs }),
  });
}
