import { MAX_COST, PASSING_UNITS, WINDOW_BOUNDS_MS } from '../core/retry-budget.ts';
import { EMPTY_BEHAVIOURS, RETRY_BUDGET_MODELS } from '../core/terms.ts';
import type { Schema, SchemaKit } from './config-schema-kit.ts';
import { MAX_ENTRIES } from './config-settings.ts';

/**
 * The keys of a retry budget with their bounds; what only the model can tell is checked when it is resolved.
 */
interface Form {
  readonly pattern: RegExp;
  readonly form: string;
}

export function retryBudgets(kit: SchemaKit, name: Form, version: Form): Schema {
  const dependencies = kit.list(
    'Dependencies whose repeats this budget pays for; several share it. Unset: the one that has its name.',
    `a list of 1 to ${MAX_ENTRIES} names, each ${name.form}`,
    kit.text('A dependency.', name.form, name),
    { least: 1, most: MAX_ENTRIES },
  );
  const policyVersion = kit.text('Version of this definition.', version.form, version);
  const meaning = 'Retry budgets: a second limit on repeats, over all client libraries of the process.';
  return kit.named(meaning, name.form, name.pattern, group(kit, dependencies, policyVersion));
}

function group(kit: SchemaKit, dependencies: Schema, policyVersion: Schema): Schema {
  const [shortest, longest] = WINDOW_BOUNDS_MS;
  const floor = kit.group(
    'What is still granted when nothing succeeds; needed where successes feed the budget.',
    {
      attempts: kit.integer('Attempts of the usual cost in every every_ms.', 1, 1_000),
      every_ms: kit.number('Milliseconds.', shortest, longest),
    },
    ['attempts', 'every_ms'],
  );
  return kit.group(
    'One retry budget.',
    {
      dependencies,
      model: kit.oneOf('How it reckons.', RETRY_BUDGET_MODELS),
      ratio: kit.number('token_bucket: share of what is deposited that may be withdrawn.', 0, 1),
      reserve_per_second: kit.number('token_bucket: granted on top per second.', 0, MAX_COST),
      ttl_ms: kit.number('token_bucket: life of a deposit, in ms.', shortest, longest),
      feed: kit.oneOf('token_bucket: what fills it.', ['original', 'success'], 'original'),
      max_tokens: kit.number('grpc_throttling: tokens at the start and at the most.', 0.001, 1_000),
      token_ratio: kit.number('grpc_throttling: tokens that a success brings.', 0.001, 1),
      percent: kit.number('in_flight_percent: percent of what is active and pending.', 0, 100),
      minimum: kit.integer('in_flight_percent: repeats allowed with nothing in flight.', 0, MAX_COST),
      capacity: kit.number('fixed_quota: stock at the start and at the most.', 1e-6, MAX_COST),
      success_amount: kit.number('fixed_quota: what the success of an original brings.', 1e-6, MAX_COST),
      attempt_cost: kit.number('token_bucket, fixed_quota: cost of a usual repeat.', 1e-6, MAX_COST),
      unit: kit.oneOf('token_bucket, fixed_quota: what one unit stands for.', PASSING_UNITS),
      floor,
      on_empty: kit.oneOf(
        'What becomes of an operation whose repeat it cannot pay for.',
        EMPTY_BEHAVIOURS,
        'original_error',
      ),
      policy_version: policyVersion,
    },
    ['model'],
  );
}
