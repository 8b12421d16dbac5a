/** Rules of the budget that were broken, and whether what is shown can be believed. */
import { type Alert, at } from './rule.ts';
import type { Vocabulary } from './vocabulary.ts';

export function contractAlerts(words: Vocabulary): readonly Alert[] {
  const { series, by, window, jobLabel } = words;
  const recent = (name: 'violationWindow' | 'faultWindow') => `[${window(name)}]`;
  // There from the start on: a service that nobody has asked yet is not missing.
  const present = series('policyInfo');
  return [
    {
      name: 'BudgetContractViolation',
      expr: `sum ${by('kind')} (increase(${series('violations', 'kind!="degraded_non_degradable"')}${recent('violationWindow')})) > 0`,
      for: 'violationFor',
      severity: 'warning',
      labels: ['kind'],
      summary: `${at(jobLabel)}: budget contract broken: ${at('kind')}`,
      description: `About {{ $value | humanize }} findings within ${words.suffix('violationWindow')}.`,
      dashboard: 'waste',
    },
    {
      name: 'TimeBudgetTelemetryMissing',
      // Not absent(): that would lose the name of the service.
      expr: `count ${by()} (${present} offset ${window('missingOffset')}) unless count ${by()} (${present})`,
      for: 'missingFor',
      severity: 'warning',
      labels: [],
      summary: `${at(jobLabel)}: no time-budget metrics any more`,
      description:
        `{{ $value | humanize }} series were there ${words.suffix('missingOffset')} ago and none is now; the other ` +
        'alerts of this service are silent for that reason.',
      dashboard: 'overview',
    },
    {
      name: 'TimeBudgetLabelOverflow',
      expr: [
        `sum ${by('label')} (increase(${series('labelOverflow')}${recent('faultWindow')})) > 0`,
        `or count ${by()} (${words.all('otel_metric_overflow="true"')}) > 0`,
      ].join('\n'),
      for: 'faultFor',
      severity: 'info',
      labels: ['label'],
      summary: `${at(jobLabel)}: more values of a label ${at('label')} than its cap`,
      description:
        'The excess is shown as "other" ({{ $value | humanize }} times), so splits by this label are wrong.',
      dashboard: 'waste',
    },
    {
      name: 'TimeBudgetInternalErrors',
      expr: `sum ${by()} (increase(${series('internalErrors')}${recent('faultWindow')})) > 0`,
      for: 'faultFor',
      severity: 'warning',
      labels: [],
      summary: `${at(jobLabel)}: faults inside otel-time-budget`,
      description:
        `About {{ $value | humanize }} within ${words.suffix('faultWindow')}. They were kept from the service; some ` +
        'of what is shown may be missing.',
      dashboard: 'waste',
    },
  ];
}
