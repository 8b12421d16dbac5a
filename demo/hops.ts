/** From the spans of one request to its hops: what each service was given, where its time went, how it ended. */
import type { Phase } from '../src/core/terms.ts';
import { ATTR, attrPhase } from '../src/telemetry/names.ts';
import type { Span } from './otlp-receiver.ts';

/** A stretch of time in milliseconds since the caller sent its request. */
export interface Stretch {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface PhaseStretch extends Stretch {
  readonly phase: string;
}

export interface HopCall extends Stretch {
  readonly dependency: string;
  readonly phases: readonly PhaseStretch[];
  readonly leftBeforeMs: number | undefined;
  readonly leftAfterMs: number | undefined;
  readonly handedDownMs: number | undefined;
  readonly usualMs: number | undefined;
  readonly postCancelMs: number | undefined;
  readonly resetViolation: boolean;
}

export interface Hop extends Stretch {
  readonly service: string;
  readonly operation: string | undefined;
  readonly receivedMs: number | undefined;
  readonly leftMs: number | undefined;
  /** When its time was up. */
  readonly deadlineMs: number | undefined;
  readonly outcome: string | undefined;
  readonly cancelSource: string | undefined;
  readonly expiryPhase: string | undefined;
  readonly expiryDependency: string | undefined;
  readonly cause: string | undefined;
  readonly usualMs: number | undefined;
  /** Time of its own: waiting for the handler, then what no call covers. */
  readonly own: readonly PhaseStretch[];
  readonly calls: readonly HopCall[];
  /** From when on its work was of use to nobody: its deadline, or its end where the caller had gone. */
  readonly uselessMs: number | undefined;
  /** How long it or one of its calls still worked after that; 0 if none did. */
  readonly wentOnMs: number;
  /** Work of its calls after that, calls side by side added up, as its metrics count it. */
  readonly postCancelMs: number;
}

/**
 * The order in which a call goes through its phases. Spans tell how long each took, not when: within one call
 * this order puts them where they were, but for a loop that was blocked twice.
 */
const CALL_ORDER: readonly Phase[] = [
  'token',
  'backoff',
  'pool_wait',
  'dns',
  'connect',
  'tls',
  'request',
  'db_execution',
  'event_loop',
  'response',
];

/** The hops of a trace, outermost first. `sentAt` is when the caller sent the request, in Unix milliseconds. */
export function readHops(spans: readonly Span[], sentAt: number): Hop[] {
  return spans
    .filter((span) => span.kind === 'server')
    .sort((left, right) => left.startedAt - right.startedAt)
    .map((server) => readHop(server, spans, sentAt));
}

function readHop(server: Span, spans: readonly Span[], sentAt: number): Hop {
  const { attributes } = server;
  const effectiveMs = numberAt(attributes, ATTR.effective);
  const leftMs = numberAt(attributes, ATTR.remaining);
  const toMs = server.endedAt - sentAt;
  const spentMs =
    effectiveMs === undefined || leftMs === undefined
      ? server.endedAt - server.startedAt
      : effectiveMs - leftMs;
  const fromMs = toMs - spentMs;
  const calls = spans
    .filter((span) => span.service === server.service && span.attributes[ATTR.dependency] !== undefined)
    .map((span) => readCall(span, { fromMs, effectiveMs, sentAt }))
    .sort((left, right) => left.fromMs - right.fromMs);
  const outcome = textAt(attributes, ATTR.outcome);
  const deadlineMs = effectiveMs === undefined ? undefined : fromMs + effectiveMs;
  const uselessMs = outcome === 'cancelled' ? toMs : outcome === 'useful' ? undefined : deadlineMs;
  const lastMs = Math.max(toMs, ...calls.map((call) => call.toMs));
  const queuedUntilMs = Math.min(toMs, fromMs + (numberAt(attributes, ATTR.queue) ?? 0));
  return {
    service: server.service,
    operation: textAt(attributes, ATTR.operation),
    fromMs,
    toMs,
    receivedMs: numberAt(attributes, ATTR.received),
    leftMs,
    deadlineMs,
    outcome,
    cancelSource: textAt(attributes, ATTR.cancelSource),
    expiryPhase: textAt(attributes, ATTR.expiryPhase),
    expiryDependency: textAt(attributes, ATTR.expiryDependency),
    cause: textAt(attributes, ATTR.expiryCause),
    usualMs: numberAt(attributes, ATTR.operationTypical),
    own: [
      { phase: 'queue', fromMs, toMs: queuedUntilMs },
      ...gaps(calls, queuedUntilMs, toMs).map((gap) => ({ phase: 'local', ...gap })),
    ],
    calls,
    uselessMs,
    wentOnMs: uselessMs === undefined ? 0 : Math.max(0, lastMs - uselessMs),
    postCancelMs: calls.reduce((sum, call) => sum + (call.postCancelMs ?? 0), 0),
  };
}

interface InHop {
  readonly fromMs: number;
  readonly effectiveMs: number | undefined;
  readonly sentAt: number;
}

function readCall({ attributes, startedAt, endedAt }: Span, { fromMs, effectiveMs, sentAt }: InHop): HopCall {
  const leftBeforeMs = numberAt(attributes, ATTR.remainingBefore);
  const leftAfterMs = numberAt(attributes, ATTR.remainingAfter);
  // What was left tells when, by the clock of the request; a span may begin later than its call did.
  const at = (leftMs: number | undefined, unixMs: number) =>
    effectiveMs === undefined || leftMs === undefined ? unixMs - sentAt : fromMs + effectiveMs - leftMs;
  const stretch = { fromMs: at(leftBeforeMs, startedAt), toMs: at(leftAfterMs, endedAt) };
  const phases: PhaseStretch[] = [];
  let from = stretch.fromMs;
  for (const phase of CALL_ORDER) {
    const ms = numberAt(attributes, attrPhase(phase));
    if (ms === undefined) continue;
    phases.push({ phase, fromMs: from, toMs: from + ms });
    from += ms;
  }
  return {
    ...stretch,
    dependency: String(attributes[ATTR.dependency]),
    phases,
    leftBeforeMs,
    leftAfterMs,
    handedDownMs: numberAt(attributes, ATTR.handedDown),
    usualMs: numberAt(attributes, ATTR.dependencyTypical),
    postCancelMs: numberAt(attributes, ATTR.postCancel),
    resetViolation: attributes[ATTR.resetViolation] === true,
  };
}

/** The parts of a stretch that no call covers. */
function gaps(calls: readonly Stretch[], fromMs: number, toMs: number): Stretch[] {
  const found: Stretch[] = [];
  let from = fromMs;
  for (const call of calls) {
    if (call.fromMs >= toMs) break;
    if (call.fromMs > from) found.push({ fromMs: from, toMs: call.fromMs });
    from = Math.max(from, call.toMs);
  }
  if (toMs > from) found.push({ fromMs: from, toMs });
  return found;
}

function numberAt(attributes: Span['attributes'], key: string): number | undefined {
  const value = attributes[key];
  return typeof value === 'number' ? value : undefined;
}

function textAt(attributes: Span['attributes'], key: string): string | undefined {
  const value = attributes[key];
  return typeof value === 'string' ? value : undefined;
}
