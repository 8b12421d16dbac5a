/** Writes on the span of a call which attempt it is, and of a repeat why it ran. Bounded words only. */
import type { Attributes, Span } from '@opentelemetry/api';
import type { Payer, RefusalReason } from '../core/terms.ts';
import type { CallRecord } from '../records.ts';
import { ATTR, ATTR_RESEND_COUNT } from './names.ts';

/** Every library that declares its repeats has a limit of attempts per request, and nothing else to pay them from. */
const PAID_BY: Payer = 'request_limit';
const STOPPED_BY: RefusalReason = 'per_request_limit';

/** A breaker that is half open lets it through, and nobody pays. */
const PROBE: Payer = 'probe';

/** A repeat that the guard has let through on a token of a retry budget. */
const BUDGETED = { paidBy: 'retry_budget', stoppedBy: 'retry_budget_empty' } as const satisfies {
  paidBy: Payer;
  stoppedBy: RefusalReason;
};

/** `policyVersion` is told on repeats only. Nothing for a call that is not looked at as an attempt. */
export function describeAttempt(span: Span, call: CallRecord, policyVersion: string): void {
  describeMark(span, call);
  const { tried } = call;
  if (tried === undefined) return;
  const attributes: Attributes = { [ATTR.attempt]: tried.ordinal, [ATTR.attemptKind]: tried.kind };
  if (tried.permitted !== undefined) attributes[ATTR.attemptPermitted] = tried.permitted;
  if (tried.triesBefore > 0) attributes[ATTR_RESEND_COUNT] = tried.triesBefore;
  if (tried.source !== undefined) {
    attributes[ATTR.attemptSource] = tried.source;
    attributes[ATTR.attemptOwner] = tried.owner;
    attributes[ATTR.policyVersion] = policyVersion;
    if (tried.reason !== undefined) attributes[ATTR.attemptReason] = tried.reason;
    if (tried.waitMs !== undefined) attributes[ATTR.attemptWait] = Math.round(tried.waitMs * 1000) / 1000;
    if (call.repeatPaid !== undefined && call.repeatPaid > 0) {
      const { paidBy, stoppedBy } = BUDGETED;
      attributes[ATTR.attemptPaidBy] = paidBy;
      attributes[ATTR.attemptStop] = stoppedBy;
    } else if (isProbe(call)) {
      attributes[ATTR.attemptPaidBy] = PROBE;
    } else if (tried.source === 'declared') {
      attributes[ATTR.attemptPaidBy] = PAID_BY;
      attributes[ATTR.attemptStop] = STOPPED_BY;
    }
  }
  span.setAttributes(attributes);
}

function isProbe(call: CallRecord): boolean {
  const breaker = call.scope?.mark?.breaker;
  return breaker?.dependency === call.dependency && breaker.isProbe;
}

/** What was said of all calls that are made where this one is. A breaker speaks for its own dependency only. */
function describeMark(span: Span, call: CallRecord): void {
  const mark = call.scope?.mark;
  if (mark === undefined) return;
  const { breaker, fallback, race } = mark;
  if (race?.lostAt !== undefined && call.endedAt !== undefined) {
    span.setAttribute(ATTR.stoppedAfter, Math.round((call.endedAt - race.lostAt) * 1000) / 1000);
  }
  if (breaker?.dependency === call.dependency) {
    span.setAttribute(ATTR.breakerState, breaker.state);
    if (breaker.isProbe) span.setAttribute(ATTR.breakerProbe, true);
  }
  if (fallback !== undefined) {
    span.setAttribute(ATTR.fallbackName, fallback.name);
    span.setAttribute(ATTR.fallbackShares, call.dependency === fallback.dependency);
  }
}
