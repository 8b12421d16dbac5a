/** What a metric is defined by, and the bounds that histograms share. */
import type { LabelName } from './labels.ts';

/** Seconds, chosen so that 12 ms reads between 10 and 25 ms (dashboards 4.2). */
export const SECONDS_BUCKETS: readonly number[] = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
];
export const RATIO_BUCKETS: readonly number[] = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1];

/** A unit is UCUM, without a slash: ingestion would write `_per_second` behind the name, and a page does not. */
export interface MetricDefinition {
  readonly name: string;
  readonly type: 'counter' | 'histogram' | 'gauge';
  readonly unit: string;
  readonly labels: readonly LabelName[];
  readonly description: string;
}

export function counter(name: string, unit: string, labels: readonly LabelName[], description: string) {
  return { name, type: 'counter', unit, labels, description } as const;
}
export function histogram(name: string, unit: 's' | '1', labels: readonly LabelName[], description: string) {
  return { name, type: 'histogram', unit, labels, description } as const;
}
export function gauge(name: string, unit: string, labels: readonly LabelName[], description: string) {
  return { name, type: 'gauge', unit, labels, description } as const;
}

/** What the counters of requests share, so that they can be set against each other. */
export const WHO = ['caller', 'operation', 'priority'] as const;
