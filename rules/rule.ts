/** What a rule is before it becomes YAML. */
import type { AlertName } from './alert-names.ts';
import type { Severity } from './options.ts';
import type { DurationName } from './parameters.ts';

export interface RecordingRule {
  readonly record: string;
  readonly expr: string;
}

/** Dashboards by the last part of their uid. */
export type Dashboard = 'overview' | 'path' | 'dependencies' | 'retries' | 'waste' | 'queues';

export interface Alert {
  readonly name: AlertName;
  readonly expr: string;
  readonly for?: DurationName;
  readonly keepFiringFor?: DurationName;
  readonly severity: Severity;
  /** Labels that the expression keeps beside the service's name. */
  readonly labels: readonly string[];
  /** Further labels that are the same for every instance of the alert. */
  readonly fixedLabels?: Readonly<Record<string, string>>;
  /** One line: what is wrong, where. `at` puts the labels into it. */
  readonly summary: string;
  /** The value with its unit and its denominator. */
  readonly description: string;
  readonly dashboard: Dashboard;
}

/** The value of a label in an annotation. */
export function at(label: string): string {
  return `{{ $labels.${label} }}`;
}
