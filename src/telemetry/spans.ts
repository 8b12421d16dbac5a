/**
 * Writes a record's final state on its span. What did not happen is left out. One attribute after the other,
 * because an object of more than a dozen computed keys is a hash table, and costs as much again as the span's own.
 */
import type { Span } from '@opentelemetry/api';
import { NO_DEPENDENCY, PHASES } from '../core/terms.ts';
import type { Typical } from '../core/usual.ts';
import type { CallRecord, RequestRecord } from '../records.ts';
import { ATTR, attrLedger, attrPhase, EVENT } from './names.ts';

/** Thousandths of a millisecond are noise and cost bytes. */
function rounded(ms: number): number {
  return Math.round(ms * 1000) / 1000;
}

function put(span: Span, key: string, ms: number | undefined): void {
  if (ms !== undefined && Number.isFinite(ms)) span.setAttribute(key, rounded(ms));
}

// Keys are put together once: a text made for each span is looked up letter by letter before it can be a key.
const PHASE_KEYS: readonly string[] = PHASES.map(attrPhase);
const LEDGER_QUEUE = attrLedger('queue');
const LEDGER_LOCAL = attrLedger('local');
const LEDGER_RESPONSE = attrLedger('response');
const LEDGER_EVENT_LOOP = attrLedger('event_loop');
const LEDGER_LEFT = attrLedger('left');
/** By dependency, then by phase index. Dependencies are folded label values, so their number is bounded. */
const ledgerKeys = new Map<string, readonly string[]>();

function ledgerKeysOf(dependency: string): readonly string[] {
  let keys = ledgerKeys.get(dependency);
  if (keys === undefined) {
    keys = PHASES.map((phase) => attrLedger(`${dependency}.${phase}`));
    ledgerKeys.set(dependency, keys);
  }
  return keys;
}

export function describeRequest(
  span: Span,
  request: RequestRecord,
  endedAt: number,
  facts: { readonly mode: string; readonly reserveMs: number; readonly typical: Typical | undefined },
): void {
  span.setAttribute(ATTR.verdict, request.verdict);
  span.setAttribute(ATTR.caller, request.caller);
  // What is usual is left out as well: each attribute is paid for by every span, until the span has been exported.
  if (request.priority !== 'unset') span.setAttribute(ATTR.priority, request.priority);
  if (facts.mode !== 'observe') span.setAttribute(ATTR.mode, facts.mode);
  if (request.operation !== undefined) span.setAttribute(ATTR.operation, request.operation);
  if (request.source !== undefined) span.setAttribute(ATTR.source, request.source);
  if (request.outcome !== undefined) span.setAttribute(ATTR.outcome, request.outcome);
  if (request.cancelSource !== undefined) span.setAttribute(ATTR.cancelSource, request.cancelSource);
  if (request.insufficient) span.setAttribute(ATTR.insufficient, true);
  if (request.repeated) span.setAttribute(ATTR.repeated, true);
  if (request.attempt > 1) span.setAttribute(ATTR.attempt, request.attempt);
  put(span, ATTR.received, request.receivedMs);
  put(span, ATTR.effective, request.effectiveMs);
  put(span, ATTR.remaining, request.remainingMs(endedAt));
  if (facts.reserveMs > 0) put(span, ATTR.reserve, facts.reserveMs);
  put(span, ATTR.queue, (request.handlerAt ?? endedAt) - request.arrivedAt);
  if (request.handlerAt !== undefined) put(span, ATTR.processing, endedAt - request.handlerAt);
  put(span, ATTR.spentBeforeFirstCall, request.spentBeforeFirstCallMs());
  if (endedAt > request.deadlineAt) put(span, ATTR.overrun, endedAt - request.deadlineAt);
  put(span, ATTR.operationTypical, facts.typical?.medianMs);
  describeLedger(span, request);
  if (request.outcome === 'expired' || request.outcome === 'late') describeExpiry(span, request);
  if (request.cancelSource !== undefined)
    span.addEvent(EVENT.cancelled, { [ATTR.cancelSource]: request.cancelSource });
}

function describeLedger(span: Span, request: RequestRecord): void {
  const ledger = request.ledger;
  put(span, LEDGER_QUEUE, ledger.queueMs);
  put(span, LEDGER_LOCAL, ledger.localMs);
  if (ledger.responseMs > 0) put(span, LEDGER_RESPONSE, ledger.responseMs);
  if (ledger.eventLoopMs > 0) put(span, LEDGER_EVENT_LOOP, ledger.eventLoopMs);
  put(span, ATTR.loopBlocked, request.loopBlockedMs());
  for (const term of ledger.terms) {
    const keys = ledgerKeysOf(term.dependency);
    for (let index = 0; index < keys.length; index++) {
      const ms = term.phaseMs[index] ?? 0;
      if (ms > 0) put(span, keys[index] ?? '', ms);
    }
  }
  if (request.effectiveMs !== undefined) put(span, LEDGER_LEFT, request.effectiveMs - ledger.totalMs());
}

function describeExpiry(span: Span, request: RequestRecord): void {
  span.setAttribute(ATTR.expiryPhase, request.ledger.expiry?.phase ?? 'queue');
  span.setAttribute(ATTR.expiryDependency, request.ledger.expiry?.call?.dependency ?? NO_DEPENDENCY);
  if (request.cause !== undefined) span.setAttribute(ATTR.expiryCause, request.cause);
}

export function describeCall(span: Span, call: CallRecord, typical: Typical | undefined): void {
  span.setAttribute(ATTR.dependency, call.dependency);
  put(span, ATTR.remainingBefore, call.remainingBeforeMs);
  put(span, ATTR.remainingAfter, call.remainingAfterMs);
  put(span, ATTR.allowance, call.allowanceMs);
  put(span, ATTR.handedDown, call.handedDownMs);
  put(span, ATTR.dependencyCap, call.dependencyCapMs);
  put(span, ATTR.ownTimeout, call.ownTimeoutMs);
  put(span, ATTR.minimum, call.settings?.minimumMs);
  put(span, ATTR.latencyDerived, call.settings?.latencyMs);
  put(span, ATTR.dependencyTypical, typical?.medianMs);
  put(span, ATTR.postCancel, call.postCancelMs);
  if (call.allowanceMs !== undefined && call.reserveMs > 0) put(span, ATTR.reserve, call.reserveMs);
  if (call.dispatchedAt !== undefined && call.dispatchedAt > call.startedAt) {
    put(span, ATTR.dispatchDelay, call.dispatchedAt - call.startedAt);
  }
  if (call.bindingTerm !== undefined) span.setAttribute(ATTR.bindingTerm, call.bindingTerm);
  if (call.refusal !== undefined) span.setAttribute(ATTR.refusalReason, call.refusal);
  if (call.cancelSource !== undefined) span.setAttribute(ATTR.cancelSource, call.cancelSource);
  if (call.expiryPhase !== undefined) span.setAttribute(ATTR.expiryPhase, call.expiryPhase);
  if (call.resetViolation) span.setAttribute(ATTR.resetViolation, true);
  if (call.detached) span.setAttribute(ATTR.detached, true);
  if (call.mayStillRun) span.setAttribute(ATTR.mayStillRun, true);
  if (call.commitUnknown) span.setAttribute(ATTR.commitState, 'unknown');
  describePhases(span, call);
}

function describePhases(span: Span, call: CallRecord): void {
  const times = call.phaseTimes(call.endedAt ?? call.startedAt);
  for (let index = 0; index < PHASE_KEYS.length; index++) put(span, PHASE_KEYS[index] ?? '', times[index]);
}
