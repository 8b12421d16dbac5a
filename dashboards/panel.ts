/**
 * The thin layer over Grafana's builders: what a panel of ours must say, and what the builders leave out or get wrong
 * (ids, ref ids, reducers, legends, thresholds nobody asked for).
 */
import {
  type DynamicConfigValue,
  type FieldColor,
  FieldColorModeId,
  type Panel,
  type Threshold,
  ThresholdsMode,
  type ValueMapping,
} from '@grafana/grafana-foundation-sdk/dashboard';
import {
  DataqueryBuilder as PrometheusQuery,
  PromQueryFormat,
} from '@grafana/grafana-foundation-sdk/prometheus';
import { COLOURS, LIMIT_COLOUR, NEUTRAL_COLOUR } from './colours.ts';
import type { DataLink } from './links.ts';

export const PROMETHEUS = { type: 'prometheus', uid: '${prometheus_datasource}' } as const;
export const TEMPO = { type: 'tempo', uid: '${tempo_datasource}' } as const;
const REF_IDS = 'ABCDEFGHIJKLMNOP';

export interface Target {
  readonly expr: string;
  readonly legend: string;
  /** One value for the whole range instead of a line. */
  readonly isInstant?: boolean;
}

export interface PanelSpec {
  /** Never changed again and never used twice in a dashboard: links and annotations name it. */
  readonly id: number;
  /** Names the denominator of a share. */
  readonly title: string;
  readonly question: string;
  /** The formula in words, with what it is divided by. */
  readonly shown: string;
  readonly action: string;
  readonly unit: string;
  /** What stands there without data, and why that may be right. */
  readonly noValue: string;
  readonly width: number;
  readonly height: number;
  readonly targets: readonly Target[];
  /** Words of closed lists that are, or end, the names of the series. */
  readonly words?: readonly string[];
  /** Series that are limits and no measurements. */
  readonly limits?: readonly string[];
  readonly thresholds?: readonly Threshold[];
  readonly mappings?: readonly ValueMapping[];
  readonly min?: number;
  readonly max?: number;
  readonly decimals?: number;
  readonly links?: readonly DataLink[];
  readonly overrides?: readonly Override[];
}

export interface Override {
  readonly matcher: { readonly id: 'byName' | 'byRegexp' | 'byFrameRefID'; readonly options: string };
  readonly properties: readonly DynamicConfigValue[];
}

/** A panel without its place. */
export interface Draft {
  readonly panel: Panel;
  readonly width: number;
  readonly height: number;
}

export type QueryFormat = 'lines' | 'table' | 'heatmap';

export function prometheusTargets(targets: readonly Target[], format: QueryFormat): PrometheusQuery[] {
  return targets.map(({ expr, legend, isInstant }, index) => {
    const query = new PrometheusQuery()
      .refId(refId(index))
      .datasource(PROMETHEUS)
      .expr(expr)
      .legendFormat(legend)
      .format(FORMATS[format]);
    return isInstant === true || format === 'table' ? query.instant() : query.range();
  });
}

export function refId(index: number): string {
  return REF_IDS.charAt(index);
}

const FORMATS: Readonly<Record<QueryFormat, PromQueryFormat>> = {
  lines: PromQueryFormat.TimeSeries,
  table: PromQueryFormat.Table,
  heatmap: PromQueryFormat.Heatmap,
};

/** Puts into a built panel what holds for all of them. `custom` is what only its kind knows. */
export function finish(
  panel: Panel,
  spec: PanelSpec,
  custom: Readonly<Record<string, unknown>>,
  color: FieldColor = { mode: FieldColorModeId.PaletteClassicByName },
): Draft {
  Object.assign(panel, {
    id: spec.id,
    title: spec.title,
    description: describe(spec),
    datasource: PROMETHEUS,
    fieldConfig: {
      defaults: {
        custom,
        unit: spec.unit,
        noValue: spec.noValue,
        color,
        // Without steps of ours Grafana colours everything above 80 red.
        thresholds: {
          mode: ThresholdsMode.Absolute,
          steps: spec.thresholds ?? [{ value: null, color: NEUTRAL_COLOUR }],
        },
        mappings: spec.mappings ?? [],
        links: spec.links ?? [],
        ...(spec.min === undefined ? {} : { min: spec.min }),
        ...(spec.max === undefined ? {} : { max: spec.max }),
        ...(spec.decimals === undefined ? {} : { decimals: spec.decimals }),
      },
      overrides: [
        ...(spec.words ?? []).flatMap(wordColour),
        ...(spec.limits ?? []).map(limitLine),
        ...(spec.overrides ?? []),
      ],
    },
  });
  return { panel, width: spec.width, height: spec.height };
}

export function describe({
  question,
  shown,
  action,
}: Pick<PanelSpec, 'question' | 'shown' | 'action'>): string {
  return `**Question:** ${question}\n\n**Shown:** ${shown}\n\n**Do:** ${action}`;
}

/** A word that has no colour yet gets one of the palette's; a test names it. */
function wordColour(word: string): Override[] {
  const fixedColor = COLOURS[word];
  if (fixedColor === undefined) return [];
  return [
    {
      matcher: { id: 'byRegexp', options: `/^(.* )?${word}$/` },
      properties: [{ id: 'color', value: { mode: FieldColorModeId.Fixed, fixedColor } }],
    },
  ];
}

function limitLine(name: string): Override {
  return {
    matcher: { id: 'byRegexp', options: `/^${name}/` },
    properties: [
      { id: 'color', value: { mode: FieldColorModeId.Fixed, fixedColor: LIMIT_COLOUR } },
      { id: 'custom.lineStyle', value: { fill: 'dash', dash: [10, 10] } },
      { id: 'custom.fillOpacity', value: 0 },
      { id: 'custom.stacking', value: { mode: 'none', group: 'limits' } },
    ],
  };
}
