/** Writes docs/signals.md from the name lists; with --check, fails when the committed page differs. */
import { readFileSync, writeFileSync } from 'node:fs';
import { DEFAULTS } from '../src/telemetry/config-settings.ts';
import { seriesBound } from '../src/telemetry/metrics.ts';
import {
  ATTR,
  attrLedger,
  attrPhase,
  CLOSED_LABELS,
  type ClosedLabel,
  EVENT,
  labelKey,
  METRICS,
  type MetricDefinition,
  OPEN_LABELS,
  prometheusName,
  RATIO_BUCKETS,
  SECONDS_BUCKETS,
} from '../src/telemetry/names.ts';
import { ATTRIBUTE_MEANINGS } from './signals-attributes.ts';

const PAGE = new URL('../docs/signals.md', import.meta.url);

const CAPS = {
  operation: DEFAULTS.labels.operations,
  dependency: DEFAULTS.labels.dependencies,
  caller: DEFAULTS.labels.callers,
};

function labelList(metric: MetricDefinition): string {
  return metric.labels.map((label) => `\`${labelKey(label).replaceAll('.', '_')}\``).join(', ') || '–';
}

function metricsTable(): string[] {
  const rows = Object.values(METRICS).map((metric: MetricDefinition) => {
    const bound = seriesBound(metric, CAPS).toLocaleString('en-US');
    return `| \`${prometheusName(metric)}\` | ${metric.type} | ${labelList(metric)} | ${bound} | ${metric.description} |`;
  });
  return [
    '| Prometheus name | type | labels | most series | what it says |',
    '|---|---|---|---:|---|',
    ...rows,
  ];
}

function attributesTable(): string[] {
  const rows = Object.entries(ATTR).map(([key, name]) => {
    const meaning = ATTRIBUTE_MEANINGS[key as keyof typeof ATTR];
    return `| \`${name}\` | ${meaning.on} | ${meaning.text} |`;
  });
  rows.push(
    `| \`${attrPhase('<phase>')}\` | call | Time in this phase; one attribute for each phase that happened. |`,
    `| \`${attrLedger('<term>')}\` | server | Ledger: \`queue\`, \`local\`, \`event_loop\`, \`response\`, \`<dependency>.<phase>\`, \`left\`. They add up to \`${ATTR.effective}\`. |`,
  );
  return ['| attribute | on | what it says |', '|---|---|---|', ...rows];
}

function listsTable(): string[] {
  // The keys are those of CLOSED_LABELS, which Object.keys widens to string.
  const labels = Object.keys(CLOSED_LABELS) as ClosedLabel[];
  return [
    '| list | label | values |',
    '|---|---|---|',
    ...labels.map(
      (label) =>
        `| ${label.replaceAll('_', ' ')} | \`${labelKey(label)}\` | ${CLOSED_LABELS[label].map((value) => `\`${value}\``).join(', ')} |`,
    ),
  ];
}

function page(): string {
  return `${[
    '# Signals',
    '',
    'Made by `npm run docs` from `src/telemetry/names.ts` and `src/core/terms.ts`; do not edit.',
    '',
    'Durations are seconds in metrics and milliseconds (`_ms`) in span attributes. Remaining time may be',
    'negative on spans; in histograms an overrun counts as 0 and has a histogram of its own.',
    '',
    '## Metrics',
    '',
    `"Most series" is the bound for one process with the default label caps (${OPEN_LABELS.map((label) => `${label} ${CAPS[label]}`).join(', ')});`,
    'a value beyond its cap folds into `other`, and the fold is counted. Histogram series that never got a value',
    'are not exported. Temporality is cumulative.',
    '',
    ...metricsTable(),
    '',
    `Bounds of seconds: ${SECONDS_BUCKETS.join(', ')}. Bounds of ratios: ${RATIO_BUCKETS.join(', ')}.`,
    '',
    '## Span attributes',
    '',
    'What did not happen is absent. None of them holds a header value, a path, an address, SQL text or an error',
    'text; `time_budget.caller` is a service name.',
    '',
    ...attributesTable(),
    '',
    `Events: ${Object.values(EVENT)
      .map((name) => `\`${name}\``)
      .join(', ')}.`,
    '',
    '## Closed lists',
    '',
    ...listsTable(),
    '',
  ].join('\n')}`;
}

const text = page();
if (process.argv.includes('--check')) {
  if (readFileSync(PAGE, 'utf8') !== text) {
    console.error('docs/signals.md differs from the name lists: run `npm run docs`');
    process.exitCode = 1;
  }
} else {
  writeFileSync(PAGE, text);
}
