/**
 * Every public name of the telemetry: metrics with their unit, labels and buckets, span attributes,
 * events. They stand in names/, one file per subject; dashboards, documents and tests read them here, and nothing else
 * spells a name.
 *
 * Instrument names carry their unit, against the convention and on purpose: the Prometheus exporter of
 * OpenTelemetry JS adds no unit suffix, OTLP ingestion does and does not double one that is there, so a
 * series has one name on every path.
 */ import { CALL_METRICS } from './names/call-metrics.ts';
import type { MetricDefinition } from './names/definition.ts';
import { LOAD_METRICS } from './names/load-metrics.ts';
import { PROCESS_METRICS } from './names/process-metrics.ts';
import { REQUEST_METRICS } from './names/request-metrics.ts';
import { RETRY_METRICS } from './names/retry-metrics.ts';

export { ATTR, ATTR_RESEND_COUNT, attrLedger, attrPhase, EVENT } from './names/attributes.ts';
export { type MetricDefinition, RATIO_BUCKETS, SECONDS_BUCKETS } from './names/definition.ts';
export {
  CLOSED_LABELS,
  type ClosedLabel,
  ENFORCED,
  GATE_REFUSALS,
  type GateRefusal,
  type LabelName,
  labelKey,
  MAX_MODES,
  MAX_QUEUES,
  OPEN_LABELS,
  type OpenLabel,
  POINTS,
} from './names/labels.ts';

export const SCOPE_NAME = 'otel-time-budget';

/** The catalogue. A Prometheus name is the name with `_` for `.`, and `_total` behind a counter. */
export const METRICS = {
  ...REQUEST_METRICS,
  ...CALL_METRICS,
  ...RETRY_METRICS,
  ...LOAD_METRICS,
  ...PROCESS_METRICS,
} as const satisfies Record<string, MetricDefinition>;
export type MetricKey = keyof typeof METRICS;

/**
 * What Prometheus calls a metric, on every path (test/e2e/contract.test.ts): the unit is in it once, as OTLP ingestion
 * writes it. Names of the semantic conventions do not carry theirs; there OpenTelemetry's own page leaves it out.
 */
export function prometheusName({ name, unit, type }: MetricDefinition): string {
  const words = name.replaceAll('.', '_');
  const withUnit = unit === 's' && !words.endsWith('_seconds') ? `${words}_seconds` : words;
  return type === 'counter' ? `${withUnit}_total` : withUnit;
}
