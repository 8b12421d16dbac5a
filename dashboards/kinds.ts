/** One function for each kind of panel that the dashboards use; all of them are in every Grafana. */
import { PanelBuilder as BarGaugeBuilder } from '@grafana/grafana-foundation-sdk/bargauge';
import {
  BarGaugeDisplayMode,
  BigValueColorMode,
  BigValueGraphMode,
  LegendDisplayMode,
  LegendPlacement,
  SortOrder,
  StackingMode,
  TooltipDisplayMode,
  VisibilityMode,
  VizOrientation,
} from '@grafana/grafana-foundation-sdk/common';
import { FieldColorModeId } from '@grafana/grafana-foundation-sdk/dashboard';
import { PanelBuilder as HeatmapBuilder, HeatmapColorMode } from '@grafana/grafana-foundation-sdk/heatmap';
import { PanelBuilder as StatBuilder } from '@grafana/grafana-foundation-sdk/stat';
import { PanelBuilder as TimelineBuilder } from '@grafana/grafana-foundation-sdk/statetimeline';
import { PanelBuilder as TextBuilder } from '@grafana/grafana-foundation-sdk/text';
import { PanelBuilder as LinesBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { NEUTRAL_COLOUR } from './colours.ts';
import { type Draft, finish, type PanelSpec, prometheusTargets } from './panel.ts';

interface LinesSpec extends PanelSpec {
  /** Values lie on each other, so that their sum is seen; `percent`: as shares of it. */
  readonly stack?: 'sum' | 'percent';
}

export function lines(spec: LinesSpec): Draft {
  const panel = new LinesBuilder().targets(prometheusTargets(spec.targets, 'lines')).build();
  const hasManyLines = spec.targets.length > 3 || spec.targets.some(({ legend }) => legend.includes('{{'));
  panel.options = {
    legend: {
      showLegend: true,
      // A table of more lines than it has room for hides the ones that matter.
      displayMode: hasManyLines ? LegendDisplayMode.List : LegendDisplayMode.Table,
      placement: LegendPlacement.Bottom,
      calcs: hasManyLines ? [] : ['lastNotNull', 'max'],
    },
    tooltip: { mode: TooltipDisplayMode.Multi, sort: SortOrder.Descending },
  };
  const mode = { sum: StackingMode.Normal, percent: StackingMode.Percent, none: StackingMode.None };
  const isStacked = spec.stack !== undefined;
  const custom = {
    fillOpacity: isStacked ? 40 : 5,
    lineWidth: isStacked ? 0 : 2,
    showPoints: VisibilityMode.Never,
    stacking: { mode: mode[spec.stack ?? 'none'], group: 'A' },
    axisSoftMin: 0,
  };
  return finish(panel, spec, custom);
}

export function stat(spec: PanelSpec & { readonly hasGraph?: boolean }): Draft {
  const panel = new StatBuilder().targets(prometheusTargets(spec.targets, 'lines')).build();
  panel.options = {
    ...panel.options,
    graphMode: spec.hasGraph === false ? BigValueGraphMode.None : BigValueGraphMode.Area,
    colorMode: BigValueColorMode.Value,
    reduceOptions: { calcs: ['lastNotNull'], values: false, fields: '' },
  };
  return finish(panel, spec, {}, colourOf(spec));
}

export function barGauge(spec: PanelSpec): Draft {
  const targets = spec.targets.map((target) => ({ ...target, isInstant: true }));
  const panel = new BarGaugeBuilder().targets(prometheusTargets(targets, 'lines')).build();
  panel.options = {
    ...panel.options,
    displayMode: BarGaugeDisplayMode.Basic,
    orientation: VizOrientation.Horizontal,
    // The longest of our words beside a bar of a third of the width.
    text: { titleSize: 12 },
    reduceOptions: { calcs: ['lastNotNull'], values: false, fields: '' },
  };
  return finish(panel, spec, {}, colourOf(spec));
}

/** Over the buckets of a histogram; one target whose legend is `{{le}}`. */
export function heatmap(spec: PanelSpec): Draft {
  const panel = new HeatmapBuilder().targets(prometheusTargets(spec.targets, 'heatmap')).build();
  panel.options = {
    ...panel.options,
    calculate: false,
    color: { mode: HeatmapColorMode.Scheme, scheme: 'Blues', exponent: 0.5, steps: 64, reverse: false },
    yAxis: { unit: spec.unit },
    tooltip: { mode: TooltipDisplayMode.Single, yHistogram: true },
  };
  return finish(panel, spec, { hideFrom: { viz: false, tooltip: false, legend: false } });
}

export function timeline(spec: PanelSpec): Draft {
  const panel = new TimelineBuilder().targets(prometheusTargets(spec.targets, 'lines')).build();
  panel.options = {
    ...panel.options,
    mergeValues: true,
    showValue: VisibilityMode.Never,
    rowHeight: 0.8,
    legend: { showLegend: true, displayMode: LegendDisplayMode.List, placement: LegendPlacement.Bottom },
  };
  return finish(panel, spec, { fillOpacity: 80, lineWidth: 0 });
}

interface TextSpec {
  readonly id: number;
  readonly title: string;
  readonly content: string;
  readonly width: number;
  readonly height: number;
}

export function text({ id, title, content, width, height }: TextSpec): Draft {
  const panel = new TextBuilder().id(id).title(title).content(content).build();
  return { panel, width, height };
}

function colourOf(spec: PanelSpec) {
  if (spec.thresholds !== undefined) return { mode: FieldColorModeId.Thresholds };
  return { mode: FieldColorModeId.Fixed, fixedColor: NEUTRAL_COLOUR };
}
