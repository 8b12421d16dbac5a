/** The generated rules as text: names, labels, annotations, dashboards and runbooks that exist; and Prometheus takes them. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parsePromql } from '../../dashboards/lint/promql.ts';
import { labelsOf, seriesNames } from '../../dashboards/series-names.ts';
import { ALERT_NAMES } from '../../rules/alert-names.ts';
import { CLOSED_LABELS, type ClosedLabel, labelKey } from '../../src/telemetry/names.ts';
import { hasPromtool, makeRules, RULES } from '../support/promtool.ts';
import { findProgram } from '../support/real-program.ts';

interface Rule {
  readonly record?: string;
  readonly alert?: string;
  readonly expr: string;
  readonly for?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

function readRules(text: string): Rule[] {
  return parse(text).groups[0].rules;
}

const committed = readRules(readFileSync(RULES, 'utf8'));
const alerts = committed.filter(({ alert }) => alert !== undefined);
const RUNBOOKS = readFileSync(new URL('../../docs/runbooks.md', import.meta.url), 'utf8');

/** Beside those of the product: what Prometheus and the SDK add. */
const ALWAYS = ['job', 'instance', 'le', '__name__', 'otel_metric_overflow'];
const SERIES = seriesNames();

/** What a series or a record made before may be asked for. */
function labelsAllowed(
  name: string,
  recorded: ReadonlyMap<string, readonly string[]>,
): readonly string[] | undefined {
  // A selector of all of ours, by their names.
  if (name === '') return ALWAYS;
  const metric = SERIES.get(name);
  const own = metric === undefined ? recorded.get(name) : labelsOf(metric);
  return own && [...own, ...ALWAYS];
}

/** Every rule with the records that stand before it. */
function* withRecords(rules: readonly Rule[]) {
  const recorded = new Map<string, readonly string[]>();
  for (const rule of rules) {
    yield { rule, name: rule.alert ?? rule.record ?? '', recorded };
    if (rule.record !== undefined) recorded.set(rule.record, rule.record.split(':').slice(0, 1));
  }
}

describe('expressions', () => {
  test('every metric, record, label and grouping is one that exists, and no record is read before it is made', () => {
    const faults: string[] = [];
    for (const { rule, name, recorded } of withRecords(committed)) {
      const { error, selectors, groupings } = parsePromql(rule.expr);
      if (error !== undefined) faults.push(`${name}: ${error}`);
      for (const { metric, matchers } of selectors) {
        const allowed = labelsAllowed(metric, recorded);
        if (allowed === undefined) faults.push(`${name}: nothing makes ${metric}`);
        for (const { label } of matchers) {
          if (allowed?.includes(label) !== true) faults.push(`${name}: ${metric} has no ${label}`);
        }
      }
      for (const { text, labels, sides } of groupings) {
        for (const { metric } of sides.flat()) {
          const allowed = labelsAllowed(metric, recorded);
          const missing = labels.filter((label) => label !== 'label' && allowed?.includes(label) !== true);
          // `ignoring (result)` names what one side has and the other not.
          if (missing.length > 0 && !text.includes('ignoring'))
            faults.push(`${name}: ${metric} lacks ${missing} of ${text}`);
        }
      }
    }
    expect(faults).toEqual([]);
  });

  test('every value that is matched is in the closed list of its label', () => {
    // The keys are those of CLOSED_LABELS, which Object.keys widens to string.
    const lists = Object.keys(CLOSED_LABELS) as ClosedLabel[];
    const faults: string[] = [];
    let looked = 0;
    for (const { expr } of committed) {
      for (const { metric, matchers } of parsePromql(expr).selectors) {
        const own = SERIES.get(metric)?.labels ?? [];
        for (const { label, value } of matchers) {
          const list = lists.find((key) => own.some((name) => name === key) && labelKey(key) === label);
          if (list === undefined) continue;
          // `none` is the binding term of a call without any.
          const known: readonly string[] = [...CLOSED_LABELS[list], 'none'];
          looked += 1;
          faults.push(
            ...value
              .split('|')
              .filter((word) => !known.includes(word))
              .map((word) => `${metric} ${label}=${word}`),
          );
        }
      }
    }
    expect(faults).toEqual([]);
    expect(looked).toBeGreaterThan(8);
  });

  test('a rename of a metric is one in names.ts: the test above can fail', () => {
    expect(labelsAllowed('time_budget_outcome_total', new Map())).toBe(undefined);
    expect(parsePromql('sum by (job (x)').error).not.toBe(undefined);
  });

  test('rates are of counters and over a window of the options; no alert has a text of `le` or takes a sample', () => {
    for (const { expr } of committed) {
      for (const { metric, calledBy, matchers } of parsePromql(expr).selectors) {
        if (calledBy === 'rate' || calledBy === 'increase')
          expect(metric).toMatch(/_total$|_bucket$|_count$/);
        expect(matchers.map(({ label }) => label)).not.toContain('le');
      }
      expect(expr).not.toMatch(/\b(topk|bottomk|absent)\b/);
    }
  });

  test('A-19: no alert is on a count of errors or of expired requests alone', () => {
    for (const { alert, expr } of alerts) {
      const outcomes = parsePromql(expr).selectors.filter(({ metric }) =>
        metric.startsWith('time_budget_outcomes'),
      );
      expect(outcomes, alert).toEqual([]);
    }
  });
});

describe('alerts', () => {
  test('are those of the list, in its order', () => {
    expect([...new Set(alerts.map(({ alert }) => alert))]).toEqual([...ALERT_NAMES]);
  });

  test.each(alerts.map((rule) => [rule.alert ?? '', rule] as const))(
    '%s says what, where and what to do',
    (name, rule) => {
      const { severity = '', component, ...rest } = rule.labels ?? {};
      expect(['critical', 'warning', 'info']).toContain(severity);
      expect(component).toBe('time-budget');
      expect(Object.keys(rest)).toEqual(name === 'TimeBudgetBurn' ? ['window'] : []);
      const { summary = '', description = '', runbook_url = '', dashboard_url = '' } = rule.annotations ?? {};
      expect(summary).toMatch(/^\{\{ \$labels\.job \}\}: [^\n]+[^.\n]$/);
      expect(description).toMatch(/[.}]$/);
      expect(runbook_url).toBe(`https://runbooks.example.com/time-budget#${name.toLowerCase()}`);
      expect(dashboard_url).toContain('?var-job={{ $labels.job | urlquery }}');
      // A value is put into words, never as it is.
      expect(description).not.toMatch(/\{\{ \$value \}\}/);
      const used = [...`${summary}${description}${dashboard_url}`.matchAll(/\$labels\.(\w+)/g)].map(
        ([, label]) => label,
      );
      const kept = parsePromql(rule.expr).groupings.flatMap(({ labels }) => labels);
      const records = [...rule.expr.matchAll(/\b(operation|dependency|caller):/g)].map(([, level]) => level);
      for (const label of used) expect(['job', ...kept, ...records]).toContain(label);
    },
  );

  test('each fires live in a test, on metrics of a running service', () => {
    const live = ['alerts', 'alerts-of-the-process'].map((name) =>
      readFileSync(new URL(`../e2e/${name}.test.ts`, import.meta.url), 'utf8'),
    );
    expect(ALERT_NAMES.filter((name) => !live.some((text) => text.includes(name)))).toEqual([]);
  });

  test('each leads to a dashboard that exists, and fills only variables that it has', () => {
    for (const { alert, annotations } of alerts) {
      const url = new URL((annotations?.dashboard_url ?? '').replaceAll(/\{\{.*?\}\}/g, 'x'));
      const uid = url.pathname.split('/').at(-1);
      const file = new URL(`../../dashboards/json/${uid}.json`, import.meta.url);
      const dashboard = JSON.parse(readFileSync(file, 'utf8'));
      expect(dashboard.uid).toBe(uid);
      const variables = dashboard.templating.list.map(({ name }: { name: string }) => `var-${name}`);
      for (const variable of url.searchParams.keys()) expect(variables, alert).toContain(variable);
    }
  });

  test('A-21: each has a section in the runbooks, in the same order, and no section is of none', () => {
    const sections = [...RUNBOOKS.matchAll(/^## (.+)$/gm)].map(([, title]) => title);
    expect(sections).toEqual([...ALERT_NAMES]);
  });

  test.each(ALERT_NAMES)('the section of %s has all parts, and its links lead somewhere', (name) => {
    const section = RUNBOOKS.split(/^## /m).find((text) => text.startsWith(`${name}\n`)) ?? '';
    for (const part of ['Means', 'First look', 'Decide', 'Not', 'Ends'])
      expect(section).toContain(`\n**${part}`);
    // A table has it in a column.
    expect(section).toMatch(/\*\*Act\*\*|act\*\*|\| act \|/);
    for (const [, anchor] of section.matchAll(/\]\(#(\w+)\)/g)) {
      expect(ALERT_NAMES.map((alert) => alert.toLowerCase())).toContain(anchor);
    }
  });

  test('queries of the runbooks read what exists', () => {
    const recorded = new Map(
      committed.flatMap(({ record }) =>
        record === undefined ? [] : ([[record, [record.split(':')[0] ?? '']]] as const),
      ),
    );
    const queries = [...RUNBOOKS.matchAll(/^ {4}(\S.*)$/gm)].map(([, query = '']) => query);
    expect(queries.length).toBeGreaterThan(12);
    for (const query of queries) {
      const { error, selectors } = parsePromql(query);
      expect(error, query).toBe(undefined);
      for (const { metric, matchers } of selectors) {
        const allowed = labelsAllowed(metric, recorded);
        for (const { label } of matchers) expect(allowed, query).toContain(label);
        expect(allowed, query).not.toBe(undefined);
      }
    }
  });
});

describe.skipIf(!hasPromtool)('promtool', () => {
  const promtool = findProgram('promtool') ?? 'promtool';
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-check-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  // 2.42 knows duplicate-rules; newer ones know more.
  function check(text: string) {
    const file = join(folder, 'rules.yml');
    writeFileSync(file, text);
    return spawnSync(promtool, ['check', 'rules', '--lint=all', '--lint-fatal', file], { encoding: 'utf8' });
  }

  test.each([
    ['the committed file', readFileSync(RULES, 'utf8')],
    ['sixty times as fast', makeRules({ scale: ['0.0166666'] })],
    [
      'with labels and matchers of one’s own',
      makeRules({
        'keep-label': ['cluster', 'namespace'],
        'job-label': ['service'],
        match: ['env="prod"', 'region=~"eu.*"'],
      }),
    ],
  ])('finds nothing to say about %s', (_, text) => {
    const { status, stdout, stderr } = check(text);
    expect({ status, stderr }, stdout).toEqual({ status: 0, stderr: '' });
  });
});

describe('options', () => {
  test('matchers stand in every selector of a metric, and labels of the installation in every grouping', () => {
    const rules = readRules(
      makeRules({ 'keep-label': ['cluster'], 'job-label': ['service'], match: ['env="prod"'] }),
    );
    for (const { expr } of rules) {
      const { selectors, groupings } = parsePromql(expr);
      for (const { metric, matchers } of selectors) {
        if (!metric.includes(':'))
          expect(
            matchers.map(({ label }) => label),
            expr,
          ).toContain('env');
      }
      for (const { text, labels } of groupings) {
        if (!text.includes('ignoring')) expect(labels.slice(0, 2), expr).toEqual(['cluster', 'service']);
      }
    }
    // The dashboards call their variable so, whatever its label.
    expect(JSON.stringify(rules).replaceAll('var-job=', '')).not.toMatch(/\bjob\b/);
  });

  test('links and look-ups of an alert stay in its installation', () => {
    const rules = readRules(makeRules({ 'keep-label': ['cluster'], 'job-label': ['service'] }));
    const variables =
      '?var-job={{ $labels.service | urlquery }}&var-cluster={{ $labels.cluster | urlquery }}';
    for (const { annotations } of rules) {
      if (annotations !== undefined) expect(annotations.dashboard_url).toContain(variables);
    }
    const exhausted = rules.find(({ alert }) => alert === 'RetryBudgetExhausted')?.annotations?.description;
    expect(exhausted).toContain(
      '(printf "retry_budget_info{cluster=%q,service=%q,dependency=%q}" $labels.cluster $labels.service $labels.dependency)',
    );
    expect(exhausted).toContain(
      '(printf "time_budget_policy_info{cluster=%q,service=%q}" $labels.cluster $labels.service)',
    );
  });

  test('a share is told without the faults of its arithmetic', () => {
    expect(makeRules({ 'amplification-useful': ['0.57'] })).toContain('fewer than 57% as many');
  });

  test('thresholds, severities, addresses and what is left out are as they were given', () => {
    const rules = readRules(
      makeRules({
        'exhausted-share': ['0.25'],
        severity: ['RetryBudgetExhausted=critical'],
        'runbook-url': ['https://wiki.example.com/x/'],
        'dashboard-url': ['https://grafana.example.org/'],
        without: ['CallsWithoutDeadline', 'TimeBudgetBurn'],
      }),
    );
    const exhausted = rules.find(({ alert }) => alert === 'RetryBudgetExhausted');
    expect(exhausted?.expr).toContain('> 0.25\n');
    expect(exhausted?.labels?.severity).toBe('critical');
    expect(exhausted?.annotations?.runbook_url).toBe('https://wiki.example.com/x/retrybudgetexhausted');
    expect(exhausted?.annotations?.dashboard_url).toMatch(
      /^https:\/\/grafana\.example\.org\/d\/time-budget-retries\?/,
    );
    const left = new Set(rules.map(({ alert }) => alert));
    expect(left.has('CallsWithoutDeadline') || left.has('TimeBudgetBurn')).toBe(false);
    expect(left.size).toBe(ALERT_NAMES.length - 2 + 1);
  });

  test('scale multiplies every duration and leaves the names of records', () => {
    const rules = readRules(makeRules({ scale: ['0.1'] }));
    expect(rules.map(({ record }) => record)).toEqual(committed.map(({ record }) => record));
    expect(rules.find(({ alert }) => alert === 'RetryBudgetExhausted')?.for).toBe('30s');
    expect(rules[0]?.expr).toContain('[30s]');
  });
});
