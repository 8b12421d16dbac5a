/** Ways from a panel to the traces behind it and to the other dashboards, keeping what was chosen. */
import type { Dashboard } from '../rules/rule.ts';
import type { ATTR } from '../src/telemetry/names.ts';
import type { GeneratorOptions } from './options.ts';

/** A link on a value. Grafana keeps it in the field options. */
export interface DataLink {
  readonly title: string;
  readonly url: string;
  readonly targetBlank: boolean;
}

/** An attribute and the word it is to have: a word, or Grafana's variable for a label of the series. */
export type Tag = readonly [attribute: (typeof ATTR)[keyof typeof ATTR], value: string];

/** The label of the series that was clicked on. */
export function ofSeries(label: string): string {
  return `\${__field.labels.${label}}`;
}

/** The cell of the row that was clicked on. */
export function ofRow(column: string): string {
  return `\${__data.fields.${column}}`;
}

/**
 * To the search for spans with these words: in Tempo, and in Jaeger, which can compare nothing but equal tags and
 * wants one service.
 */
export function traceLinks(options: GeneratorOptions, tags: readonly Tag[]): DataLink[] {
  const conditions = tags.map(([attribute, value]) => `span.${attribute} = "${value}"`);
  const query = `{ ${[`resource.service.name =~ "\${job:regex}"`, ...conditions].join(' && ')} }`;
  const tempo: DataLink = { title: 'Traces in Tempo', url: tempoExplore(query), targetBlank: true };
  if (options.jaegerUrl === '') return [tempo];
  const words = `{${tags.map(([attribute, value]) => `"${attribute}":"${value}"`).join(',')}}`;
  const address = options.jaegerUrl.replace(/\/$/, '');
  return [
    tempo,
    {
      title: 'Traces in Jaeger (of one service)',
      // Jaeger counts in microseconds.
      url: `${address}/search?service=\${job}&start=\${__from}000&end=\${__to}000&tags=${encode(words)}`,
      targetBlank: true,
    },
  ];
}

export function tempoExplore(query: string): string {
  const panes = {
    budget: {
      datasource: '${tempo_datasource}',
      queries: [
        {
          refId: 'A',
          datasource: { type: 'tempo', uid: '${tempo_datasource}' },
          queryType: 'traceql',
          tableType: 'spans',
          query,
          limit: 50,
        },
      ],
      range: { from: '${__from}', to: '${__to}' },
    },
  };
  return `/explore?schemaVersion=1&panes=${encode(JSON.stringify(panes))}`;
}

/** To another dashboard of the set. What is not said in `chosen` stays as it is here. */
export function boardLink(
  options: GeneratorOptions,
  board: Dashboard,
  title: string,
  chosen: Readonly<Record<string, string>> = {},
): DataLink {
  const kept = ['prometheus_datasource', 'tempo_datasource', 'job'].filter((name) => !(name in chosen));
  const query = [
    '${__url_time_range}',
    ...kept.map((name) => `\${${name}:queryparam}`),
    ...Object.entries(chosen).map(([name, value]) => `var-${name}=${value}`),
  ].join('&');
  return { title, url: `/d/${options.uidPrefix}-${board}?${query}`, targetBlank: false };
}

export function runbookLinks(options: GeneratorOptions): DataLink[] {
  if (options.runbookUrl === '') return [];
  return [{ title: 'Runbooks', url: options.runbookUrl, targetBlank: true }];
}

/** All but Grafana's variables, which it fills in itself. */
function encode(text: string): string {
  return encodeURIComponent(text).replace(
    /%24%7B([\w.%]+?)%7D/g,
    (_, name: string) => `\${${decodeURIComponent(name)}}`,
  );
}
