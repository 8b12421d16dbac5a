/** A retry budget from its definition: the model and what it needs, as a configuration or a service gives them. */
import type { RetryBudget } from './retry-budget.ts';
import { InFlightPercentBudget, type InFlightPercentOptions } from './retry-budget-envoy.ts';
import { GrpcThrottlingBudget, type GrpcThrottlingOptions } from './retry-budget-grpc.ts';
import { FixedQuotaBudget, type FixedQuotaOptions } from './retry-budget-quota.ts';
import { TokenBucketBudget, type TokenBucketOptions } from './retry-budget-token-bucket.ts';
import { RETRY_BUDGET_MODELS, type RetryBudgetModel } from './terms.ts';

export type RetryBudgetOptions =
  | ({ readonly model: 'token_bucket' } & TokenBucketOptions)
  | ({ readonly model: 'grpc_throttling' } & GrpcThrottlingOptions)
  | ({ readonly model: 'in_flight_percent' } & InFlightPercentOptions)
  | ({ readonly model: 'fixed_quota' } & FixedQuotaOptions);

/** Of every model: whose it is, and what its refusals and its version are. */
const COMMON = ['model', 'dependencies', 'onEmpty', 'policyVersion'];
/** Keys by model; a key of another model would say something that nothing acts upon. */
const KEYS: Readonly<Record<RetryBudgetModel, readonly string[]>> = {
  token_bucket: ['ratio', 'reservePerSecond', 'ttlMs', 'feed', 'unit', 'attemptCost'],
  grpc_throttling: ['maxTokens', 'tokenRatio', 'floor', 'isDerived'],
  in_flight_percent: ['percent', 'minimum'],
  fixed_quota: ['capacity', 'attemptCost', 'successAmount', 'unit', 'floor', 'isDerived'],
};

/** The keys that are given and that its model, which is one of the list, does not use. */
export function foreignKeys(options: { readonly model: RetryBudgetModel }): string[] {
  const known = [...COMMON, ...KEYS[options.model]];
  return Object.entries(options)
    .filter(([key, value]) => value !== undefined && !known.includes(key))
    .map(([key]) => key);
}

/** Throws RangeError that names the option, its bounds and the value; for a key of another model as well. */
export function createRetryBudget(options: RetryBudgetOptions): RetryBudget {
  const budget = create(options);
  const [foreign] = foreignKeys(options);
  if (foreign !== undefined) throw new RangeError(`${foreign} is not used by the model ${options.model}`);
  return budget;
}

function create(options: RetryBudgetOptions): RetryBudget {
  switch (options.model) {
    case 'token_bucket':
      return new TokenBucketBudget(options);
    case 'grpc_throttling':
      return new GrpcThrottlingBudget(options);
    case 'in_flight_percent':
      return new InFlightPercentBudget(options);
    case 'fixed_quota':
      return new FixedQuotaBudget(options);
    default: {
      // A caller in plain JavaScript can leave it out or misspell it.
      const { model } = options as { readonly model?: unknown };
      throw new RangeError(`model must be one of ${RETRY_BUDGET_MODELS.join(', ')}, got ${String(model)}`);
    }
  }
}
