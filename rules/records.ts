/** Recording rules: what several alerts and dashboards read, each `level:metric:operation` as Prometheus advises. */
import { BURNS } from './combinations.ts';
import type { DurationName } from './parameters.ts';
import type { RecordingRule } from './rule.ts';
import type { Vocabulary } from './vocabulary.ts';

/** Windows of the burn rates, each once. */
function burnWindows({ numbers }: Vocabulary): DurationName[] {
  const names = BURNS.flatMap((burn) => [`burn${burn}Window`, `burn${burn}ShortWindow`] as const);
  const byLength = new Map(names.map((name) => [numbers[name], name]));
  return [...byLength].sort(([left], [right]) => left - right).map(([, name]) => name);
}

/** A share of ended requests that were not useful, over one window. */
export function unusefulRatio(words: Vocabulary, window: DurationName): string {
  return `operation:time_budget_unuseful:ratio_rate${words.suffix(window)}`;
}

/** Sums of records, not rates of raw series: three days of those are more samples than a server lets a query load. */
function over({ numbers, window }: Vocabulary, name: DurationName, record: string): string {
  return numbers[name] === numbers.rateWindow ? record : `sum_over_time(${record}[${window(name)}])`;
}

export interface RecordNames {
  readonly ended: string;
  readonly unuseful: string;
  readonly useful: string;
  readonly offered: string;
  readonly arrivalsPerOriginal: string;
  readonly attempts: string;
  readonly attemptsPerOriginal: string;
  readonly refused: string;
  readonly asked: string;
  readonly lateExecution: string;
  readonly callDuration: string;
  readonly callDurationBaseline: string;
  readonly callDurationAgainstBaseline: string;
  readonly insufficient: string;
  readonly localSpend: string;
}

/** The window in a name is the real one: who changes it finds dashboards that must be told. */
export function recordNames(words: Vocabulary): RecordNames {
  const window = words.suffix('rateWindow');
  const day = words.suffix('slowWindow');
  return {
    ended: `operation:time_budget_ended:rate${window}`,
    unuseful: `operation:time_budget_unuseful:rate${window}`,
    useful: `operation:time_budget_useful:rate${window}`,
    offered: `operation:time_budget_offered:rate${window}`,
    arrivalsPerOriginal: `operation:time_budget_arrivals_per_original:ratio_rate${window}`,
    attempts: `dependency:time_budget_attempts:rate${window}`,
    attemptsPerOriginal: `dependency:time_budget_attempts_per_original:ratio_rate${window}`,
    refused: `dependency:retry_budget_refused:rate${window}`,
    asked: `dependency:retry_budget_asked:rate${window}`,
    lateExecution: `dependency:time_budget_late_execution:ratio_rate${window}`,
    callDuration: `dependency:time_budget_call_duration_seconds:p95_rate${window}`,
    callDurationBaseline: `dependency:time_budget_call_duration_seconds:p95_baseline${day}`,
    callDurationAgainstBaseline: `dependency:time_budget_call_duration_seconds:p95_per_baseline${day}`,
    insufficient: `caller:time_budget_insufficient:ratio_rate${window}`,
    localSpend: `operation:time_budget_local_spend:p50_rate${window}`,
  };
}

/** In an order in which each reads only what stands before it. */
export function recordingRules(words: Vocabulary): readonly RecordingRule[] {
  const names = recordNames(words);
  const { by, rate, quantile, window } = words;
  const operation = by('operation');
  const dependency = by('dependency');
  return [
    // A refusal on purpose kept its promise, and has alerts of its own.
    {
      record: names.ended,
      expr: `sum ${operation} (${rate('outcomes', 'outcome!~"shed|refused"')})`,
    },
    {
      record: names.unuseful,
      expr: `sum ${operation} (${rate('outcomes', 'outcome=~"expired|late|failed|unknown"')})`,
    },
    { record: names.useful, expr: `sum ${operation} (${rate('outcomes', 'outcome="useful"')})` },
    ...burnWindows(words).map((name) => ({
      record: unusefulRatio(words, name),
      expr: `${over(words, name, names.unuseful)}\n/ (${over(words, name, names.ended)} > 0)`,
    })),
    { record: names.offered, expr: `sum ${operation} (${rate('offered')})` },
    {
      record: names.arrivalsPerOriginal,
      expr: [
        // Of all that arrived: repeats that are shed were made as well.
        `sum ${operation} (${rate('offered')})`,
        `/ (sum ${operation} (${rate('offered')}) - sum ${operation} (${rate('retried')}) > 0)`,
      ].join('\n'),
    },
    // A reconnect loads nothing again.
    { record: names.attempts, expr: `sum ${dependency} (${rate('attempts', 'kind!="reconnect"')})` },
    {
      record: names.attemptsPerOriginal,
      expr: `${names.attempts}\n/ (sum ${dependency} (${rate('attempts', 'kind="original"')}) > 0)`,
    },
    { record: names.refused, expr: `sum ${dependency} (${rate('retryWithdrawals', 'result="refused"')})` },
    { record: names.asked, expr: `sum ${dependency} (${rate('retryWithdrawals')})` },
    {
      record: names.lateExecution,
      expr: `sum ${dependency} (${rate('executionLate')})\n/ (sum ${dependency} (${rate('execution')}) > 0)`,
    },
    // `>= 0` leaves out NaN: hours without a call would drag the median of the day to it.
    { record: names.callDuration, expr: `${quantile(0.95, 'callDuration', 'dependency')} >= 0` },
    {
      record: names.callDurationBaseline,
      expr: `quantile_over_time(0.5, ${names.callDuration}[${window('slowWindow')}] offset ${window('slowOffset')})`,
    },
    {
      record: names.callDurationAgainstBaseline,
      expr: [
        `(${names.callDuration} > ${words.numbers.slowLeastSeconds})`,
        `/ (${names.callDurationBaseline} > 0)`,
        `and sum ${dependency} (${rate('calls')}) > ${words.numbers.leastPerSecond}`,
      ].join('\n'),
    },
    {
      record: names.insufficient,
      expr: [
        `sum ${by('caller')} (${rate('insufficient')})`,
        `/ (sum ${by('caller')} (${rate('offered')}) > ${words.numbers.leastPerSecond})`,
      ].join('\n'),
    },
    { record: names.localSpend, expr: `${quantile(0.5, 'localSpend', 'operation')} >= 0` },
  ];
}
