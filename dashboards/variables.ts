/** The variables on top of a dashboard. Each but the first two asks a series that every service has. */
import {
  CustomVariableBuilder,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  TextBoxVariableBuilder,
  type VariableModel,
  VariableRefresh,
  VariableSort,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { METRICS, type MetricKey, prometheusName } from '../src/telemetry/names.ts';
import type { GeneratorOptions } from './options.ts';
import { PROMETHEUS } from './panel.ts';
import type { Filter } from './queries.ts';

/** Choice of a grouping that no series has: one line for all. */
export const NO_SPLIT = 'none';

const ALL = { selected: true, text: ['All'], value: ['$__all'] };

/** Where the values of a filter are looked up: a metric that is there from the first request, or call, on. */
const SOURCES: Readonly<Record<Filter, MetricKey>> = {
  caller: 'offered',
  operation: 'offered',
  priority: 'offered',
  dependency: 'calls',
};

export function variables(options: GeneratorOptions, filters: readonly Filter[]): VariableModel[] {
  const { jobLabel, matchers, labels } = options;
  const known = prometheusName(METRICS.policyInfo);
  const of = (...more: string[]) => [...matchers, ...more].join(',');
  const inService = of(...labels.map((label) => `${label}=~"$${label}"`), `${jobLabel}=~"$job"`);
  return [
    dataSource('prometheus_datasource', 'Prometheus data source', 'prometheus'),
    dataSource('tempo_datasource', 'Tempo data source', 'tempo'),
    ...labels.map((label) => query(label, label, `${known}{${of()}}`, '.*')),
    query(
      'job',
      'Service',
      `${known}{${of(...labels.map((label) => `${label}=~"$${label}"`))}}`,
      '.+',
      jobLabel,
    ),
    query('instance', 'Instance', `${known}{${inService}}`, '.+'),
    ...filters.map((filter) => {
      const title = filter.charAt(0).toUpperCase() + filter.slice(1);
      // Series without the label are not to disappear while everything is chosen.
      return query(filter, title, `${prometheusName(METRICS[SOURCES[filter]])}{${inService}}`, '.*');
    }),
  ];
}

function dataSource(name: string, label: string, type: string): VariableModel {
  return new DatasourceVariableBuilder(name).label(label).type(type).build();
}

function query(
  name: string,
  label: string,
  series: string,
  allValue: string,
  source: string = name,
): VariableModel {
  const definition = `label_values(${series.replace('{}', '')}, ${source})`;
  return new QueryVariableBuilder(name)
    .label(label)
    .datasource(PROMETHEUS)
    .query({ query: definition, refId: 'StandardVariableQuery' })
    .definition(definition)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue(allValue)
    .current(ALL)
    .build();
}

/** A choice between words; the first one holds until another is chosen. */
export function choice(name: string, label: string, words: readonly string[]): VariableModel {
  const [first = ''] = words;
  return new CustomVariableBuilder(name)
    .label(label)
    .values(words.join(','))
    .current({ selected: true, text: first, value: first })
    .options(words.map((word) => ({ selected: word === first, text: word, value: word })))
    .build();
}

export function textBox(name: string, label: string, value: string): VariableModel {
  return new TextBoxVariableBuilder(name)
    .label(label)
    .defaultValue(value)
    .current({ selected: true, text: value, value })
    .build();
}
