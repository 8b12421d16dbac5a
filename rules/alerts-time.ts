/** Where the time goes: our own code, a dependency, a pool, or a caller that never gave enough of it. */
import { recordNames } from './records.ts';
import { type Alert, at } from './rule.ts';
import { POOL_LABEL, type Vocabulary } from './vocabulary.ts';

export function timeAlerts(words: Vocabulary): readonly Alert[] {
  const { numbers, by, on, rate, quantile, count, window, jobLabel } = words;
  const names = recordNames(words);
  const slow = `${names.callDurationAgainstBaseline} > ${numbers.slowFactor}`;
  return [
    {
      name: 'LocalSpendDominates',
      expr: [
        `${names.localSpend} > ${numbers.localSpendShare}`,
        `and ${names.offered} > ${numbers.leastPerSecond}`,
      ].join('\n'),
      for: 'localSpendFor',
      severity: 'warning',
      labels: ['operation'],
      summary: `${at(jobLabel)}: ${at('operation')} spends its budget before the first call`,
      description:
        'Half of the requests have spent {{ $value | humanizePercentage }} of their budget or more by then.',
      dashboard: 'path',
    },
    {
      name: 'DependencySlow',
      expr: slow,
      for: 'slowFor',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${at(jobLabel)}: ${at('dependency')} is slower than usual`,
      description:
        `Its p95 is {{ $value | humanize }} times the median of its p95 over ${words.suffix('slowWindow')}, ` +
        `up to ${words.suffix('slowOffset')} ago.`,
      dashboard: 'dependencies',
    },
    {
      name: 'CallerBudgetUnrealistic',
      // Only one of the pair has an `unless`: with two, a slow dependency and an impatient caller would hide each other.
      expr: [
        `${names.insufficient} > ${numbers.insufficientShare}`,
        `unless ${on()} max ${by()} (${names.callDurationAgainstBaseline}) > ${numbers.slowFactor}`,
      ].join('\n'),
      for: 'insufficientFor',
      severity: 'warning',
      labels: ['caller'],
      summary: `${at(jobLabel)}: ${at('caller')} gives less time than the work usually takes`,
      description:
        '{{ $value | humanizePercentage }} of its requests arrived with less than the usual duration of their ' +
        'operation, and no dependency is slower than usual.',
      dashboard: 'dependencies',
    },
    {
      name: 'ConnectionPoolSaturated',
      expr: [
        `${quantile(0.95, 'poolWait', POOL_LABEL)} > ${numbers.poolWaitSeconds}`,
        `and sum ${by(POOL_LABEL)} (rate(${count('poolWait')}[${window('rateWindow')}])) > ${numbers.leastPerSecond}`,
      ].join('\n'),
      for: 'poolWaitFor',
      severity: 'warning',
      labels: [POOL_LABEL],
      summary: `${at(jobLabel)}: requests wait for a connection of pool ${at(POOL_LABEL)}`,
      description: 'One in twenty waits {{ $value | humanizeDuration }} or longer.',
      dashboard: 'dependencies',
    },
    {
      name: 'CallsWithoutDeadline',
      expr: [
        `sum ${by('dependency')} (${rate('calls', 'binding_term="none"')})`,
        `/ (sum ${by('dependency')} (${rate('calls')}) > ${numbers.leastPerSecond})`,
        `> ${numbers.withoutDeadlineShare}`,
      ].join('\n'),
      for: 'withoutDeadlineFor',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${at(jobLabel)}: calls to ${at('dependency')} that nothing limits`,
      description:
        '{{ $value | humanizePercentage }} of the calls had neither a budget nor a cap nor a timeout of their own.',
      dashboard: 'dependencies',
    },
  ];
}
