/** Tables: one instant query for each column of numbers, put side by side by the labels that they share. */
import type { DynamicConfigValue } from '@grafana/grafana-foundation-sdk/dashboard';
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as TableBuilder } from '@grafana/grafana-foundation-sdk/table';
import { NEUTRAL_COLOUR } from './colours.ts';
import { type Draft, finish, type Override, type PanelSpec, prometheusTargets, refId } from './panel.ts';

export interface Column {
  readonly title: string;
  readonly expr: string;
  readonly unit: string;
  /** Drawn as a bar from 0 to 1. */
  readonly isShare?: boolean;
  /** Only its labels are of interest. */
  readonly isHidden?: boolean;
  readonly properties?: readonly DynamicConfigValue[];
}

export interface TableSpec extends Omit<PanelSpec, 'targets' | 'unit'> {
  /** Labels that make a row, with the titles of their columns. */
  readonly keys: Readonly<Record<string, string>>;
  readonly columns: readonly Column[];
  /** Title of the column whose worst value stands at the top. */
  readonly sortBy: string;
  readonly isAscending?: boolean;
}

/** What the table says without any row is no text for an empty cell. */
const EMPTY_CELL: DynamicConfigValue = { id: 'noValue', value: '–' };

export function table(spec: TableSpec): Draft {
  const targets = spec.columns.map(({ expr, title }) => ({ expr, legend: title }));
  const panel = new TableBuilder().targets(prometheusTargets(targets, 'table')).build();
  const isDescending = spec.isAscending !== true;
  panel.options = {
    ...panel.options,
    cellHeight: 'sm',
    sortBy: [{ displayName: spec.sortBy, desc: isDescending }],
  };
  const columns = spec.columns.flatMap((column, index) =>
    // Grafana gives the numbers of a single query a name without its letter.
    [`Value #${refId(index)}`, ...(spec.columns.length === 1 ? ['Value'] : [])].map((name) => ({
      ...column,
      name,
    })),
  );
  const hidden = columns.filter(({ isHidden }) => isHidden === true).map(({ name }) => name);
  const order = [...Object.keys(spec.keys), ...columns.map(({ name }) => name)];
  panel.transformations = [
    { id: 'merge', options: {} },
    {
      id: 'organize',
      options: {
        excludeByName: Object.fromEntries(['Time', '__name__', ...hidden].map((name) => [name, true])),
        renameByName: {
          ...spec.keys,
          ...Object.fromEntries(columns.map(({ name, title }) => [name, title])),
        },
        indexByName: Object.fromEntries(order.map((name, index) => [name, index])),
      },
    },
    { id: 'sortBy', options: { sort: [{ field: spec.sortBy, desc: isDescending }] } },
  ];
  const overrides = [
    ...Object.values(spec.keys).map(keyOverride),
    ...spec.columns.map(columnOverride),
    ...(spec.overrides ?? []),
  ];
  return finish(
    panel,
    { ...spec, targets, unit: 'none', overrides },
    { align: 'auto', filterable: true, minWidth: 60 },
  );
}

function keyOverride(title: string): Override {
  return { matcher: { id: 'byName', options: title }, properties: [EMPTY_CELL] };
}

function columnOverride({ title, unit, isShare, properties = [] }: Column): Override {
  const bar: DynamicConfigValue[] = [
    { id: 'custom.cellOptions', value: { type: 'gauge', mode: 'basic', valueDisplayMode: 'text' } },
    { id: 'color', value: { mode: FieldColorModeId.Fixed, fixedColor: NEUTRAL_COLOUR } },
    { id: 'min', value: 0 },
    { id: 'max', value: 1 },
  ];
  return {
    matcher: { id: 'byName', options: title },
    properties: [{ id: 'unit', value: unit }, EMPTY_CELL, ...(isShare === true ? bar : []), ...properties],
  };
}
