/** Too much work: refused, waiting, degraded, or let loose again all at once. */
import { recordNames } from './records.ts';
import { type Alert, at } from './rule.ts';
import type { Vocabulary } from './vocabulary.ts';

export function loadAlerts(words: Vocabulary): readonly Alert[] {
  return [
    ...intakeAlerts(words),
    ...degradedAlerts(words),
    ...breakerAlerts(words),
    ...recoveryAlerts(words),
  ];
}

function intakeAlerts(words: Vocabulary): readonly Alert[] {
  const { numbers, series, by, rate, window, jobLabel } = words;
  const { offered } = recordNames(words);
  const queue = by('queue');
  const depth = `sum ${queue} (${series('queueDepth')})`;
  const trend = `[${window('backlogWindow')}:${window('evaluationInterval')}]`;
  const usual = `avg_over_time(${offered}[${window('shedWindow')}] offset ${window('shedOffset')})`;
  return [
    {
      name: 'LoadSheddingAtOrdinaryLoad',
      expr: [
        `sum ${by()} (${rate('shed')}) / (sum ${by()} (${offered}) > ${numbers.leastPerSecond}) > ${numbers.shedShare}`,
        `and sum ${by()} (${offered}) <= ${numbers.shedOrdinary} * sum ${by()} (${usual})`,
      ].join('\n'),
      for: 'shedFor',
      severity: 'warning',
      labels: [],
      summary: `${at(jobLabel)}: requests are shed at ordinary load`,
      description:
        '{{ $value | humanizePercentage }} of what was offered was shed, and no more is offered than ' +
        `${numbers.shedOrdinary} times the average of ${words.suffix('shedWindow')}.`,
      dashboard: 'overview',
    },
    {
      name: 'QueueAgeNearUsefulLife',
      expr: [
        `max ${queue} (${series('queueOldest')})`,
        `/ (max ${queue} (${series('queueUsefulLife')}) > 0) > ${numbers.queueAgeShare}`,
      ].join('\n'),
      for: 'queueAgeFor',
      severity: 'warning',
      labels: ['queue'],
      summary: `${at(jobLabel)}: the oldest in queue ${at('queue')} is nearly too old`,
      description:
        'It has used {{ $value | humanizePercentage }} of the age up to which it is worth starting.',
      dashboard: 'queues',
    },
    {
      name: 'BacklogWillNotDrain',
      expr: [
        `${depth} > 0 and (`,
        `  sum ${queue} (${rate('queueEntered')}) >= sum ${queue} (${rate('queueLeft')}) and deriv((${depth})${trend}) > 0`,
        `  or min ${queue} (${series('modelDrains')}) == 0`,
        ')',
      ].join('\n'),
      for: 'backlogFor',
      severity: 'warning',
      labels: ['queue'],
      summary: `${at(jobLabel)}: queue ${at('queue')} grows and will not drain`,
      description:
        '{{ $value | humanize }} wait, and as many or more enter as leave: measured, or by the fluid model of the service.',
      dashboard: 'queues',
    },
    {
      name: 'ConcurrencyNearLimit',
      expr: [
        `sum ${by('dependency')} (avg_over_time(${series('concurrencyUsed')}[${window('rateWindow')}]))`,
        `/ (sum ${by('dependency')} (${series('concurrencyLimit')}) > 0) > ${numbers.concurrencyShare}`,
      ].join('\n'),
      for: 'concurrencyFor',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${at(jobLabel)}: nearly all permits of ${at('dependency')} are held`,
      description: '{{ $value | humanizePercentage }} of them on average, over all instances.',
      dashboard: 'path',
    },
  ];
}

function degradedAlerts(words: Vocabulary): readonly Alert[] {
  const { series, by, window, jobLabel } = words;
  return [
    {
      name: 'DegradedModeTooLong',
      expr: `max ${by('mode', 'trigger')} (${series('degradedActive')}) == 1`,
      for: 'degradedFor',
      severity: 'warning',
      labels: ['mode', 'trigger'],
      summary: `${at(jobLabel)}: degraded mode ${at('mode')} has been on too long`,
      description: `On for ${words.suffix('degradedFor')} or longer, by its trigger ${at('trigger')}.`,
      dashboard: 'queues',
    },
    {
      name: 'DegradedNotAllowed',
      expr: `sum ${by()} (increase(${series('violations', 'kind="degraded_non_degradable"')}[${window('rateWindow')}])) > 0`,
      keepFiringFor: 'degradedNotAllowedKeep',
      severity: 'critical',
      labels: [],
      summary: `${at(jobLabel)}: a degraded answer where none is allowed`,
      description: `About {{ $value | humanize }} within ${words.suffix('rateWindow')}, of operations that must fail instead.`,
      dashboard: 'waste',
    },
  ];
}

function breakerAlerts(words: Vocabulary): readonly Alert[] {
  const { numbers, by, rate, quantileOver, window, jobLabel } = words;
  const dependency = by('dependency');
  return [
    {
      name: 'BreakerClosesIntoWave',
      expr: [
        `${quantileOver('waveWindow', 0.5, 'breakerAfterClose', 'dependency')} < ${numbers.waveSeconds}`,
        `and sum ${dependency} (increase(${words.count('breakerAfterClose')}[${window('waveWindow')}])) > ${numbers.waveLeast}`,
      ].join('\n'),
      for: 'waveFor',
      keepFiringFor: 'waveKeep',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${at(jobLabel)}: the breaker of ${at('dependency')} closes into a wave`,
      description:
        'Half of the attempts of the ten seconds after the close were made in the first {{ $value | humanizeDuration }}.',
      dashboard: 'queues',
    },
    {
      name: 'BreakerProbesTooMany',
      expr: `sum ${dependency} (${rate('breakerProbes')}) > ${numbers.probesPerSecond}`,
      for: 'probesFor',
      severity: 'warning',
      labels: ['dependency'],
      summary: `${at(jobLabel)}: the probes of all instances load ${at('dependency')}`,
      description: '{{ $value | humanize }} probes per second, over all instances.',
      dashboard: 'queues',
    },
  ];
}

function recoveryAlerts(words: Vocabulary): readonly Alert[] {
  const { numbers, series, by, jobLabel } = words;
  return [
    {
      name: 'UnknownOutcomesOpen',
      expr: `max ${by('operation')} (${series('unknownOldest')}) > ${numbers.unknownSeconds}`,
      for: 'unknownFor',
      severity: 'warning',
      labels: ['operation'],
      summary: `${at(jobLabel)}: outcomes of ${at('operation')} stay unknown`,
      description:
        'The oldest has been unknown for {{ $value | humanizeDuration }}, and nobody has found out about it.',
      dashboard: 'queues',
    },
    {
      name: 'ReplayStopped',
      expr: `max ${by('queue', 'stop')} (${series('replayStop')}) == 1`,
      for: 'replayStoppedFor',
      severity: 'warning',
      labels: ['queue', 'stop'],
      summary: `${at(jobLabel)}: the replay of ${at('queue')} stays stopped`,
      description: `By its signal ${at('stop')}: live work would suffer.`,
      dashboard: 'queues',
    },
  ];
}
