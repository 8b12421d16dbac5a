/** Rules about a dashboard as a whole, and about the set. */
import type { Dashboard, VariableModel } from '@grafana/grafana-foundation-sdk/dashboard';
import type { GeneratorOptions } from '../options.ts';
import { type Finding, panelsOf, placeOf } from './place.ts';
import { parsePromql } from './promql.ts';
import { traceqlFindings } from './query-rules.ts';

/** Variables that Grafana fills in itself begin with two underscores. */
const USED = /\$(?:\{(\w+)[}:.]|(\w+))/g;
const SCHEMA_VERSION = 39;

export function checkDashboard(dashboard: Dashboard, options: GeneratorOptions): Finding[] {
  const place = placeOf(dashboard);
  const found: Finding[] = [];
  const demand = (isRight: boolean, rule: string, message: string) => {
    if (!isRight) found.push({ rule, place, message });
  };
  const text = JSON.stringify(dashboard);
  demand(
    /^[a-z0-9-]{8,40}$/.test(dashboard.uid ?? ''),
    'dashboard-uid',
    'the uid must have 8 to 40 of a-z, 0-9, -',
  );
  demand(dashboard.editable === false, 'uneditable-dashboard', 'editable: what is changed there is lost');
  demand(
    dashboard.schemaVersion === SCHEMA_VERSION,
    'dashboard-schema',
    `schemaVersion is not ${SCHEMA_VERSION}`,
  );
  demand(dashboard.graphTooltip === 1, 'dashboard-crosshair', 'no shared crosshair');
  demand(dashboard.tags?.includes(options.tag) === true, 'dashboard-tag', `no tag ${options.tag}`);
  demand(
    !text.includes('"__inputs"') && !text.includes('${DS_'),
    'dashboard-inputs',
    'only the import dialog fills __inputs',
  );
  const rows = (dashboard.panels ?? []).filter((panel) => 'panels' in panel);
  const ids = [...rows, ...panelsOf(dashboard)].map(({ id }) => id);
  for (const id of ids)
    demand(
      id !== undefined && id > 0 && ids.indexOf(id) === ids.lastIndexOf(id),
      'panel-id',
      `id ${id} is not unique`,
    );
  found.push(...overlaps(dashboard), ...variableFindings(dashboard, options, text));
  return found;
}

function overlaps(dashboard: Dashboard): Finding[] {
  const panels = panelsOf(dashboard);
  return panels.flatMap((panel, index) => {
    const a = panel.gridPos;
    const other = panels.slice(index + 1).find(({ gridPos: b }) => {
      if (a === undefined || b === undefined) return false;
      return a.x < b.x + b.w && b.x < a.x + a.w && a.y < b.y + b.h && b.y < a.y + a.h;
    });
    if (other === undefined) return [];
    return [{ rule: 'panel-grid', place: placeOf(dashboard, panel), message: `lies on panel ${other.id}` }];
  });
}

function variableFindings(dashboard: Dashboard, options: GeneratorOptions, text: string): Finding[] {
  const place = placeOf(dashboard);
  const list = dashboard.templating.list ?? [];
  const found: Finding[] = [];
  const add = (rule: string, message: string) => found.push({ rule, place, message });
  const named = (name: string) => list.find((variable) => variable.name === name);
  for (const [name, label] of [
    ['prometheus_datasource', 'Prometheus data source'],
    ['tempo_datasource', 'Tempo data source'],
  ] as const) {
    const variable = named(name);
    if (variable?.type !== 'datasource' || variable.label !== label)
      add('template-datasource-rule', `no variable ${name} with label "${label}"`);
  }
  for (const name of ['job', 'instance']) {
    const variable = named(name);
    if (variable?.multi !== true || variable.includeAll !== true || variable.allValue !== '.+')
      add(`template-${name}-rule`, `variable ${name} must be a multiple choice with all = .+`);
  }
  for (const variable of list.filter(({ type }) => type === 'query'))
    found.push(...lookUps(variable, place, options));
  const used = new Set([...text.matchAll(USED)].map(([, braced, bare]) => braced ?? bare ?? ''));
  const known = new Set(list.map(({ name }) => name));
  for (const name of known) if (!used.has(name)) add('template-used', `variable ${name} is used nowhere`);
  for (const name of used)
    if (!known.has(name) && !name.startsWith('__'))
      add('template-declared', `variable ${name} is not declared`);
  return found;
}

function lookUps(variable: VariableModel, place: string, options: GeneratorOptions): Finding[] {
  const found: Finding[] = [];
  const add = (rule: string, message: string) =>
    found.push({ rule, place, message: `variable ${variable.name}: ${message}` });
  const query = /^label_values\((.+), (\w+)\)$/s.exec(variable.definition ?? '');
  const error = query === null ? 'no label_values' : parsePromql(query[1] ?? '').error;
  if (error !== undefined) add('template-label-promql-rule', error);
  // 2 = with the time range: a service that came later is found.
  if (variable.refresh !== 2)
    add('template-on-time-change-reload-rule', 'is not looked up when the time changes');
  if (variable.datasource?.uid !== '${prometheus_datasource}')
    add('panel-datasource-rule', 'no data source variable');
  const isAlwaysThere = ['job', 'instance'].includes(variable.name);
  if (!isAlwaysThere && variable.allValue !== '.*')
    add('template-optional-label', 'all must be .*, or series without the label are lost');
  if (isAlwaysThere && query?.[2] !== (variable.name === 'job' ? options.jobLabel : variable.name))
    add(`template-${variable.name}-rule`, `looks up ${query?.[2]}`);
  return found;
}

/** What must hold between dashboards: uids, titles, and where links go. */
export function checkSet(dashboards: readonly Dashboard[]): Finding[] {
  const found: Finding[] = [];
  const byUid = new Map(dashboards.map((dashboard) => [dashboard.uid, dashboard]));
  for (const dashboard of dashboards) {
    const place = placeOf(dashboard);
    for (const key of ['uid', 'title'] as const) {
      if (dashboards.filter((other) => other[key] === dashboard[key]).length > 1)
        found.push({
          rule: 'dashboard-unique',
          place,
          message: `another one has the ${key} "${dashboard[key]}"`,
        });
    }
    for (const url of JSON.stringify(dashboard).match(/"(\/d\/|\/explore|https?:)[^"]*"/g) ?? [])
      found.push(...checkLink(url.slice(1, -1), byUid, place));
  }
  return found;
}

function checkLink(url: string, byUid: ReadonlyMap<string | undefined, Dashboard>, place: string): Finding[] {
  const rule = 'link-target';
  if (url.startsWith('/explore')) {
    const panes: unknown = JSON.parse(decodeURIComponent(url.split('panes=')[1] ?? '{}'));
    const query = /"query":"((?:[^"\\]|\\.)*)"/.exec(JSON.stringify(panes))?.[1] ?? '';
    return traceqlFindings(query.replaceAll('\\"', '"'), `${place} / link`);
  }
  const uid = /^\/d\/([^?]*)/.exec(url)?.[1];
  if (uid === undefined) return [];
  const target = byUid.get(uid);
  if (target === undefined) return [{ rule, place, message: `no dashboard has the uid "${uid}"` }];
  const known = new Set((target.templating.list ?? []).map(({ name }) => name));
  const given = [...url.matchAll(/var-(\w+)=|\$\{(\w+):queryparam\}/g)].map(
    ([, set, kept]) => set ?? kept ?? '',
  );
  return given
    .filter((name) => !known.has(name))
    .map((name) => ({ rule, place, message: `${uid} has no variable "${name}"` }));
}
