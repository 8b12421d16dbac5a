/** What the linter finds, and where. Rules that Grafana's own dashboard-linter has are named as there. */
import type { Dashboard, Panel, RowPanel } from '@grafana/grafana-foundation-sdk/dashboard';

export interface Finding {
  readonly rule: string;
  /** The dashboard, and the panel and query in it. */
  readonly place: string;
  readonly message: string;
}

/** A query of a panel, as far as the linter looks at it. */
export interface Query {
  readonly refId: string;
  /** PromQL. */
  readonly expr?: string;
  /** TraceQL. */
  readonly query?: string;
  readonly legendFormat?: string;
  readonly instant?: boolean;
}

/** All panels but the rows, those of closed rows as well. */
export function panelsOf(dashboard: Dashboard): Panel[] {
  const all = (panels: readonly (Panel | RowPanel)[]): Panel[] =>
    panels.flatMap((panel) => ('panels' in panel ? panel.panels : [panel]));
  return all(dashboard.panels ?? []);
}

export function queriesOf(panel: Panel): readonly Query[] {
  // The builders' type of a query says nothing but that it is one.
  return (panel.targets ?? []) as unknown as readonly Query[];
}

export function placeOf(dashboard: Dashboard, panel?: Panel, query?: Query): string {
  const parts = [dashboard.uid ?? '(no uid)'];
  if (panel !== undefined) parts.push(`panel ${panel.id ?? '(no id)'} "${panel.title ?? ''}"`);
  if (query !== undefined) parts.push(query.refId);
  return parts.join(' / ');
}

/** The values that a variable in a query may be replaced by: all of a choice, the default of a text box. */
export function variableValues(dashboard: Dashboard): Readonly<Record<string, readonly string[]>> {
  const list = dashboard.templating.list ?? [];
  return Object.fromEntries(
    list.flatMap(({ type, name, query, options }) => {
      if (type === 'custom') return [[name, (options ?? []).map(({ value }) => String(value))]];
      if (type === 'textbox') return [[name, [String(query ?? '')]]];
      return [];
    }),
  );
}
