/** What one service's own metrics say about a stretch of time, for one operation. */
import { METRICS, type MetricDefinition, prometheusName } from '../src/telemetry/names.ts';
import type { Sample } from './scrape.ts';

/** A histogram over the stretch of time: how many values and their mean, in milliseconds. */
export interface Mean {
  readonly count: number;
  readonly meanMs: number;
}

export interface Counted {
  readonly name: string;
  readonly count: number;
}

export interface Figures {
  readonly service: string;
  readonly receivedMs: Mean | undefined;
  readonly queueMs: Mean | undefined;
  readonly handlerMs: Mean | undefined;
  readonly overrunMs: Mean | undefined;
  readonly left: readonly { readonly point: string; readonly left: Mean }[];
  readonly phases: readonly { readonly dependency: string; readonly phase: string; readonly spent: Mean }[];
  readonly outcomes: readonly Counted[];
  /** `phase` or `phase → dependency`. */
  readonly expiries: readonly Counted[];
  readonly causes: readonly Counted[];
  readonly cancelSources: readonly Counted[];
  readonly verdicts: readonly Counted[];
  readonly violations: readonly Counted[];
  readonly postCancel: readonly { readonly work: string; readonly ms: number }[];
  readonly lateExecutionMs: number;
  readonly internalErrors: number;
}

/** `samples` is what the stretch of time added. Metrics without the label `operation` are the service's whole. */
export function readFigures(service: string, operation: string, samples: readonly Sample[]): Figures {
  const of = (metric: MetricDefinition, labels: Record<string, string> = {}) =>
    samples.filter(
      (sample) =>
        sample.name === prometheusName(metric) &&
        Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
    );
  const mean = (metric: MetricDefinition, labels: Record<string, string>) =>
    readMean(samples, metric, labels);
  const counted = (metric: MetricDefinition, label: string, labels: Record<string, string> = {}) =>
    count(of(metric, labels), (sample) => sample.labels[label] ?? '');
  const byOperation = { operation };
  return {
    service,
    receivedMs: mean(METRICS.received, byOperation),
    queueMs: mean(METRICS.queue, byOperation),
    handlerMs: mean(METRICS.processing, byOperation),
    overrunMs: mean(METRICS.overrun, byOperation),
    left: ['received', 'before_call', 'after_call'].flatMap((point) => {
      const left = mean(METRICS.remaining, { operation, point });
      return left === undefined ? [] : [{ point, left }];
    }),
    phases: seriesOf(samples, METRICS.callPhase, ['dependency', 'phase']).map(
      ([dependency = '', phase = '']) => ({
        dependency,
        phase,
        spent: mean(METRICS.callPhase, { dependency, phase }) ?? { count: 0, meanMs: 0 },
      }),
    ),
    outcomes: counted(METRICS.outcomes, 'outcome', byOperation),
    expiries: count(of(METRICS.expiries), expiryName),
    causes: counted(METRICS.expiryCauses, 'cause', byOperation),
    cancelSources: counted(METRICS.cancellations, 'source', byOperation),
    verdicts: counted(METRICS.verdicts, 'verdict'),
    violations: counted(METRICS.violations, 'kind'),
    postCancel: of(METRICS.postCancelSeconds).map(({ labels, value }) => ({
      work: labels.dependency === 'none' ? (labels.kind ?? '') : `${labels.kind} → ${labels.dependency}`,
      ms: value * 1000,
    })),
    lateExecutionMs: of(METRICS.executionLate).reduce((sum, { value }) => sum + value * 1000, 0),
    internalErrors: of(METRICS.internalErrors).reduce((sum, { value }) => sum + value, 0),
  };
}

function expiryName({ labels }: Sample): string {
  const { phase = '', dependency } = labels;
  return dependency === 'none' ? phase : `${phase} → ${dependency}`;
}

function count(samples: readonly Sample[], nameOf: (sample: Sample) => string): Counted[] {
  const counts = new Map<string, number>();
  for (const sample of samples) {
    const name = nameOf(sample);
    counts.set(name, (counts.get(name) ?? 0) + sample.value);
  }
  return [...counts].map(([name, total]) => ({ name, count: total }));
}

function seriesOf(samples: readonly Sample[], metric: MetricDefinition, keys: readonly string[]): string[][] {
  const name = `${prometheusName(metric)}_count`;
  return samples
    .filter((sample) => sample.name === name)
    .map(({ labels }) => keys.map((key) => labels[key] ?? ''));
}

function readMean(
  samples: readonly Sample[],
  metric: MetricDefinition,
  labels: Readonly<Record<string, string>>,
): Mean | undefined {
  const name = prometheusName(metric);
  let total = 0;
  let seconds = 0;
  for (const sample of samples) {
    if (!Object.entries(labels).every(([key, value]) => sample.labels[key] === value)) continue;
    if (sample.name === `${name}_count`) total += sample.value;
    if (sample.name === `${name}_sum`) seconds += sample.value;
  }
  return total === 0 ? undefined : { count: total, meanMs: (seconds / total) * 1000 };
}
