/** The series of the catalogue as Prometheus has them. */
import {
  labelKey,
  METRICS,
  type MetricDefinition,
  type MetricKey,
  prometheusName,
} from '../src/telemetry/names.ts';

/** The labels of a metric of ours as they are exported, without those that Prometheus adds. */
export function labelsOf(metric: MetricDefinition): string[] {
  return metric.labels.map((label) => labelKey(label).replaceAll('.', '_'));
}

/** Every series name that the product exports, with what may stand on it. */
export function seriesNames(): ReadonlyMap<string, MetricDefinition> {
  const names = new Map<string, MetricDefinition>();
  // The keys are those of METRICS, which Object.keys widens to string.
  for (const key of Object.keys(METRICS) as MetricKey[]) {
    const metric: MetricDefinition = METRICS[key];
    const name = prometheusName(metric);
    if (metric.type !== 'histogram') names.set(name, metric);
    else for (const suffix of ['_bucket', '_sum', '_count']) names.set(name + suffix, metric);
  }
  return names;
}
