/** Rules about single queries: they parse, and they read only what the product exports. */
import type { Dashboard, Panel } from '@grafana/grafana-foundation-sdk/dashboard';
import { ATTR, attrLedger, attrPhase, type MetricDefinition } from '../../src/telemetry/names.ts';
import type { GeneratorOptions } from '../options.ts';
import { recordedSeries } from '../recorded.ts';
import { labelsOf, seriesNames } from '../series-names.ts';
import { NO_SPLIT } from '../variables.ts';
import { type Finding, placeOf, type Query, variableValues } from './place.ts';
import { type Parsed, parsePromql, type Selector } from './promql.ts';
import { parseTraceql } from './traceql.ts';

const PRODUCT = seriesNames();
const RECORDED = recordedSeries();
/** The series that Prometheus makes of alerts, with the labels that ours have. */
const ALERTS = ['alertname', 'alertstate', 'severity', 'component', 'operation', 'dependency', 'caller'];
const COUNTING = new Set(['rate', 'irate', 'increase']);
const ATTRIBUTES: ReadonlySet<string> = new Set(Object.values(ATTR));
const PREFIXES = [attrPhase(''), attrLedger('')].map((name) => name.replace(/_ms$/, ''));

type Report = (rule: string, message: string) => void;

export function checkPromql(
  dashboard: Dashboard,
  panel: Panel,
  query: Query,
  options: GeneratorOptions,
): Finding[] {
  const place = placeOf(dashboard, panel, query);
  const found = new Map<string, Finding>();
  const report: Report = (rule, message) => found.set(rule + message, { rule, place, message });
  for (const variables of everyChoice(variableValues(dashboard))) {
    const parsed = parsePromql(query.expr ?? '', variables);
    if (parsed.error === undefined) checkParsed(parsed, options, report);
    else report('target-promql-rule', `no PromQL at ${parsed.error}`);
  }
  return [...found.values()];
}

function checkParsed(parsed: Parsed, options: GeneratorOptions, report: Report): void {
  for (const selector of parsed.selectors) {
    const labels = labelsAllowed(selector.metric, options);
    if (labels === undefined) {
      report('target-metric-known', `nothing exports a metric "${selector.metric}"`);
      continue;
    }
    for (const { label, operator } of selector.matchers) {
      if (!labels.has(label)) report('target-label-known', `${selector.metric} has no label "${label}"`);
      if (label === 'le' && (operator === '=' || operator === '!='))
        report('target-le-equality', 'the text of `le` differs from one path to the next: never match it');
    }
    checkMatchers(selector, options, report);
    checkRange(selector, report);
  }
  for (const { text, labels, sides } of parsed.groupings) {
    for (const label of labels) {
      if (label === NO_SPLIT) continue;
      const missing = sides.flat().find(({ metric }) => labelsAllowed(metric, options)?.has(label) === false);
      if (missing !== undefined)
        report('target-label-known', `${missing.metric} has no label "${label}", which ${text} needs`);
    }
  }
  if (parsed.hasOrVector && parsed.groupings.some(({ labels }) => labels.length > 0))
    report(
      'target-or-vector',
      '`or vector(…)` behind a grouping adds a series instead of standing in for one',
    );
  for (const divisor of parsed.divisors) {
    if (!/^\d/.test(divisor) && !/^\(.* > 0\)$/s.test(divisor) && !/^(clamp_min|count) ?/.test(divisor))
      report('target-division', `division by what may be 0: ${divisor.slice(0, 60)}`);
  }
}

function checkMatchers({ metric, matchers }: Selector, options: GeneratorOptions, report: Report): void {
  const has = (label: string, value: string) =>
    matchers.some((matcher) => matcher.label === label && matcher.value === value);
  if (!has(options.jobLabel, '$job'))
    report('target-job-rule', `${metric} without ${options.jobLabel}=~"$job"`);
  if (PRODUCT.has(metric) && !has('instance', '$instance'))
    report('target-instance-rule', `${metric} without instance=~"$instance"`);
}

function checkRange({ metric, calledBy, range }: Selector, report: Report): void {
  const definition = PRODUCT.get(metric);
  const isCounter = definition !== undefined && definition.type !== 'gauge';
  const isCounted = calledBy !== undefined && COUNTING.has(calledBy);
  if (isCounter && !isCounted) report('target-counter-agg-rule', `${metric} outside rate or increase`);
  if (definition?.type === 'gauge' && isCounted)
    report('target-gauge-rate', `${calledBy} of the gauge ${metric}`);
  if (isCounted && range !== '$__rate_interval' && range !== '$__range')
    report('target-rate-interval-rule', `${calledBy}(${metric}) over ${range ?? 'nothing'}`);
}

function labelsAllowed(metric: string, options: GeneratorOptions): ReadonlySet<string> | undefined {
  const fixed = [
    options.jobLabel,
    ...options.labels,
    ...options.matchers.map((one) => one.split(/[=!]/)[0] ?? ''),
  ];
  if (metric === 'ALERTS') return new Set([...fixed, ...ALERTS]);
  const recorded = RECORDED.get(metric);
  if (recorded !== undefined) return new Set([...fixed, ...recorded]);
  const definition: MetricDefinition | undefined = PRODUCT.get(metric);
  if (definition === undefined) return undefined;
  const bound = metric.endsWith('_bucket') ? ['le'] : [];
  return new Set([...fixed, 'instance', ...labelsOf(definition), ...bound]);
}

export function checkTraceql(dashboard: Dashboard, panel: Panel, query: Query): Finding[] {
  return traceqlFindings(query.query ?? '', placeOf(dashboard, panel, query));
}

/** An id alone is a query too. */
export function traceqlFindings(text: string, place: string): Finding[] {
  if (/^\$\w+$/.test(text)) return [];
  const { error, spanAttributes } = parseTraceql(text);
  if (error !== undefined) return [{ rule: 'target-traceql-rule', place, message: `no TraceQL at ${error}` }];
  return spanAttributes
    .filter((name) => !ATTRIBUTES.has(name) && !PREFIXES.some((prefix) => name.startsWith(prefix)))
    .map((name) => ({ rule: 'target-attribute-known', place, message: `no span has "${name}"` }));
}

/** Every combination of the choices is one to many; each choice once is enough, as they are independent. */
function everyChoice(
  values: Readonly<Record<string, readonly string[]>>,
): Readonly<Record<string, string>>[] {
  const most = Math.max(1, ...Object.values(values).map((list) => list.length));
  return Array.from({ length: most }, (_, index) =>
    Object.fromEntries(Object.entries(values).map(([name, list]) => [name, list[index % list.length] ?? ''])),
  );
}
