/** One colour for each word of the closed lists, the same on every panel. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { expect, test } from 'vitest';
import { COLOURS } from '../../dashboards/colours.ts';
import { panelsOf, placeOf, queriesOf } from '../../dashboards/lint/place.ts';
import { parsePromql } from '../../dashboards/lint/promql.ts';
import { seriesNames } from '../../dashboards/series-names.ts';
import { CLOSED_LABELS, labelKey, type MetricDefinition } from '../../src/telemetry/names.ts';

const FOLDER = new URL('../../dashboards/json/', import.meta.url);
const DASHBOARDS: readonly Dashboard[] = readdirSync(FOLDER).map((file) =>
  JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')),
);
const LISTS = new Map<string, readonly string[]>(Object.entries(CLOSED_LABELS));
/** Lists whose words are drawn as lines without a meaning that a colour could carry. */
const WITHOUT_MEANING = ['header_format', 'header_fault', 'attempt', 'folded_label', 'replay_stop'];

/** Closed lists whose words are the names of a panel's series. */
function listsOf(legend: string, expr: string): string[] {
  const keys = [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, key]) => key);
  const metrics: readonly (MetricDefinition | undefined)[] = parsePromql(expr).selectors.map(({ metric }) =>
    seriesNames().get(metric),
  );
  return metrics
    .flatMap((metric) => [...(metric?.labels ?? [])])
    .filter(
      (label) => LISTS.has(label) && keys.includes(labelKey(label)) && !WITHOUT_MEANING.includes(label),
    );
}

test('every word that is drawn has a colour, and its panel uses it', () => {
  const wrong = new Set<string>();
  for (const dashboard of DASHBOARDS) {
    for (const panel of panelsOf(dashboard)) {
      const overrides = panel.fieldConfig?.overrides ?? [];
      for (const query of queriesOf(panel)) {
        for (const list of listsOf(query.legendFormat ?? '', query.expr ?? '')) {
          for (const word of LISTS.get(list) ?? []) {
            const own = overrides.find(({ matcher }) => matcher.options === `/^(.* )?${word}$/`);
            const isRight =
              own?.properties[0]?.value?.fixedColor === COLOURS[word] && COLOURS[word] !== undefined;
            if (!isRight && !isLeftOut(panel.title ?? '', word))
              wrong.add(`${placeOf(dashboard, panel)}: ${word}`);
          }
        }
      }
    }
  }
  expect([...wrong]).toEqual([]);
});

/**
 * The gap between throughput and goodput has no request that was never let in, and where the lines are those of many
 * services the colour tells the service.
 */
function isLeftOut(title: string, word: string): boolean {
  if (title === 'Time left at each point, p10') return true;
  return title.startsWith('Throughput against goodput') && ['shed', 'refused'].includes(word);
}

test('no two words of one list look alike', () => {
  const alike = [...LISTS].flatMap(([list, words]) => {
    const coloured = words.filter((word) => COLOURS[word] !== undefined);
    const twice = coloured.filter((word) =>
      coloured.some((other) => other !== word && COLOURS[other] === COLOURS[word]),
    );
    return twice.length === 0 || list === 'gate_refusal' ? [] : [`${list}: ${twice.join(', ')}`];
  });
  expect(alike).toEqual([]);
});

test('no colour is left of a word that is gone', () => {
  const own = ['ended', 'originals', 'offered', 'admitted', 'retried', 'completed', 'none'];
  const words = new Set([...Object.values(CLOSED_LABELS).flat(), ...own]);
  expect(Object.keys(COLOURS).filter((word) => !words.has(word))).toEqual([]);
});
