/** Every rule of the linter, by the committed dashboards with one thing broken: each is told with its place. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Dashboard, Panel } from '@grafana/grafana-foundation-sdk/dashboard';
import { describe, expect, test } from 'vitest';
import { lint } from '../../dashboards/lint/lint.ts';
import { panelsOf, queriesOf } from '../../dashboards/lint/place.ts';
import { DEFAULT_OPTIONS } from '../../dashboards/options.ts';

const FOLDER = new URL('../../dashboards/json/', import.meta.url);

function committed(): Dashboard[] {
  return readdirSync(FOLDER).map((file) => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')));
}

/** Of the dashboard with this uid, behind the prefix. */
function named(all: readonly Dashboard[], name: string): Dashboard {
  const found = all.find(({ uid }) => uid === `time-budget-${name}`);
  if (found === undefined) throw new Error(`no dashboard ${name}`);
  return found;
}

function panel(dashboard: Dashboard, id: number): Panel {
  const found = panelsOf(dashboard).find((one) => one.id === id);
  if (found === undefined) throw new Error(`no panel ${id}`);
  return found;
}

/** Puts another text into the first query of a panel. */
function requery(dashboard: Dashboard, id: number, from: string | RegExp, to: string): void {
  // Queries are told as what the linter reads of them; here they are written.
  const [query] = queriesOf(panel(dashboard, id)) as unknown as { expr?: string; query?: string }[];
  if (query === undefined) throw new Error(`panel ${id} has no query`);
  const key = query.expr === undefined ? 'query' : 'expr';
  const before = query[key] ?? '';
  query[key] = before.replace(from, to);
  if (query[key] === before) throw new Error(`nothing to replace in ${before}`);
}

function findings(breakIt: (overview: Dashboard, all: Dashboard[]) => void): string[] {
  const all = committed();
  breakIt(named(all, 'overview'), all);
  return lint(all, DEFAULT_OPTIONS).map(({ rule, place, message }) => `${place}: ${message} (${rule})`);
}

const USEFUL = 'time-budget-overview / panel 11 "Useful ÷ admitted"';

test('the committed dashboards have no finding', () => {
  expect(findings(() => undefined)).toEqual([]);
});

describe('a query', () => {
  const inFirst = (from: string | RegExp, to: string) =>
    findings((overview) => requery(overview, 11, from, to));

  test('of a metric that nothing exports', () => {
    expect(inFirst('time_budget_outcomes_total', 'time_budget_results_total')).toEqual([
      `${USEFUL} / A: nothing exports a metric "time_budget_results_total" (target-metric-known)`,
    ]);
  });

  test('of a metric under the name that another exporter gives it', () => {
    expect(inFirst('time_budget_outcomes_total', 'time_budget_outcomes')).toEqual([
      `${USEFUL} / A: nothing exports a metric "time_budget_outcomes" (target-metric-known)`,
    ]);
  });

  test('with a label that its metric has not', () => {
    expect(inFirst('outcome="useful"', 'result="useful"')).toEqual([
      `${USEFUL} / A: time_budget_outcomes_total has no label "result" (target-label-known)`,
    ]);
  });

  test('grouped by a label that its metric has not', () => {
    expect(inFirst('sum(rate', 'sum by (dependency) (rate')).toEqual([
      `${USEFUL} / A: time_budget_outcomes_total has no label "dependency", which (dependency) needs (target-label-known)`,
    ]);
  });

  test('matched on a label that one side has not', () => {
    const found = findings((_, all) =>
      requery(
        named(all, 'dependencies'),
        11,
        'on (job, caller) group_left',
        'on (job, operation) group_left',
      ),
    );
    expect(found).toEqual([
      'time-budget-dependencies / panel 11 "Slow dependency, or budgets of the caller? One row for each caller and dependency" / A: time_budget_calls_total has no label "operation", which on (job, operation) group_left () needs (target-label-known)',
    ]);
  });

  test('that is no PromQL', () => {
    expect(inFirst('> 0)', '>')).toEqual([
      expect.stringMatching(
        /^time-budget-overview \/ panel 11 .* \/ A: no PromQL at character \d+: .*\(target-promql-rule\)$/,
      ),
    ]);
  });

  test('that matches a bound of a histogram', () => {
    const found = findings((_, all) => requery(named(all, 'path'), 23, 'point="before_call"', 'le="1"'));
    expect(found).toEqual([expect.stringContaining('never match it (target-le-equality)')]);
  });

  test('over a fixed window', () => {
    expect(inFirst('$__rate_interval', '5m')).toEqual([
      `${USEFUL} / A: rate(time_budget_outcomes_total) over 5m (target-rate-interval-rule)`,
    ]);
  });

  test('of a bare counter, and of the rate of a gauge', () => {
    expect(inFirst(/rate\((.*?)\[\$__rate_interval\]\)/, '$1')).toEqual([
      `${USEFUL} / A: time_budget_outcomes_total outside rate or increase (target-counter-agg-rule)`,
    ]);
    const found = findings((_, all) =>
      requery(named(all, 'path'), 41, /\((time_budget_executing.*)\)/, '(rate($1[$$__rate_interval]))'),
    );
    expect(found).toEqual([
      expect.stringContaining('rate of the gauge time_budget_executing (target-gauge-rate)'),
    ]);
  });

  test('of all services, whatever is chosen', () => {
    expect(inFirst('job=~"$job",', '')).toEqual([
      `${USEFUL} / A: time_budget_outcomes_total without job=~"$job" (target-job-rule)`,
    ]);
    expect(inFirst('instance=~"$instance",', '')).toEqual([
      `${USEFUL} / A: time_budget_outcomes_total without instance=~"$instance" (target-instance-rule)`,
    ]);
  });

  test('divided by what may be 0', () => {
    expect(inFirst(' > 0)', ' >= 0)')).toEqual([expect.stringContaining('(target-division)')]);
  });

  test('with a zero series beside a grouping', () => {
    expect(inFirst(/^(.*)$/s, 'sum by (operation) ($1) or vector(0)').join()).toContain('(target-or-vector)');
  });

  test('of traces that is no TraceQL, or of an attribute that no span has', () => {
    const inPath = (from: string, to: string) =>
      findings((_, all) => requery(named(all, 'path'), 61, from, to));
    const place = 'time-budget-path / panel 61 "Requests that ran out of time" / A';
    expect(inPath('} |', '|')).toEqual([expect.stringContaining('(target-traceql-rule)')]);
    expect(inPath('span.time_budget.overrun_ms', 'span.time_budget.late_ms')).toEqual([
      `${place}: no span has "time_budget.late_ms" (target-attribute-known)`,
    ]);
  });
});

describe('a panel', () => {
  const broken = (change: (panel: Panel) => void) => findings((overview) => change(panel(overview, 11)));

  test.each<[what: string, change: (panel: Panel) => void, found: string]>([
    [
      'without a part of its description',
      (one) => (one.description = 'Useful?'),
      '**Do:** (panel-title-description-rule)',
    ],
    ['without a title', (one) => (one.title = ''), 'no title (panel-title-description-rule)'],
    [
      'with a unit that Grafana has not',
      (one) => setDefault(one, 'unit', 'parts'),
      '"parts" is no unit of Grafana (panel-units-rule)',
    ],
    ['that says nothing without data', (one) => setDefault(one, 'noValue', ''), '(panel-no-value)'],
    ['of a data source by its name', (one) => (one.datasource = { uid: 'P123' }), '(panel-datasource-rule)'],
    ['without a query', (one) => (one.targets = []), 'no query (panel-no-targets-rule)'],
    ['of a plugin', (one) => (one.type = 'grafana-piechart-panel'), '(panel-type)'],
    ['of Angular, gone since Grafana 11', (one) => (one.type = 'graph'), '"graph" is none of'],
    ['of Angular, another one', (one) => (one.type = 'singlestat'), '"singlestat" is none of'],
    ['out of the library', (one) => (one.libraryPanel = { uid: 'a', name: 'a' }), '(panel-library)'],
    [
      'outside of the grid',
      (one) => (one.gridPos = { x: 22, y: 0, w: 4, h: 4 }),
      'lies outside of the grid (panel-grid)',
    ],
    ['on another one', (one) => (one.gridPos = { x: 3, y: 1, w: 4, h: 4 }), 'lies on panel 12 (panel-grid)'],
    ['with the id of another', (one) => (one.id = 12), 'id 12 is not unique (panel-id)'],
    ['without an id', (one) => delete one.id, 'id undefined is not unique (panel-id)'],
  ])('%s', (_, change, found) => {
    expect(broken(change).join('\n')).toContain(found);
  });

  test('D-37: a diagnostic that is coloured as if it were a goal', () => {
    const found = findings((_, all) => {
      const steps = panel(named(all, 'retries'), 21).fieldConfig?.defaults.thresholds?.steps;
      steps?.push({ value: 2, color: 'red' });
    });
    expect(found).toEqual([
      'time-budget-retries / panel 21 "Attempts per original operation, by dependency": a diagnostic is no goal: no thresholds (panel-diagnostic-thresholds)',
    ]);
  });
});

function setDefault(panel: Panel, key: 'unit' | 'noValue', value: string): void {
  if (panel.fieldConfig !== undefined) panel.fieldConfig.defaults[key] = value;
}

describe('a dashboard', () => {
  const variable = (dashboard: Dashboard, name: string) => {
    const found = dashboard.templating.list?.find((one) => one.name === name);
    if (found === undefined) throw new Error(`no variable ${name}`);
    return found;
  };

  test.each<[what: string, change: (overview: Dashboard, all: Dashboard[]) => void, found: string]>([
    ['that can be edited', (one) => (one.editable = true), '(uneditable-dashboard)'],
    [
      'of a schema of its own',
      (one) => (one.schemaVersion = 42),
      'schemaVersion is not 39 (dashboard-schema)',
    ],
    ['with an unreadable uid', (one) => (one.uid = 'ab'), '(dashboard-uid)'],
    [
      'with the uid of another',
      (one) => (one.uid = 'time-budget-path'),
      'another one has the uid "time-budget-path" (dashboard-unique)',
    ],
    ['without the tag', (one) => (one.tags = []), 'no tag time-budget (dashboard-tag)'],
    [
      'N1: that only the import dialog can fill',
      (one) => (one.description = `$\{DS_PROMETHEUS}`),
      '(dashboard-inputs)',
    ],
    [
      'N2: that uses what is not declared',
      (one) => (one.description = '$cluster'),
      'variable cluster is not declared (template-declared)',
    ],
    [
      'N2: that declares what it does not use',
      (one) => (variable(one, 'split').name = 'by'),
      'variable by is used nowhere (template-used)',
    ],
    [
      'without a data source of its type',
      (one) => (variable(one, 'tempo_datasource').label = 'Tempo'),
      '(template-datasource-rule)',
    ],
    ['with one service only', (one) => (variable(one, 'job').multi = false), '(template-job-rule)'],
    [
      'that loses series without a label',
      (one) => (variable(one, 'caller').allValue = '.+'),
      'variable caller: all must be .* , or'.replace(' ,', ','),
    ],
    [
      'that looks up once',
      (one) => (variable(one, 'operation').refresh = 1),
      '(template-on-time-change-reload-rule)',
    ],
    [
      'that looks up nonsense',
      (one) => (variable(one, 'operation').definition = 'label_values(a{, b)'),
      '(template-label-promql-rule)',
    ],
    [
      'whose link leads nowhere',
      (_, all) => (named(all, 'retries').uid = 'time-budget-repeats'),
      'no dashboard has the uid "time-budget-retries" (link-target)',
    ],
    [
      'whose link sets what is not there',
      (_, all) => (variable(named(all, 'path'), 'operation').name = 'route'),
      'time-budget-path has no variable "operation" (link-target)',
    ],
  ])('%s', (_, change, found) => {
    expect(findings(change).join('\n')).toContain(found);
  });

  /** What no type of the builders allows, and files may have. */
  const put = (path: string, value: unknown) => (dashboard: Dashboard) => {
    const keys = path.split('.');
    // Every part on the way there is an object or a list.
    let part = dashboard as unknown as Record<string, unknown>;
    for (const key of keys.slice(0, -1)) part = (part[key] ??= {}) as typeof part;
    part[keys.at(-1) ?? ''] = value;
  };

  const hidden = { id: 'custom.hideFrom', value: { viz: true, legend: false } };
  test.each<[path: string, value: unknown, found: string]>([
    ['rows', [], 'rows are panels (dashboard-rows)'],
    ['refresh', 30, 'must be a text (dashboard-refresh)'],
    ['refresh', false, 'must be a text (dashboard-refresh)'],
    ['timepicker.time_options', ['1h'], 'nothing has read it since Grafana 5 (dashboard-time-options)'],
    ['links.0.placement', 'inControlsMenu', 'only new Grafanas know it (dashboard-placement)'],
    ['annotations.list.0.placement', 'inControlsMenu', 'only new Grafanas know it (dashboard-placement)'],
    ['panels.1.targets.0.intervalFactor', 2, 'is replaced by interval (target-deprecated)'],
    ['panels.1.targets.0.serviceName', 'a', 'is replaced by query (target-deprecated)'],
    [
      'panels.1.fieldConfig.defaults.custom.displayMode',
      'gauge',
      'is replaced by cellOptions (panel-deprecated)',
    ],
    [
      'panels.12.fieldConfig.overrides.0.properties.0.id',
      'custom.displayMode',
      'is replaced by custom.cellOptions (panel-deprecated)',
    ],
    ['panels.12.transformations.0.id', 'formatTime', 'is replaced by convertFieldType (panel-deprecated)'],
    [
      'panels.1.fieldConfig.defaults.custom.hideFrom',
      { viz: true, legend: false },
      'says nothing of tooltips (panel-hide-from)',
    ],
    ['panels.12.fieldConfig.overrides.0.properties.0', hidden, 'says nothing of tooltips (panel-hide-from)'],
    [
      'panels.1.targets.0.datasource',
      'a',
      'is the name of a data source, not a variable (datasource-variable)',
    ],
    ['panels.1.targets.0.datasource.uid', 'P1', 'is no data source variable (datasource-variable)'],
    ['annotations.list.1.datasource.uid', '$ds', 'is no data source variable (datasource-variable)'],
  ])('that Grafana 11, 12 and 13 do not read alike: %s %j', (path, value, found) => {
    const own = findings(put(path, value)).filter((one) => !one.includes('template-declared'));
    expect(own).toEqual([`time-budget-overview / ${path}: ${found}`]);
  });

  test('whose link searches traces for an attribute that no span has', () => {
    const all = JSON.parse(
      JSON.stringify(committed()).replaceAll('time_budget.expiry.cause%20', 'time_budget.cause%20'),
    );
    const found = lint(all, DEFAULT_OPTIONS).map(({ place, message }) => `${place}: ${message}`);
    expect(new Set(found)).toEqual(
      new Set(
        ['overview', 'path'].map((name) => `time-budget-${name} / link: no span has "time_budget.cause"`),
      ),
    );
  });
});

test('every alert leads to a dashboard that is there, and sets variables that it has', () => {
  const rules = readFileSync(
    new URL('../../dashboards/alerts/time-budget.rules.yml', import.meta.url),
    'utf8',
  );
  const links = [...rules.matchAll(/dashboard_url: .*\/d\/(?:time-budget-)([a-z]+)\?(.*)/g)];
  expect(links.length).toBeGreaterThan(15);
  const all = committed();
  for (const [, name = '', query = ''] of links) {
    const known = named(all, name).templating.list?.map((variable) => variable.name) ?? [];
    for (const [, variable] of query.matchAll(/var-(\w+)=/g)) expect(known, name).toContain(variable);
  }
});
