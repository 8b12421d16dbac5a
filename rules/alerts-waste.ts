/** Work that nobody waits for any more. */
import { recordNames } from './records.ts';
import { type Alert, at } from './rule.ts';
import type { Vocabulary } from './vocabulary.ts';

export function wasteAlerts(words: Vocabulary): readonly Alert[] {
  const { numbers, by, rate, jobLabel } = words;
  const names = recordNames(words);
  return [
    {
      name: 'WastedExecution',
      expr: [
        `${names.lateExecution} > ${numbers.wasteShare}`,
        `and sum ${by('dependency')} (${rate('execution')}) > ${numbers.wasteBusy}`,
      ].join('\n'),
      for: 'wasteFor',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${at(jobLabel)}: ${at('dependency')} works past the deadline`,
      description:
        '{{ $value | humanizePercentage }} of the time in which calls kept it busy lay after the deadline of their request.',
      dashboard: 'waste',
    },
    {
      name: 'PostCancelWork',
      expr: `sum ${by('dependency', 'kind')} (${rate('postCancelSeconds', 'intended="no"')}) > ${numbers.postCancelBusy}`,
      for: 'postCancelFor',
      severity: 'warning',
      labels: ['dependency', 'kind'],
      summary: `${at(jobLabel)}: work of kind ${at('kind')} goes on after the cancel`,
      description:
        '{{ $value | humanize }} pieces of it are in progress on average, for requests that were cancelled or are ' +
        `past their deadline; dependency ${at('dependency')}.`,
      dashboard: 'waste',
    },
  ];
}
