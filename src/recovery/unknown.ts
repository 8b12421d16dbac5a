/**
 * Outcomes that stay unknown: a call ended without saying whether its work was done. They are no failures, and stay
 * open, with their age, until the service has found out. Keys stay in this process: no metric and no span has one.
 */
import { diag, type SpanContext } from '@opentelemetry/api';
import { activeRecorder } from '../active.ts';
import { OpenUnknowns } from '../core/open-unknowns.ts';
import { NO_OPERATION, RECONCILED_RESULTS, type ReconciledResult } from '../core/terms.ts';
import { currentScope } from '../current.ts';
import type { Recorder } from '../recorder.ts';
import { ATTR, EVENT } from '../telemetry/names.ts';
import { textOf } from '../text-of.ts';

const byRecorder = new WeakMap<Recorder, OpenUnknowns<SpanContext | undefined>>();

/**
 * Nobody knows whether the work of the current request took effect; `key` finds it again, mostly its idempotency key.
 * The outcome of the request is `unknown`, whatever it answers. The same key again is the same work. False where it
 * cannot be kept track of, because its key is empty or longer than 256 characters, or because 10,000 are open; that
 * is counted. Outside of a request, `operation` says what it was.
 */
export function recordUnknown(key: string, operation?: string): boolean {
  const recorder = activeRecorder();
  if (recorder === undefined) return false;
  const text = keyOf(key);
  const request = currentScope()?.request;
  const name = recorder.series.operations.fold(request?.operation ?? operation ?? NO_OPERATION);
  if (request !== undefined && request.endedAt === undefined)
    request.disposition = { kind: 'unknown', key: text };
  request?.span?.addEvent(EVENT.unknown);
  const { families } = recorder;
  const unknown = {
    operation: name,
    sinceAt: recorder.clock.now(),
    origin: request?.span?.spanContext(),
  };
  const kept = unknownsOf(recorder).add(text, unknown);
  if (kept === 'known') return true;
  for (const result of RECONCILED_RESULTS) families.unknownReconciled.cell(name, result);
  families.unknownRecorded.cell(name).add(1);
  if (kept === 'full') families.unknownUntracked.cell().add(1);
  return kept === 'added';
}

/**
 * The true result is known now. Its age and result stand as an event on the span of the request that found out, which
 * is linked with the one that did not know. False where nothing is open under this key: never recorded, reconciled
 * already, or not kept track of.
 */
export function reconcile(key: string, result: ReconciledResult): boolean {
  if (!RECONCILED_RESULTS.includes(result)) {
    diag.warn(
      `otel-time-budget: result must be one of ${RECONCILED_RESULTS.join(', ')}, got ${textOf(result)}`,
    );
    return false;
  }
  const text = keyOf(key);
  const recorder = activeRecorder();
  const unknown = recorder === undefined ? undefined : unknownsOf(recorder).take(text);
  if (recorder === undefined || unknown === undefined) return false;
  recorder.families.unknownReconciled.cell(unknown.operation, result).add(1);
  const request = currentScope()?.request;
  if (request === undefined) return true;
  // Found out before it has answered: its outcome is no longer unknown.
  if (
    request.disposition?.kind === 'unknown' &&
    request.disposition.key === text &&
    request.endedAt === undefined
  )
    request.disposition = undefined;
  const { span } = request;
  const own = span?.spanContext().spanId;
  if (unknown.origin !== undefined && unknown.origin.spanId !== own)
    span?.addLink({ context: unknown.origin });
  span?.addEvent(EVENT.reconciled, {
    [ATTR.reconciledResult]: result,
    [ATTR.unknownAge]: Math.round(recorder.clock.now() - unknown.sinceAt),
  });
  return true;
}

/** Numbers are keys in plain JavaScript; what is neither is an empty one, which cannot be kept track of. */
function keyOf(key: unknown): string {
  return typeof key === 'string' ? key : typeof key === 'number' ? String(key) : '';
}

function unknownsOf(recorder: Recorder): OpenUnknowns<SpanContext | undefined> {
  const known = byRecorder.get(recorder);
  if (known !== undefined) return known;
  const unknowns = new OpenUnknowns<SpanContext | undefined>();
  byRecorder.set(recorder, unknowns);
  const { families } = recorder;
  families.unknownUntracked.cell();
  const refresh = () => {
    const now = recorder.clock.now();
    const open = unknowns.open();
    for (const operation of open.keys()) families.unknownOpen.cell(operation);
    // Those that are all reconciled go back to 0.
    for (const { attributes } of families.unknownOpen.cells) {
      const operation = String(attributes.operation);
      const { count, oldestAt } = open.get(operation) ?? { count: 0, oldestAt: now };
      families.unknownOpen.cell(operation).value = count;
      families.unknownOldest.cell(operation).value = (now - oldestAt) / 1_000;
    }
  };
  families.unknownOpen.refresh = refresh;
  families.unknownOldest.refresh = refresh;
  return unknowns;
}
