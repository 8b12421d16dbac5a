/** The generated part of docs/dashboards.md: every panel with its question, and which metric feeds which panel. */
import type { Dashboard, Panel, RowPanel } from '@grafana/grafana-foundation-sdk/dashboard';
import { panelsOf, queriesOf } from './lint/place.ts';
import { parsePromql } from './lint/promql.ts';

const BEGIN = '<!-- made by `npm run dashboards`: begin -->';
const END = '<!-- made by `npm run dashboards`: end -->';

/** The page with its generated part put in anew. */
export function page(existing: string, dashboards: readonly Dashboard[]): string {
  const begin = existing.indexOf(BEGIN);
  const end = existing.indexOf(END);
  if (begin === -1 || end < begin) throw new RangeError('docs/dashboards.md has lost its markers');
  const generated = [...dashboards.flatMap(section), ...index(dashboards)].join('\n');
  return `${existing.slice(0, begin)}${BEGIN}\n\n${generated}\n\n${existing.slice(end)}`;
}

function section(dashboard: Dashboard): string[] {
  const { title = '', uid = '', description = '' } = dashboard;
  return [
    `## ${title.replace('Time budgets / ', '')}`,
    '',
    `\`${uid}\`. ${description}`,
    '',
    `![${title}](${uid}.png)`,
    '',
    '| id | panel | question | what to do |',
    '|---:|---|---|---|',
    ...(dashboard.panels ?? []).flatMap(panelRows),
    '',
  ];
}

function panelRows(panel: Panel | RowPanel): string[] {
  if ('panels' in panel) return [`| | **${panel.title}** | | |`, ...panel.panels.flatMap(panelRows)];
  const { id, title = '', description = '' } = panel;
  return [`| ${id} | ${cell(title)} | ${part(description, 'Question')} | ${part(description, 'Do')} |`];
}

function part(description: string, name: string): string {
  const found = new RegExp(`\\*\\*${name}:\\*\\* (.*)`).exec(description);
  return cell(found?.[1] ?? '');
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|');
}

function index(dashboards: readonly Dashboard[]): string[] {
  const users = new Map<string, Set<string>>();
  for (const dashboard of dashboards) {
    const short = dashboard.uid?.split('-').at(-1) ?? '';
    for (const panel of panelsOf(dashboard)) {
      for (const metric of metricsOf(panel)) {
        const panels = users.get(metric) ?? new Set();
        users.set(metric, panels.add(`${short} ${panel.id}`));
      }
    }
  }
  const rows = [...users].map(([name, panels]) => `| \`${name}\` | ${[...panels].join(', ')} |`);
  return [
    '## Which metric feeds which panel',
    '',
    'Panels are named by the last word of their dashboard and their id.',
    '',
    '| metric | panels |',
    '|---|---|',
    ...rows.sort(),
  ];
}

function metricsOf(panel: Panel): string[] {
  return queriesOf(panel).flatMap(({ expr = '' }) =>
    parsePromql(expr).selectors.map(({ metric }) => metric.replace(/_(bucket|sum|count)$/, '')),
  );
}
