/** Retry budgets, and what repeats do to the load. */
import type { MetricKey } from '../src/telemetry/names.ts';
import { round } from './combinations.ts';
import { recordNames } from './records.ts';
import { type Alert, at } from './rule.ts';
import type { Vocabulary } from './vocabulary.ts';

export function retryAlerts(words: Vocabulary): readonly Alert[] {
  const { numbers, series, by, on, rate, window, jobLabel, identity } = words;
  const names = recordNames(words);
  const dependency = by('dependency');
  const where = `${at(jobLabel)}: retry budget of ${at('dependency')}`;
  const info = (key: MetricKey, ...labels: readonly string[]) =>
    `(printf "${words.name(key)}{${labels.map((label) => `${label}=%q`).join(',')}}" ` +
    `${labels.map((label) => `$labels.${label}`).join(' ')})`;
  // What a refusal means depends on it, so it is in the message (A-01).
  const definition =
    `{{ with query ${info('retryBudgetInfo', ...identity, 'dependency')} }}{{ with first . }} Unit {{ label "unit" . }}, fed by ` +
    '{{ label "feed" . }}, on empty {{ label "on_empty" . }}.{{ end }}{{ end }}' +
    `{{ with query ${info('policyInfo', ...identity)} }}` +
    '{{ with first . }} Policy {{ label "policy_version" . }}.{{ end }}{{ end }}';
  return [
    {
      name: 'RetryBudgetExhausted',
      // Refused of asked: no success and no deposit is in it, so it holds where nothing succeeds (A-01).
      expr: [
        `${names.refused} / (${names.asked} > 0) > ${numbers.exhaustedShare}`,
        `and ${names.refused} > ${numbers.leastPerSecond}`,
        `and sum ${dependency} (rate(${series('retryWithdrawals', 'result="refused"')}[${window('exhaustedRecentWindow')}])) > 0`,
      ].join('\n'),
      for: 'exhaustedFor',
      keepFiringFor: 'exhaustedKeep',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${where} is empty`,
      description: `{{ $value | humanizePercentage }} of the repeats that asked it were refused.${definition}`,
      dashboard: 'retries',
    },
    {
      name: 'RetryBudgetDraining',
      expr: [
        `min ${dependency} (avg_over_time(${series('retryBalance')}[${window('rateWindow')}]) / ${series('retryCapacity')}) < ${numbers.drainingFill}`,
        `and sum ${dependency} (${rate('retryWithdrawals', 'result="granted"')}) > ${numbers.leastPerSecond}`,
      ].join('\n'),
      for: 'drainingFor',
      severity: 'info',
      labels: ['dependency'],
      summary: `${where} is nearly empty and repeats go on`,
      description: `The lowest instance has {{ $value | humanizePercentage }} of its capacity left.${definition}`,
      dashboard: 'retries',
    },
    {
      name: 'RetryBudgetLowSuccess',
      // Only instances in that state count: one without traffic gets no success either.
      expr: [
        `sum ${dependency} (`,
        `  ${rate('retryWithdrawals')}`,
        `  and ignoring (result) ${series('retryLowSuccess')} == 1`,
        `) > ${numbers.leastPerSecond}`,
      ].join('\n'),
      for: 'lowSuccessFor',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${where} lives on its floor`,
      description:
        '{{ $value | humanize }} repeats per second ask a budget that is fed by success and gets too little of it.' +
        definition,
      dashboard: 'retries',
    },
    {
      name: 'RetryBudgetWithoutEffect',
      expr: [
        `${names.refused} > ${numbers.leastPerSecond}`,
        `and ${names.attempts} >= ${numbers.withoutEffectShare} * (${names.attempts} offset ${window('withoutEffectOffset')})`,
        `and ${names.attemptsPerOriginal} > ${numbers.withoutEffectRatio}`,
      ].join('\n'),
      for: 'withoutEffectFor',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${where} refuses, and as many attempts arrive as before`,
      description:
        '{{ $value | humanize }} repeats per second are refused, and the attempts per second are not fewer than ' +
        `${words.suffix('withoutEffectOffset')} ago. In mode observe refusals are only counted.${definition}`,
      dashboard: 'retries',
    },
    {
      name: 'RetryAmplification',
      expr: [
        `${names.attemptsPerOriginal} > ${numbers.amplificationRatio}`,
        `and ${names.attempts} > ${numbers.leastPerSecond}`,
        `and ${on()} sum ${by()} (${names.useful})`,
        `  < ${numbers.amplificationUseful} * sum ${by()} (${names.useful} offset ${window('amplificationOffset')})`,
      ].join('\n'),
      for: 'amplificationFor',
      severity: 'critical',
      labels: ['dependency'],
      summary: `${at(jobLabel)}: more attempts at ${at('dependency')}, and fewer useful results`,
      description:
        '{{ $value | humanize }} attempts per original call, while the service ends fewer than ' +
        `${round(numbers.amplificationUseful * 100)}% as many requests usefully as ${words.suffix('amplificationOffset')} ago.`,
      dashboard: 'retries',
    },
  ];
}
