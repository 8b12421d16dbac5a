/** Writes a record's final state on its span. What did not happen is left out. */
import type { Attributes, Span } from '@opentelemetry/api';
import { NO_DEPENDENCY, PHASES } from '../core/terms.ts';
import type { Typical } from '../core/usual.ts';
import type { CallRecord, RequestRecord } from '../records.ts';
import { ATTR, attrLedger, attrPhase, EVENT } from './names.ts';

/** Thousandths of a millisecond are noise and cost bytes. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

function put(attributes: Attributes, key: string, ms: number | undefined): void {
  if (ms !== undefined && Number.isFinite(ms)) attributes[key] = rounded(ms);
}

export function describeRequest(
  span: Span,
  request: RequestRecord,
  endedAt: number,
  facts: { readonly mode: string; readonly reserveMs: number; readonly typical: Typical | undefined },
): void {
  const attributes: Attributes = {
    [ATTR.verdict]: request.verdict,
    [ATTR.caller]: request.caller,
    [ATTR.priority]: request.priority,
    [ATTR.mode]: facts.mode,
  };
  if (request.operation !== undefined) attributes[ATTR.operation] = request.operation;
  if (request.source !== undefined) attributes[ATTR.source] = request.source;
  if (request.outcome !== undefined) attributes[ATTR.outcome] = request.outcome;
  if (request.cancelSource !== undefined) attributes[ATTR.cancelSource] = request.cancelSource;
  if (request.insufficient) attributes[ATTR.insufficient] = true;
  if (request.repeated) attributes[ATTR.repeated] = true;
  if (request.attempt > 1) attributes[ATTR.attempt] = request.attempt;
  put(attributes, ATTR.received, request.receivedMs);
  put(attributes, ATTR.effective, request.effectiveMs);
  put(attributes, ATTR.remaining, request.remainingMs(endedAt));
  put(attributes, ATTR.reserve, facts.reserveMs);
  put(attributes, ATTR.queue, (request.handlerAt ?? endedAt) - request.arrivedAt);
  if (request.handlerAt !== undefined) put(attributes, ATTR.processing, endedAt - request.handlerAt);
  put(attributes, ATTR.spentBeforeFirstCall, request.spentBeforeFirstCallMs());
  if (endedAt > request.deadlineAt) put(attributes, ATTR.overrun, endedAt - request.deadlineAt);
  put(attributes, ATTR.operationTypical, facts.typical?.medianMs);
  describeLedger(attributes, request);
  if (request.outcome === 'expired' || request.outcome === 'late') describeExpiry(attributes, request);
  span.setAttributes(attributes);
  if (request.cancelSource !== undefined)
    span.addEvent(EVENT.cancelled, { [ATTR.cancelSource]: request.cancelSource });
}

function describeLedger(attributes: Attributes, request: RequestRecord): void {
  const ledger = request.ledger;
  put(attributes, attrLedger('queue'), ledger.queueMs);
  put(attributes, attrLedger('local'), ledger.localMs);
  if (ledger.responseMs > 0) put(attributes, attrLedger('response'), ledger.responseMs);
  if (ledger.eventLoopMs > 0) put(attributes, attrLedger('event_loop'), ledger.eventLoopMs);
  put(attributes, ATTR.loopBlocked, request.loopBlockedMs());
  for (const term of ledger.terms) {
    for (const [index, ms] of term.phaseMs.entries()) {
      if (ms > 0) put(attributes, attrLedger(`${term.dependency}.${PHASES[index] ?? ''}`), ms);
    }
  }
  if (request.effectiveMs !== undefined)
    put(attributes, attrLedger('left'), request.effectiveMs - ledger.totalMs());
}

function describeExpiry(attributes: Attributes, request: RequestRecord): void {
  attributes[ATTR.expiryPhase] = request.ledger.expiry?.phase ?? 'queue';
  attributes[ATTR.expiryDependency] = request.ledger.expiry?.call?.dependency ?? NO_DEPENDENCY;
  if (request.cause !== undefined) attributes[ATTR.expiryCause] = request.cause;
}

export function describeCall(span: Span, call: CallRecord, typical: Typical | undefined): void {
  const attributes: Attributes = { [ATTR.dependency]: call.dependency };
  put(attributes, ATTR.remainingBefore, call.remainingBeforeMs);
  put(attributes, ATTR.remainingAfter, call.remainingAfterMs);
  put(attributes, ATTR.allowance, call.allowanceMs);
  put(attributes, ATTR.handedDown, call.handedDownMs);
  put(attributes, ATTR.dependencyCap, call.dependencyCapMs);
  put(attributes, ATTR.ownTimeout, call.ownTimeoutMs);
  put(attributes, ATTR.minimum, call.settings?.minimumMs);
  put(attributes, ATTR.latencyDerived, call.settings?.latencyMs);
  put(attributes, ATTR.dependencyTypical, typical?.medianMs);
  put(attributes, ATTR.postCancel, call.postCancelMs);
  if (call.allowanceMs !== undefined || call.refusal !== undefined)
    put(attributes, ATTR.reserve, call.reserveMs);
  if (call.dispatchedAt !== undefined)
    put(attributes, ATTR.dispatchDelay, call.dispatchedAt - call.startedAt);
  if (call.bindingTerm !== undefined) attributes[ATTR.bindingTerm] = call.bindingTerm;
  if (call.refusal !== undefined) attributes[ATTR.refusalReason] = call.refusal;
  if (call.cancelSource !== undefined) attributes[ATTR.cancelSource] = call.cancelSource;
  if (call.expiryPhase !== undefined) attributes[ATTR.expiryPhase] = call.expiryPhase;
  if (call.resetViolation) attributes[ATTR.resetViolation] = true;
  if (call.detached) attributes[ATTR.detached] = true;
  if (call.mayStillRun) attributes[ATTR.mayStillRun] = true;
  if (call.commitUnknown) attributes[ATTR.commitState] = 'unknown';
  describePhases(attributes, call);
  span.setAttributes(attributes);
}

function describePhases(attributes: Attributes, call: CallRecord): void {
  const sums: number[] = [];
  call.eachStretch(call.startedAt, call.endedAt ?? call.startedAt, (phase, from, to) => {
    sums[phase] = (sums[phase] ?? 0) + to - from;
  });
  for (const [index, phase] of PHASES.entries()) put(attributes, attrPhase(phase), sums[index]);
}
