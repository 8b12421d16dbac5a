/**
 * Schema 39 is Grafana 11's own. Later ones take further steps when they load a dashboard: what each does is written
 * down here after its description, not run from Grafana, and none may change ours. 42 was the last one in the list of
 * steps that was read; 43 stood beside it in another state of Grafana's source.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

const FOLDER = new URL('../../dashboards/json/', import.meta.url);

type Json = Readonly<Record<string, unknown>>;

interface Step {
  readonly schema: number;
  readonly what: string;
  readonly take: (dashboard: Json) => Json;
}

const STEPS: readonly Step[] = [
  {
    schema: 40,
    what: 'a refresh that is no text becomes an empty one',
    take: (dashboard) => ({
      ...dashboard,
      refresh: typeof dashboard.refresh === 'string' ? dashboard.refresh : '',
    }),
  },
  {
    schema: 41,
    what: 'timepicker.time_options is dropped',
    take: (dashboard) => {
      if (!isObject(dashboard.timepicker)) return dashboard;
      const { time_options: _, ...timepicker } = dashboard.timepicker;
      return { ...dashboard, timepicker };
    },
  },
  {
    schema: 42,
    what: 'an override that hides a series hides its tooltip',
    take: (dashboard) =>
      everywhere(dashboard, (part) => {
        if (part.id !== 'custom.hideFrom' || !isObject(part.value) || part.value.viz !== true) return part;
        return { ...part, value: { ...part.value, tooltip: true } };
      }),
  },
  {
    schema: 43,
    what: 'the transformation formatTime becomes convertFieldType',
    take: (dashboard) =>
      everywhere(dashboard, (part) => {
        if (part.id !== 'formatTime' || !isObject(part.options)) return part;
        const { timeField: targetField, outputFormat: dateFormat, timezone } = part.options;
        const conversion = { targetField, destinationType: 'string', dateFormat, timezone };
        return { id: 'convertFieldType', options: { conversions: [conversion] } };
      }),
  },
];

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Every object in it, from the outside in, as `change` makes it. */
function everywhere(whole: Json, change: (part: Json) => Json): Json {
  const within = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(within);
    return isObject(value) ? everywhere(value, change) : value;
  };
  return Object.fromEntries(Object.entries(change(whole)).map(([key, value]) => [key, within(value)]));
}

const read = (file: string): Json => JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8'));

describe.each(readdirSync(FOLDER))('%s', (file) => {
  test('is of schema 39', () => {
    expect(read(file).schemaVersion).toBe(39);
  });

  test.each(STEPS)('stays as it is in step $schema: $what', ({ take }) => {
    expect(take(read(file))).toStrictEqual(read(file));
  });
});

describe('a step does something where there is something to do', () => {
  const panels = (part: Json) => ({ panels: [{ type: 'row', panels: [part] }] });
  const properties = (value: Json) =>
    panels({ fieldConfig: { overrides: [{ properties: [{ id: 'custom.hideFrom', value }] }] } });
  const format = { timeField: 'at', outputFormat: 'HH:mm', timezone: 'utc' };
  const conversion = {
    targetField: 'at',
    destinationType: 'string',
    dateFormat: 'HH:mm',
    timezone: 'utc',
  };

  test.each<[schema: number, before: Json, after: Json]>([
    [40, { refresh: 30 }, { refresh: '' }],
    [40, {}, { refresh: '' }],
    [41, { timepicker: { time_options: ['1h'], hidden: true } }, { timepicker: { hidden: true } }],
    [42, properties({ viz: true }), properties({ viz: true, tooltip: true })],
    [42, properties({ viz: true, tooltip: false }), properties({ viz: true, tooltip: true })],
    [42, properties({ viz: false }), properties({ viz: false })],
    [
      43,
      panels({ transformations: [{ id: 'formatTime', options: format }] }),
      panels({ transformations: [{ id: 'convertFieldType', options: { conversions: [conversion] } }] }),
    ],
  ])('%i: %j', (schema, before, after) => {
    expect(STEPS.find((step) => step.schema === schema)?.take(before)).toStrictEqual(after);
  });
});
