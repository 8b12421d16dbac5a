/** Retry budgets that the service asked for before the package was started, or where it never is. */
import type { RetryBudgetOptions } from './core/create-retry-budget.ts';
import { MAX_COST } from './core/retry-budget.ts';
import { LiveRetryBudget } from './live-retry-budget.ts';

const early: LiveRetryBudget[] = [];
/** Asked for by name before there was one; each refuses nothing until the one of its name is there. */
const awaited = new Map<string, LiveRetryBudget>();
const REFUSES_NOTHING: RetryBudgetOptions = {
  model: 'token_bucket',
  ratio: 1,
  reservePerSecond: MAX_COST,
  ttlMs: 1_000,
};

/** Kept for the recorder that is started later. */
export function addEarly(budget: LiveRetryBudget): void {
  early.push(budget);
  awaited.get(budget.name)?.standInFor(budget);
}

export function earlyBudget(name: string): LiveRetryBudget | undefined {
  return early.find((budget) => budget.name === name);
}

/** Those made until now, once: for the recorder that starts. */
export function takeEarly(): LiveRetryBudget[] {
  return early.splice(0);
}

/** The budget of this name that the configuration file, or somebody else's code, is going to bring. */
export function awaitedBudget(name: string): LiveRetryBudget {
  const known = awaited.get(name);
  if (known !== undefined) return known;
  const budget = new LiveRetryBudget(name, [], REFUSES_NOTHING);
  awaited.set(name, budget);
  return budget;
}

/** What `awaitedBudget` has given out under this name. */
export function awaitedOf(name: string): LiveRetryBudget | undefined {
  return awaited.get(name);
}
