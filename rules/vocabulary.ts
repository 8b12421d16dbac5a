/** The words that expressions are put together from: selectors, groupings and windows, as the options say. */
import { labelKey, METRICS, type MetricKey, prometheusName } from '../src/telemetry/names.ts';
import { formatDuration } from './duration.ts';
import type { RuleOptions } from './options.ts';
import type { DurationName, Numbers } from './parameters.ts';

export interface Vocabulary {
  readonly numbers: Numbers;
  readonly jobLabel: string;
  /** Labels that every series of one installation has: its own, and the service's behind them. */
  readonly identity: readonly string[];
  /** Seconds between two runs of the rules, scaled. */
  readonly everySeconds: number;
  /** The name alone. */
  name(key: MetricKey): string;
  /** A selector of all of ours. */
  all(...matchers: readonly string[]): string;
  /** A selector of one metric, with the matchers of the options behind those given. */
  series(key: MetricKey, ...matchers: readonly string[]): string;
  /** How many values a histogram has: the selector of its `_count`. */
  count(key: MetricKey): string;
  /** `rate` of it over the rate window. */
  rate(key: MetricKey, ...matchers: readonly string[]): string;
  /** p50, p95 … over the rate window, of the buckets of a histogram; NaN where nothing happened. */
  quantile(share: number, key: MetricKey, ...labels: readonly string[]): string;
  /** The same over another window. */
  quantileOver(window: DurationName, share: number, key: MetricKey, ...labels: readonly string[]): string;
  /** `by (job, …)`. */
  by(...labels: readonly string[]): string;
  /** `on (job, …)`. */
  on(...labels: readonly string[]): string;
  /** A window as it stands in an expression, scaled. */
  window(name: DurationName): string;
  /** The same as it stands in the name of a record: never scaled, so that dashboards find it. */
  suffix(name: DurationName): string;
}

/** The label under which Prometheus has the name of a connection pool. */
export const POOL_LABEL: string = labelKey('pool').replaceAll('.', '_');

export function createVocabulary(options: RuleOptions): Vocabulary {
  const { numbers, jobLabel, keepLabels, matchers, scale } = options;
  const identity = [...keepLabels, jobLabel];
  const list = (labels: readonly string[]) => `(${[...identity, ...labels].join(', ')})`;
  const name = (key: MetricKey) => prometheusName(METRICS[key]);
  const window = (duration: DurationName) => formatDuration(numbers[duration] * scale);
  const select = (metric: string, own: readonly string[]) => {
    const all = [...own, ...matchers].join(',');
    return all === '' ? metric : `${metric}{${all}}`;
  };
  const rate = (metric: string, own: readonly string[], over: DurationName = 'rateWindow') =>
    `rate(${select(metric, own)}[${window(over)}])`;
  const quantileOver: Vocabulary['quantileOver'] = (over, share, key, ...labels) =>
    `histogram_quantile(${share}, sum by ${list([...labels, 'le'])} (${rate(`${name(key)}_bucket`, [], over)}))`;
  return {
    numbers,
    jobLabel,
    identity,
    everySeconds: (numbers.evaluationInterval * scale) / 1000,
    name,
    all: (...own) => select('', ['__name__=~"(time|retry)_budget_.+"', ...own]),
    series: (key, ...own) => select(name(key), own),
    count: (key) => select(`${name(key)}_count`, []),
    rate: (key, ...own) => rate(name(key), own),
    quantile: (share, key, ...labels) => quantileOver('rateWindow', share, key, ...labels),
    quantileOver,
    by: (...labels) => `by ${list(labels)}`,
    on: (...labels) => `on ${list(labels)}`,
    window,
    suffix: (duration) => formatDuration(numbers[duration]),
  };
}
