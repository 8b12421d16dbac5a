/**
 * PromQL with the names of the product. A selector gets the matchers of every variable that its metric has a label
 * for, so that no panel is left unfiltered or filtered by a label that is not there.
 */
import { METRICS, type MetricDefinition, type MetricKey, prometheusName } from '../src/telemetry/names.ts';
import type { GeneratorOptions } from './options.ts';
import { labelsOf } from './series-names.ts';

/** Labels that a dashboard may have a variable of the same name for. */
export const FILTERS = ['caller', 'operation', 'priority', 'dependency'] as const;
export type Filter = (typeof FILTERS)[number];

const RATE = '$__rate_interval';
/** The range of the picture: for tables, which show one value for all of it. */
export const RANGE = '$__range';

export class Queries {
  readonly options: GeneratorOptions;
  readonly filters: readonly Filter[];

  constructor(options: GeneratorOptions, filters: readonly Filter[]) {
    this.options = options;
    this.filters = filters;
  }

  /** The label that names the service. */
  get job(): string {
    return this.options.jobLabel;
  }

  /** The matchers of the services, for series of any kind. */
  get service(): string {
    const { jobLabel, labels, matchers } = this.options;
    return [`${jobLabel}=~"$job"`, ...labels.map((label) => `${label}=~"$${label}"`), ...matchers].join(',');
  }

  /** A metric's series; `more` are further matchers. */
  series(key: MetricKey, more = '', suffix = ''): string {
    const metric: MetricDefinition = METRICS[key];
    const own = new Set(labelsOf(metric));
    const filters = this.filters.filter((filter) => own.has(filter));
    const matchers = [
      this.service,
      'instance=~"$instance"',
      ...filters.map((filter) => `${filter}=~"$${filter}"`),
      ...(more === '' ? [] : [more]),
    ];
    return `${prometheusName(metric)}${suffix}{${matchers.join(',')}}`;
  }

  rate(key: MetricKey, more = '', range = RATE): string {
    return `rate(${this.series(key, more)}[${range}])`;
  }

  increase(key: MetricKey, more = '', range = RANGE): string {
    return `increase(${this.series(key, more)}[${range}])`;
  }

  /** How many values per second a histogram got. */
  count(key: MetricKey, more = '', range = RATE): string {
    return `rate(${this.series(key, more, '_count')}[${range}])`;
  }

  /** Seconds per second, or whatever its unit is, that a histogram got. */
  total(key: MetricKey, more = '', range = RATE): string {
    return `rate(${this.series(key, more, '_sum')}[${range}])`;
  }

  /** Values per second of a histogram by bucket: what a heatmap draws. */
  buckets(key: MetricKey, more = '', range = RATE): string {
    return `sum by (le) (rate(${this.series(key, more, '_bucket')}[${range}]))`;
  }

  /**
   * A quantile by labels, without the NaN that it has where nothing was recorded: no number is greater than or equal
   * to itself but a number.
   */
  quantile(q: number, key: MetricKey, by: readonly string[] = [], more = '', range = RATE): string {
    const buckets = `rate(${this.series(key, more, '_bucket')}[${range}])`;
    return `histogram_quantile(${q}, sum by (${[...by, 'le'].join(', ')}) (${buckets})) >= 0`;
  }

  /** The name of a recorded series with the matchers that it keeps. */
  recorded(name: string, filters: readonly Filter[]): string {
    const own = filters.filter((filter) => this.filters.includes(filter));
    return `${name}{${[this.service, ...own.map((filter) => `${filter}=~"$${filter}"`)].join(',')}}`;
  }
}

export function sum(vector: string, ...by: readonly string[]): string {
  return by.length === 0 ? `sum(${vector})` : `sum by (${by.join(', ')}) (${vector})`;
}

/** A share that is absent, and not NaN, where the denominator is 0. */
export function share(part: string, whole: string): string {
  return `${part} / (${whole} > 0)`;
}

/** The same of several parts of one whole, which has none of their labels, or the labels `on` alone. */
export function shares(part: string, whole: string, ...on: readonly string[]): string {
  return `${part} / on (${on.join(', ')}) group_left () (${whole} > 0)`;
}
