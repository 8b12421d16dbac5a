/** Every rule over a set of dashboards. Empty: nothing is wrong. */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import type { GeneratorOptions } from '../options.ts';
import { checkDashboard, checkSet } from './dashboard-rules.ts';
import { checkPanel } from './panel-rules.ts';
import { type Finding, panelsOf, queriesOf } from './place.ts';
import { checkPromql, checkTraceql } from './query-rules.ts';
import { checkVersions } from './version-rules.ts';

export function lint(dashboards: readonly Dashboard[], options: GeneratorOptions): Finding[] {
  return [
    ...checkSet(dashboards),
    ...dashboards.flatMap((dashboard) => [
      ...checkDashboard(dashboard, options),
      ...checkVersions(dashboard),
      ...panelsOf(dashboard).flatMap((panel) => [
        ...checkPanel(dashboard, panel),
        ...queriesOf(panel).flatMap((query) =>
          query.expr === undefined
            ? checkTraceql(dashboard, panel, query)
            : checkPromql(dashboard, panel, query, options),
        ),
      ]),
    ]),
  ];
}
