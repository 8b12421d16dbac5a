/** A retry budget from its definition: the model and what it needs, as a configuration or a service gives them. */
import type { RetryBudget } from './retry-budget.ts';
import { InFlightPercentBudget, type InFlightPercentOptions } from './retry-budget-envoy.ts';
import { GrpcThrottlingBudget, type GrpcThrottlingOptions } from './retry-budget-grpc.ts';
import { FixedQuotaBudget, type FixedQuotaOptions } from './retry-budget-quota.ts';
import { TokenBucketBudget, type TokenBucketOptions } from './retry-budget-token-bucket.ts';
import { RETRY_BUDGET_MODELS } from './terms.ts';

export type RetryBudgetOptions =
  | ({ readonly model: 'token_bucket' } & TokenBucketOptions)
  | ({ readonly model: 'grpc_throttling' } & GrpcThrottlingOptions)
  | ({ readonly model: 'in_flight_percent' } & InFlightPercentOptions)
  | ({ readonly model: 'fixed_quota' } & FixedQuotaOptions);

/** Throws RangeError that names the option, its bounds and the value. */
export function createRetryBudget(options: RetryBudgetOptions): RetryBudget {
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
