/** Rules about single panels: what a person must be told, and what another Grafana must be able to show. */
import type { Dashboard, Panel } from '@grafana/grafana-foundation-sdk/dashboard';
import * as units from '@grafana/grafana-foundation-sdk/units';
import { type Finding, placeOf, queriesOf } from './place.ts';

/** In every Grafana from 11 on, without a plugin. */
const PANEL_TYPES = [
  'timeseries',
  'stat',
  'bargauge',
  'table',
  'heatmap',
  'state-timeline',
  'traces',
  'text',
];
const UNITS: ReadonlySet<unknown> = new Set(Object.values(units));
const DATA_SOURCES: ReadonlySet<string> = new Set(['${prometheus_datasource}', '${tempo_datasource}']);
const PARTS = ['**Question:** ', '**Shown:** ', '**Do:** '];
/** Measures that are no goal for a service (D-37): no colour may say what is good. */
const DIAGNOSTICS = [/^Attempts per original/, /^Arrivals per original/, /^Share of execution time after/];
const GRID_WIDTH = 24;

export function checkPanel(dashboard: Dashboard, panel: Panel): Finding[] {
  const place = placeOf(dashboard, panel);
  const found: Finding[] = [];
  const demand = (isRight: boolean, rule: string, message: string) => {
    if (!isRight) found.push({ rule, place, message });
  };
  const { type, title = '', description = '', libraryPanel, gridPos } = panel;
  demand(PANEL_TYPES.includes(type), 'panel-type', `"${type}" is none of ${PANEL_TYPES.join(', ')}`);
  demand(libraryPanel === undefined, 'panel-library', 'library panels cannot be loaded from files');
  demand(
    gridPos !== undefined && gridPos.x >= 0 && gridPos.x + gridPos.w <= GRID_WIDTH,
    'panel-grid',
    'lies outside of the grid',
  );
  demand(title !== '', 'panel-title-description-rule', 'no title');
  if (type === 'text') return found;
  for (const part of PARTS)
    demand(
      description.includes(part),
      'panel-title-description-rule',
      `the description has no ${part.trim()}`,
    );
  demand(DATA_SOURCES.has(panel.datasource?.uid ?? ''), 'panel-datasource-rule', 'no data source variable');
  demand(queriesOf(panel).length > 0, 'panel-no-targets-rule', 'no query');
  const defaults = panel.fieldConfig?.defaults ?? {};
  demand((defaults.noValue ?? '') !== '', 'panel-no-value', 'says nothing where there is no data');
  if (type !== 'traces')
    demand(UNITS.has(defaults.unit), 'panel-units-rule', `"${defaults.unit ?? ''}" is no unit of Grafana`);
  const isDiagnostic = DIAGNOSTICS.some((pattern) => pattern.test(title));
  const steps = defaults.thresholds?.steps ?? [];
  demand(
    !(isDiagnostic && steps.some(({ value }) => value !== null)),
    'panel-diagnostic-thresholds',
    'a diagnostic is no goal: no thresholds',
  );
  const refIds = queriesOf(panel).map(({ refId }) => refId);
  demand(
    new Set(refIds).size === refIds.length && !refIds.includes(''),
    'target-ref-id',
    'refIds are not unique',
  );
  return found;
}
