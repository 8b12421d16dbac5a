import { createRetryBudget, foreignKeys, type RetryBudgetOptions } from '../core/create-retry-budget.ts';
import type { RetryBudgetModel } from '../core/terms.ts';
import { snakeCase } from './config-schema.ts';
import type { RetryBudgetDefinition, RetryBudgetSettings } from './config-settings.ts';

/** Retry budgets as they were given: what only their model can tell, and their effective settings. */

const REQUIRED: Readonly<Record<RetryBudgetModel, readonly (keyof RetryBudgetDefinition)[]>> = {
  token_bucket: ['ratio', 'reservePerSecond', 'ttlMs'],
  grpc_throttling: ['maxTokens', 'tokenRatio', 'floor'],
  in_flight_percent: ['percent', 'minimum'],
  fixed_quota: ['capacity', 'attemptCost', 'successAmount', 'floor'],
};

/** The definition as the budget is made from it, with nothing that was left out. */
export function retryBudgetSettings(definition: RetryBudgetDefinition, name: string): RetryBudgetSettings {
  const { dependencies, ...given } = definition;
  const entries = Object.entries(given).filter(([, value]) => value !== undefined);
  return {
    name,
    dependencies: [...new Set(dependencies ?? [name])],
    // `retryBudgetProblems` refuses a definition that has not the keys of its model.
    options: Object.fromEntries(entries) as unknown as RetryBudgetOptions,
  };
}

type Label = (...path: string[]) => string;

/** Keys that are missing or of another model, bounds between keys, and a dependency with two budgets. */
export function retryBudgetProblems(
  definitions: Readonly<Record<string, RetryBudgetDefinition>>,
  label: Label,
): string[] {
  const problems: string[] = [];
  const owners = new Map<string, string>();
  for (const [name, definition] of Object.entries(definitions)) {
    const settings = retryBudgetSettings(definition, name);
    const found = keyProblems(name, definition, label);
    problems.push(...(found.length > 0 ? found : modelProblems(settings, label)));
    for (const dependency of settings.dependencies) {
      const owner = owners.get(dependency);
      if (owner !== undefined) {
        problems.push(
          `${label('retryBudgets', name, 'dependencies')}: ${dependency} has the budget ${owner} already`,
        );
      }
      owners.set(dependency, owner ?? name);
    }
  }
  return problems;
}

function keyProblems(name: string, definition: RetryBudgetDefinition, label: Label): string[] {
  const { model } = definition;
  const foreign = foreignKeys(definition).map(
    (key) => `${label('retryBudgets', name, key)}: not used by the model ${model}`,
  );
  const missing = REQUIRED[model]
    .filter((key) => definition[key] === undefined)
    .map((key) => `${label('retryBudgets', name, 'model')}: ${model} needs ${snakeCase(key)}`);
  return [...foreign, ...missing];
}

/** What the model itself says, with the key as its author wrote it. */
function modelProblems({ name, options }: RetryBudgetSettings, label: Label): string[] {
  try {
    createRetryBudget(options);
    return [];
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const [option = '', ...rest] = text.split(' ');
    return [`${label('retryBudgets', name, ...option.split('.'))}: ${rest.join(' ')}`];
  }
}
