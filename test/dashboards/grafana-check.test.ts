/** The dashboards against the schema that Grafana publishes, read by grafana-check; and what that finds in broken ones. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findProgram } from '../support/real-program.ts';

const FOLDER = fileURLToPath(new URL('../../dashboards/json/', import.meta.url));
const FILES = readdirSync(FOLDER).map((file) => join(FOLDER, file));
const PROGRAM = findProgram('grafana-check');

/** The program says `file: place: what` in a line each; told here without the file. */
function check(...files: readonly string[]): { readonly status: number | null; readonly found: string[] } {
  const { status, stdout, stderr } = spawnSync(PROGRAM ?? '', files, { encoding: 'utf8' });
  const lines = `${stdout}${stderr}`.split('\n').filter((line) => line !== '');
  return { status, found: lines.map((line) => line.replace(/^.*\.json: /, '')) };
}

test.skipIf(PROGRAM === undefined)(
  'the committed dashboards have no field that the schema does not know, and no value of another type',
  () => {
    expect(FILES).toHaveLength(6);
    expect(check(...FILES)).toEqual({ status: 0, found: [] });
  },
);

/** One of each kind of what ours are made of. `parts` take the place of what is right. */
function dashboard(parts: Readonly<Record<string, object>> = {}): object {
  const table = {
    type: 'table',
    options: { showHeader: true, cellHeight: 'sm', ...parts.options },
    fieldConfig: {
      defaults: { unit: 's', custom: { align: 'left', ...parts.custom }, ...parts.defaults },
      overrides: [
        {
          matcher: { id: 'byName', options: 'verdict' },
          properties: [{ id: 'custom.width', value: 80, ...parts.property }],
          ...parts.override,
        },
      ],
    },
    targets: [{ refId: 'A', expr: 'up', datasource: { type: 'prometheus', uid: '$ds' }, ...parts.target }],
    ...parts.panel,
  };
  return {
    schemaVersion: 39,
    refresh: '30s',
    panels: [{ type: 'row', id: 1, collapsed: true, panels: [table], ...parts.row }],
    templating: { list: [{ type: 'datasource', name: 'ds', query: 'prometheus', ...parts.variable }] },
    annotations: { list: [{ name: 'alerts', enable: true, iconColor: 'red', ...parts.annotation }] },
    links: [{ title: 'others', type: 'dashboards', ...parts.link }],
    ...parts.dashboard,
  };
}

describe.skipIf(PROGRAM === undefined)('broken', () => {
  let folder: string;
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'time-budget-grafana-check-'));
  });
  afterAll(() => rmSync(folder, { recursive: true }));

  function checkText(text: string): { readonly status: number | null; readonly found: string[] } {
    const file = join(folder, 'broken.json');
    writeFileSync(file, text);
    return check(file);
  }

  test('nothing but the part that each row breaks: what Grafana fills in, such as custom.inspect, may be missing', () => {
    expect(checkText(JSON.stringify(dashboard()))).toEqual({ status: 0, found: [] });
  });

  const TABLE = 'panels[0].panels[0]';
  const FIELDS = `${TABLE}.fieldConfig`;

  test.each<[part: string, broken: object, found: string]>([
    ['dashboard', { graphTooltips: 1 }, "Dashboard: unexpected field 'graphTooltips'"],
    ['dashboard', { rows: [] }, "Dashboard: unexpected field 'rows'"],
    ['dashboard', { __inputs: [] }, "Dashboard: unexpected field '__inputs'"],
    [
      'dashboard',
      { timepicker: { time_options: ['1h'] } },
      "timepicker.TimePickerConfig: unexpected field 'time_options'",
    ],
    ['row', { title: '', colapsed: true }, "panels[0].RowPanel: unexpected field 'colapsed'"],
    ['panel', { titel: '' }, `${TABLE}.Panel: unexpected field 'titel'`],
    ['panel', { yaxes: [] }, `${TABLE}.Panel: unexpected field 'yaxes'`],
    ['options', { cellHight: 'sm' }, `${TABLE}.options.Options: unexpected field 'cellHight'`],
    [
      'custom',
      { alignment: 'left' },
      `${FIELDS}.defaults.custom.TableFieldOptions: unexpected field 'alignment'`,
    ],
    ['defaults', { units: 's' }, `${FIELDS}.defaults.FieldConfig: unexpected field 'units'`],
    [
      'override',
      { matchers: [] },
      `${FIELDS}.overrides[0].DashboardFieldConfigSourceOverrides: unexpected field 'matchers'`,
    ],
    [
      'property',
      { id: 'colour' },
      `${FIELDS}.overrides[0].properties[0].FieldConfig: unexpected field 'colour'`,
    ],
    [
      'property',
      { id: 'custom.widht' },
      `${FIELDS}.overrides[0].properties[0].TableFieldOptions: unexpected field 'widht'`,
    ],
    ['target', { exp: 'up' }, `${TABLE}.targets[0].Dataquery: unexpected field 'exp'`],
    ['variable', { hidden: true }, "templating.list[0].VariableModel: unexpected field 'hidden'"],
    ['annotation', { colour: 'red' }, "annotations.list[0].AnnotationQuery: unexpected field 'colour'"],
    ['link', { href: '/' }, "links[0].DashboardLink: unexpected field 'href'"],
  ])('a field of the %s that the schema does not know: %j', (part, broken, found) => {
    expect(checkText(JSON.stringify(dashboard({ [part]: broken })))).toEqual({ status: 1, found: [found] });
  });

  test.each<[part: string, broken: object, place: string, type: string]>([
    ['dashboard', { refresh: 30 }, 'refresh', 'string'],
    ['dashboard', { refresh: false }, 'refresh', 'string'],
    ['panel', { id: 'a' }, `${TABLE}.id`, 'uint32'],
    ['panel', { gridPos: { x: 0, y: 0, h: 1, w: 3.5 } }, `${TABLE}.gridPos.w`, 'uint32'],
    ['panel', { datasource: 'Prometheus' }, `${TABLE}.datasource`, 'map[string]json.RawMessage'],
    ['options', { showHeader: 'yes' }, `${TABLE}.options.showHeader`, 'bool'],
    ['custom', { width: '80' }, `${FIELDS}.defaults.custom.width`, 'float64'],
    ['property', { value: '80' }, `${FIELDS}.overrides[0].properties[0].width`, 'float64'],
    ['target', { instant: 'yes' }, `${TABLE}.targets[0].instant`, 'bool'],
    ['variable', { multi: 'yes' }, 'templating.list[0].multi', 'bool'],
  ])('a value in the %s of another type: %j', (part, broken, place, type) => {
    const { status, found } = checkText(JSON.stringify(dashboard({ [part]: broken })));
    expect(status).toBe(1);
    expect(found.map((line) => line.replace(/ json: .* into Go value of type/, ''))).toEqual([
      `${place}: ${type}`,
    ]);
  });

  test('options of a panel that the schema has not, which nothing would look into', () => {
    expect(checkText(JSON.stringify(dashboard({ panel: { type: 'graph' } }))).found).toEqual([
      `${FIELDS}.defaults.custom: the type 'graph' has no schema for it`,
      `${FIELDS}.overrides[0].properties[0]: the type 'graph' has no schema for it`,
      `${TABLE}.options: the type 'graph' has no schema for it`,
    ]);
  });

  test('no JSON, and no file', () => {
    expect(checkText('{"panels": [')).toEqual({ status: 1, found: ['unexpected end of JSON input'] });
    const { status, found } = check(join(folder, 'none'));
    expect(status).toBe(1);
    expect(found).toEqual([expect.stringContaining('no such file')]);
  });
});
