/** The stories the demo plays: what the caller asks for, and what the services are told to do wrong. */

interface Neighbours {
  /** Requests sent straight to orders, beside the caller's. */
  readonly path: string;
  readonly count: number;
}

export interface Scenario {
  readonly name: string;
  readonly title: string;
  /** Whose turn it is when a page rings for this, in one sentence. */
  readonly lesson: string;
  /** What the caller asks the services for, as their query string. */
  readonly query: string;
  /** The caller's budget; it gives up when that is over. */
  readonly budgetMs: number;
  /** The caller leaves earlier than its budget says. */
  readonly leavesAfterMs?: number;
  readonly neighbours?: Neighbours;
}

/** Requests of the healthy scenario, from which the services learn what is usual (20 are the least). */
export const BASELINE_REQUESTS = 80;
/** What callers give where nothing is wrong. */
export const USUAL_BUDGET_MS = 1500;

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'healthy',
    title: 'healthy: plenty of time, nothing wrong',
    lesson: 'Nobody is paged. From here the services know what is usual.',
    query: '',
    budgetMs: USUAL_BUDGET_MS,
  },
  {
    name: 'slow-dependency',
    title: 'slow dependency: inventory takes 1000 ms longer than usual',
    lesson: 'Both hops above point at the dependency they waited for: follow them down to inventory.',
    query: 'inventory_ms=1000',
    budgetMs: 600,
  },
  {
    name: 'unrealistic-budget',
    title: 'unrealistic budget: the caller gives less time than the operation usually takes',
    lesson: 'The services are as fast as ever: talk to the caller, wake nobody here.',
    query: '',
    budgetMs: 60,
  },
  {
    name: 'local-queue',
    title: 'local queue: 12 others hold every place that orders has',
    lesson: 'Orders spent the time before its handler began; its dependencies are innocent.',
    query: '',
    budgetMs: 600,
    neighbours: { path: '/reports/today?hold_ms=1000', count: 12 },
  },
  {
    name: 'pool-exhausted',
    title: 'pool exhausted: 6 open transactions hold every connection of orders',
    lesson: 'The database is not slow, orders never got to it: look at who holds connections.',
    query: '',
    budgetMs: 600,
    neighbours: { path: '/reports/today?transaction_ms=1000', count: 6 },
  },
  {
    name: 'slow-query',
    title: 'slow query: a statement takes 1000 ms longer than usual',
    lesson: 'Connection and network were there at once; the statement itself took the time.',
    query: 'query_ms=1000',
    budgetMs: 600,
  },
  {
    name: 'client-leaves',
    title: 'client leaves early: after 100 ms of the 2000 ms it gave',
    lesson: 'No expiry and no fault: the work below goes on for somebody who is gone.',
    query: 'inventory_ms=400',
    budgetMs: 2000,
    leavesAfterMs: 100,
  },
  {
    name: 'stalled-body',
    title: 'stalled body: inventory answers at once, then stops in the middle for 1000 ms',
    lesson:
      'The first byte was quick, so request timeouts and health checks see nothing: it is the response.',
    query: 'stall_ms=1000',
    budgetMs: 600,
  },
  {
    name: 'blocked-loop',
    title: 'blocked event loop: orders computes for 1000 ms while the answer of inventory lies there',
    lesson: 'Inventory answered in time; orders was too busy to read it.',
    query: 'compute_ms=1000',
    budgetMs: 600,
  },
  {
    name: 'fresh-timeout',
    title: 'fresh timeout: gateway gives orders 2000 ms though the caller gave 600',
    lesson: 'A violation: time was handed out that nobody had; repair gateway, then look at inventory.',
    query: 'fresh_timeout_ms=2000&inventory_ms=1000',
    budgetMs: 600,
  },
];

/** What the caller sends. */
export function pathOf(scenario: Scenario): string {
  return scenario.query === '' ? '/orders/42' : `/orders/42?${scenario.query}`;
}
