/** Retry budgets by name, made in code or in the configuration file. */
import { diag } from '@opentelemetry/api';
import { activeRecorder } from '../active.ts';
import type { RetryBudgetOptions } from '../core/create-retry-budget.ts';
import type { RetryBudget } from '../core/retry-budget.ts';
import { LiveRetryBudget } from '../live-retry-budget.ts';
import { addEarly, earlyBudget } from '../retry-recorder.ts';

/** A budget; `dependencies` share it. Left out: the dependency of the budget's own name. */
export type SharedRetryBudgetOptions = RetryBudgetOptions & {
  readonly dependencies?: readonly string[] | undefined;
};

/**
 * The one budget of this name in this process. Made on the first call; one of the configuration file stands before
 * what the code says, so that it can be changed without a release. Calls of its dependencies feed it. Its amounts
 * are told as `retry_budget_*`, with its name as `dependency`. Its `now` is `performance.now()`.
 * Throws RangeError that names an option out of its bounds, and Error where there is no budget of this name and no
 * options are given.
 */
export function retryBudget(name: string, options?: SharedRetryBudgetOptions): RetryBudget {
  const recorder = activeRecorder();
  const known = recorder?.retries.get(name) ?? earlyBudget(name);
  if (known !== undefined) {
    if (options !== undefined && options.model !== known.model) {
      diag.warn(`otel-time-budget: the retry budget ${name} is defined already, as ${known.model}`);
    }
    return known;
  }
  if (options === undefined) throw new Error(`retryBudget: there is no budget ${name}, and no options`);
  const budget = new LiveRetryBudget(name, options.dependencies ?? [name], options);
  if (recorder === undefined) addEarly(budget);
  else recorder.retries.add(budget);
  return budget;
}
