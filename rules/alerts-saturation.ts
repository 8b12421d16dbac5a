/** A process that is nearly full, before requests suffer; never by the processor alone, which says neither. */
import { type Alert, at } from './rule.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Of one instance all the time: in a large fleet some instance always has a bad moment. */
export function saturationAlerts(words: Vocabulary): readonly Alert[] {
  const { numbers, series, by, window, jobLabel } = words;
  const lowest = (key: 'loopDelay' | 'heapUsed') => `min_over_time(${series(key)}[${window('rateWindow')}])`;
  return [
    {
      name: 'EventLoopSaturated',
      expr: `max ${by()} (${lowest('loopDelay')}) > ${numbers.loopDelaySeconds}`,
      for: 'loopDelayFor',
      severity: 'warning',
      labels: [],
      summary: `${at(jobLabel)}: an event loop is too busy to notice what arrives`,
      description:
        'In one instance something lay unnoticed for {{ $value | humanizeDuration }} or longer, again and again.',
      dashboard: 'queues',
    },
    {
      name: 'HeapNearLimit',
      expr: `max ${by()} (${lowest('heapUsed')} / (${series('heapLimit')} > 0)) > ${numbers.heapShare}`,
      for: 'heapFor',
      severity: 'warning',
      labels: [],
      summary: `${at(jobLabel)}: a process is about to run out of memory`,
      description:
        'The heap of one instance holds {{ $value | humanizePercentage }} of what it can, even after collections.',
      dashboard: 'queues',
    },
    {
      name: 'OpenFilesNearLimit',
      expr: `max ${by()} (${series('openFiles')} / (${series('openFilesLimit')} > 0)) > ${numbers.openFilesShare}`,
      for: 'openFilesFor',
      severity: 'warning',
      labels: [],
      summary: `${at(jobLabel)}: a process is about to run out of file descriptors`,
      description: 'One instance has {{ $value | humanizePercentage }} of those that it may have open.',
      dashboard: 'queues',
    },
  ];
}
