import type { Attributes } from '@opentelemetry/api';
import type { Families, Family, HistogramCell, NumberCell } from '../../src/telemetry/metrics.ts';
import { prometheusName } from '../../src/telemetry/names.ts';

/**
 * Writes the cells in the text format of Prometheus, as the exporter of OpenTelemetry would (a test compares the
 * two), in a tenth of its time: that one blocks the loop for 90 ms with 1,500 histograms. Unlike that one it puts the
 * unit into names that lack it, as every other way into Prometheus does.
 */
export function createTextWriter(families: Families): () => string {
  const writers = Object.values(families).map((family) =>
    family.definition.type === 'histogram'
      ? // Told apart by the line above, which the compiler cannot follow.
        histogramWriter(family as Family<HistogramCell>)
      : numberWriter(family as Family<NumberCell>),
  );
  return () => writers.map((write) => write()).join('');
}

function numberWriter(family: Family<NumberCell>): () => string {
  const name = prometheusName(family.definition);
  const head = headOf(family, name);
  const series = new LabelTexts();
  return () => {
    family.refresh?.();
    let text = '';
    for (const cell of family.cells) {
      if (cell.isAbsent) continue;
      const labels = series.of(cell);
      text += `${name}${labels === '' ? '' : `{${labels}}`} ${cell.value}\n`;
    }
    return text === '' ? '' : head + text;
  };
}

function histogramWriter(family: Family<HistogramCell>): () => string {
  const name = prometheusName(family.definition);
  const head = headOf(family, name);
  const series = new LabelTexts();
  return () => {
    let text = '';
    for (const cell of family.cells) {
      if (cell.count === 0) continue;
      const labels = series.of(cell);
      const comma = labels === '' ? '' : `${labels},`;
      const braces = labels === '' ? '' : `{${labels}}`;
      text += `${name}_count${braces} ${cell.count}\n${name}_sum${braces} ${cell.sum}\n`;
      let below = 0;
      for (const [index, count] of cell.counts.entries()) {
        below += count;
        text += `${name}_bucket{${comma}le="${cell.bounds[index] ?? '+Inf'}"} ${below}\n`;
      }
    }
    return text === '' ? '' : head + text;
  };
}

/** The labels of each series as text, made once. */
class LabelTexts {
  readonly #texts = new Map<object, string>();

  of(cell: { readonly attributes: Attributes }): string {
    let text = this.#texts.get(cell);
    if (text === undefined) {
      text = Object.entries(cell.attributes)
        .map(([key, value]) => `${sanitized(key)}="${escaped(String(value)).replaceAll('"', '\\"')}"`)
        .join(',');
      this.#texts.set(cell, text);
    }
    return text;
  }
}

function headOf({ definition }: Family<HistogramCell> | Family<NumberCell>, name: string): string {
  const { description, unit, type } = definition;
  return `# HELP ${name} ${escaped(description)}\n# UNIT ${name} ${unit}\n# TYPE ${name} ${type}\n`;
}

function sanitized(name: string): string {
  return name.replace(/[^a-z0-9_]/gi, '_').replace(/_{2,}/g, '_');
}

function escaped(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}
