/** The symptom that users feel: admitted work that does not end usefully in time. */
import { BURNS, round } from './combinations.ts';
import { recordNames, unusefulRatio } from './records.ts';
import { type Alert, at } from './rule.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Two windows each: the long one says that it matters, the short one that it still goes on. */
export function burnAlerts(words: Vocabulary): readonly Alert[] {
  const { numbers, window, jobLabel } = words;
  const { ended } = recordNames(words);
  const allowed = round(1 - numbers.objective);
  return BURNS.map((burn): Alert => {
    const factor = numbers[`burn${burn}Factor`];
    const long = `burn${burn}Window` as const;
    const limit = `${factor} * ${allowed}`;
    const leastEvents = Math.ceil(round(numbers.burnLeastFailures / (factor * allowed)));
    return {
      name: 'TimeBudgetBurn',
      expr: [
        `${unusefulRatio(words, long)} > ${limit}`,
        `and ${unusefulRatio(words, `burn${burn}ShortWindow`)} > ${limit}`,
        `and sum_over_time(${ended}[${window(long)}]) * ${words.everySeconds} >= ${leastEvents}`,
      ].join('\n'),
      for: `burn${burn}For`,
      severity: burn === 'Fast' || burn === 'Medium' ? 'critical' : 'warning',
      labels: ['operation'],
      // Two rules with one severity would be one series otherwise.
      fixedLabels: { window: words.suffix(long) },
      summary: `${at(jobLabel)}: too few requests of ${at('operation')} end usefully`,
      description:
        `{{ $value | humanizePercentage }} of the requests that ended within ${words.suffix(long)} were expired, ` +
        `late, failed or unknown (refused and shed ones left out): ${factor} times or more of what an objective of ` +
        `${round(numbers.objective * 100)}% allows.`,
      dashboard: 'overview',
    };
  });
}
