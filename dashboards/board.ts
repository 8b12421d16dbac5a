/** From rows of panels to a dashboard that Grafana 11, 12 and 13 load from a file. */
import {
  AnnotationQueryBuilder,
  type Dashboard,
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  type Panel,
  type RowPanel,
  type VariableModel,
} from '@grafana/grafana-foundation-sdk/dashboard';
import type { Dashboard as DashboardName } from '../rules/rule.ts';
import { METRICS, prometheusName } from '../src/telemetry/names.ts';
import type { GeneratorOptions } from './options.ts';
import { type Draft, PROMETHEUS } from './panel.ts';
import { type Filter, Queries } from './queries.ts';
import { variables } from './variables.ts';

/** Native in Grafana 11; later ones add steps that change nothing of what is used here. */
const SCHEMA_VERSION = 39;
const GRID_WIDTH = 24;

export interface Row {
  readonly id: number;
  readonly title: string;
  readonly panels: readonly Draft[];
  /** Opened by whoever wants it; its queries do not run before. */
  readonly isCollapsed?: boolean;
}

export interface Board {
  /** Behind the prefix of the uid, and the name of the file. */
  readonly name: DashboardName;
  readonly title: string;
  readonly description: string;
  readonly filters: readonly Filter[];
  readonly variables?: (options: GeneratorOptions) => readonly VariableModel[];
  readonly rows: (q: Queries) => readonly Row[];
}

export function buildDashboard(board: Board, options: GeneratorOptions): Dashboard {
  const queries = new Queries(options, board.filters);
  const built = new DashboardBuilder(`Time budgets / ${board.title}`)
    .uid(`${options.uidPrefix}-${board.name}`)
    .description(board.description)
    .tags([options.tag])
    .timezone('browser')
    .readonly()
    .tooltip(DashboardCursorSync.Crosshair)
    .refresh('30s')
    .time({ from: 'now-1h', to: 'now' })
    .annotations(annotations(queries))
    .build();
  built.schemaVersion = SCHEMA_VERSION;
  built.version = 1;
  // The builder's default hides it in a menu of new Grafanas.
  for (const annotation of built.annotations.list ?? []) delete annotation.placement;
  built.links = links(options);
  built.templating.list = [...variables(options, board.filters), ...(board.variables?.(options) ?? [])];
  built.panels = place(board.rows(queries));
  if (options.scrapeInterval !== '') setInterval(built.panels, options.scrapeInterval);
  return built;
}

/** From left to right, a new line where the width is used up; a line is as high as its highest panel. */
function place(rows: readonly Row[]): (Panel | RowPanel)[] {
  const placed: (Panel | RowPanel)[] = [];
  let y = 0;
  for (const { id, title, panels, isCollapsed = false } of rows) {
    const row: RowPanel = { type: 'row', id, title, collapsed: isCollapsed, panels: [] };
    row.gridPos = { x: 0, y, w: GRID_WIDTH, h: 1 };
    placed.push(row);
    y += 1;
    let x = 0;
    let lineHeight = 0;
    for (const { panel, width, height } of panels) {
      if (x + width > GRID_WIDTH) {
        x = 0;
        y += lineHeight;
        lineHeight = 0;
      }
      panel.gridPos = { x, y, w: width, h: height };
      x += width;
      lineHeight = Math.max(lineHeight, height);
      (isCollapsed ? row.panels : placed).push(panel);
    }
    y += lineHeight;
  }
  return placed;
}

function links({ tag }: GeneratorOptions) {
  const link = new DashboardLinkBuilder('Time budgets')
    .type(DashboardLinkType.Dashboards)
    .tags([tag])
    .asDropdown(true)
    .includeVars(true)
    .keepTime(true)
    .build();
  // As above.
  delete link.placement;
  return [link];
}

function annotations(queries: Queries): AnnotationQueryBuilder[] {
  const { jobLabel } = queries.options;
  const policy = `${prometheusName(METRICS.policyInfo)}{${queries.service}}`;
  const by = `group by (${jobLabel}, policy_version)`;
  return [
    annotation(
      'Firing alerts',
      'red',
      `ALERTS{component="time-budget",alertstate="firing",${queries.service}}`,
      `{{alertname}} {{${jobLabel}}} {{operation}}{{dependency}}`,
    ),
    annotation(
      'Policy changes',
      'blue',
      // A version that was not there in the ten minutes before. A restart is none.
      `${by} (${policy}) unless ${by} (last_over_time(${policy}[10m] offset 1m))`,
      `policy {{policy_version}} of {{${jobLabel}}}`,
    ),
  ];
}

function annotation(name: string, colour: string, expr: string, title: string): AnnotationQueryBuilder {
  return new AnnotationQueryBuilder()
    .name(name)
    .datasource(PROMETHEUS)
    .enable(true)
    .iconColor(colour)
    .expr(expr)
    .step('60s')
    .titleFormat(title);
}

function setInterval(panels: readonly (Panel | RowPanel)[], interval: string): void {
  for (const panel of panels) {
    if ('panels' in panel) setInterval(panel.panels, interval);
    else if (panel.datasource?.type === PROMETHEUS.type) panel.interval = interval;
  }
}
