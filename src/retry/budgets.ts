/** Retry budgets by name, made in code or in the configuration file. */
import { diag } from '@opentelemetry/api';
import { activeRecorder } from '../active.ts';
import type { RetryBudgetOptions } from '../core/create-retry-budget.ts';
import type { RetryBudget } from '../core/retry-budget.ts';
import { addEarly, awaitedBudget, earlyBudget } from '../early-budgets.ts';
import { LiveRetryBudget } from '../live-retry-budget.ts';
import { textOf } from '../text-of.ts';
import { isObject } from './adapter.ts';
import { inCall } from './in-call.ts';

/** A budget; `dependencies` share it. Left out: the dependency of the budget's own name. */
export type SharedRetryBudgetOptions = RetryBudgetOptions & {
  readonly dependencies?: readonly string[] | undefined;
};

/**
 * The one budget of this name in this process. Made on the first call; one of the configuration file stands before
 * what the code says, so that it can be changed without a release. Calls of its dependencies feed it. Its amounts
 * are told as `retry_budget_*`, with its name as `dependency`. Its `now` is `performance.now()`.
 * Throws RangeError that names an option out of its bounds, a key of another model or what is no name, and Error where
 * there is no budget of this name and no options are given. While the package is not started, the file is not read: a
 * budget without options then refuses nothing until it is, as the service would without the package.
 */
export function retryBudget(name: string, options?: SharedRetryBudgetOptions): RetryBudget {
  if (typeof name !== 'string' || name === '')
    throw new RangeError(`retryBudget: name must be a text, got ${textOf(name)}`);
  if (options !== undefined && !isObject(options))
    throw new RangeError(`retryBudget: options must be an object, got ${textOf(options)}`);
  const known = findBudget(name);
  if (known !== undefined) {
    if (options !== undefined && options.model !== known.model) {
      diag.warn(`otel-time-budget: the retry budget ${name} is defined already, as ${known.model}`);
    }
    return known;
  }
  if (options === undefined) {
    if (activeRecorder() === undefined) return awaitedBudget(name);
    throw new Error(`retryBudget: there is no budget ${name}, and no options`);
  }
  const { dependencies = [name] } = options;
  // A text is a list of letters, and none of them a dependency.
  if (!Array.isArray(dependencies) || !dependencies.every((each) => typeof each === 'string'))
    throw new RangeError(`retryBudget: dependencies must be a list of names, got ${textOf(dependencies)}`);
  const budget = inCall(`retryBudget: ${name}`, () => new LiveRetryBudget(name, dependencies, options));
  addBudget(budget);
  return budget;
}

export function findBudget(name: string): LiveRetryBudget | undefined {
  return activeRecorder()?.retries.get(name) ?? earlyBudget(name);
}

/** At once, or when the package is started. */
export function addBudget(budget: LiveRetryBudget): void {
  const recorder = activeRecorder();
  if (recorder === undefined) addEarly(budget);
  else recorder.retries.add(budget);
}
