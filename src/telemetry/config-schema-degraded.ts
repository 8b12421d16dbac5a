import type { Schema, SchemaKit } from './config-schema-kit.ts';
import { MAX_ENTRIES } from './config-settings.ts';
import { METRICS, prometheusName } from './names.ts';

/** The keys of a degraded mode with their bounds; that its two points differ is checked when it is resolved. */
interface Form {
  readonly pattern: RegExp;
  readonly form: string;
}

const TRIGGER_METRICS: ReadonlySet<string> = new Set(Object.values(METRICS).map(prometheusName));
const LABEL = /^[a-z_]{1,40}=[ -~]{1,128}$/;
const LABEL_FORM = 'label=value';
/** Above every count that a service can reach. */
const MOST = 1e12;

export function degradedModes(kit: SchemaKit, name: Form, operation: Form): Schema {
  const labels = kit.text('A label and its value.', LABEL_FORM, { pattern: LABEL, longest: 170 });
  const trigger = kit.group(
    'The number that it is on by. Unset: it is thrown by hand.',
    {
      metric: kit.text(
        'Name in Prometheus. A gauge counts as it is, a counter per second, a histogram by its mean.',
        'a metric of docs/signals.md, as Prometheus has it',
        { accepts: (text) => TRIGGER_METRICS.has(text) },
      ),
      labels: kit.list(
        'Only the series with these labels; they are added up.',
        'a list of up to 8 texts of the form label=value',
        labels,
        { least: 0, most: 8 },
      ),
      enter_at: kit.number('On from this value.', -MOST, MOST),
      exit_at: kit.number('Off from this value, beyond enter_at.', -MOST, MOST),
      window_ms: kit.number(
        'Time between two looks, over which a rate or mean is taken.',
        10,
        3_600_000,
        1_000,
      ),
    },
    ['metric', 'enter_at', 'exit_at'],
  );
  const mode = kit.group('One degraded mode.', {
    trigger,
    least_ms: kit.ms('Shortest time that it stays on.', 'zero', 0),
    non_degradable: kit.list(
      'Operations that must never give a degraded answer; one that does is a violation.',
      `a list of up to ${MAX_ENTRIES} operations`,
      kit.text('An operation.', operation.form, { pattern: operation.pattern }),
      { least: 0, most: MAX_ENTRIES },
    ),
  });
  return kit.named('Degraded modes: what starts and ends them.', name.form, name.pattern, mode);
}
