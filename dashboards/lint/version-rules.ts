/** What Grafana 11, 12 and 13 do not read alike: fields that were replaced, and those that only new ones know. */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { type Finding, placeOf } from './place.ts';

/** Each is matched with `path=value` of every part of a dashboard, the value as JSON. */
const RULES: readonly (readonly [part: RegExp, rule: string, message: string])[] = [
  [/^rows=/, 'dashboard-rows', 'rows are panels'],
  [/^refresh=(?!")/, 'dashboard-refresh', 'must be a text'],
  [/^timepicker\.time_options=/, 'dashboard-time-options', 'nothing has read it since Grafana 5'],
  // The builders' default, which hides a link in a menu of new Grafanas.
  [/^(links|annotations\.list)\.\d+\.placement=/, 'dashboard-placement', 'only new Grafanas know it'],
  [/\.targets\.\d+\.intervalFactor=/, 'target-deprecated', 'is replaced by interval'],
  [
    /\.targets\.\d+\.(search|(service|span)Name|(min|max)Duration)=/,
    'target-deprecated',
    'is replaced by query',
  ],
  [/\.custom\.displayMode=/, 'panel-deprecated', 'is replaced by cellOptions'],
  [/\.properties\.\d+\.id="custom\.displayMode"$/, 'panel-deprecated', 'is replaced by custom.cellOptions'],
  [/\.transformations\.\d+\.id="formatTime"$/, 'panel-deprecated', 'is replaced by convertFieldType'],
  // Hidden without a word about the tooltip: it has one in Grafana 11, and none once schema step 42 is taken.
  [
    /(\.hideFrom=|\.properties\.\d+=(?=.*"id":"custom\.hideFrom"))(?!.*"tooltip":)/,
    'panel-hide-from',
    'says nothing of tooltips',
  ],
  [/\.datasource="/, 'datasource-variable', 'is the name of a data source, not a variable'],
  [
    /\.datasource\.uid="(?!\$\{(prometheus|tempo)_datasource\}"$)/,
    'datasource-variable',
    'is no data source variable',
  ],
];

export function checkVersions(dashboard: Dashboard): Finding[] {
  return partsOf(dashboard).flatMap(([path, value]) => {
    const part = `${path}=${JSON.stringify(value)}`;
    return RULES.filter(([pattern]) => pattern.test(part)).map(([, rule, message]) => ({
      rule,
      place: `${placeOf(dashboard)} / ${path}`,
      message,
    }));
  });
}

function partsOf(whole: object, prefix = ''): (readonly [path: string, value: unknown])[] {
  return Object.entries(whole).flatMap(([key, value]: readonly [string, unknown]) => {
    const path = `${prefix}${key}`;
    const parts = typeof value === 'object' && value !== null ? partsOf(value, `${path}.`) : [];
    return [[path, value] as const, ...parts];
  });
}
