/** Every alert, in the order of the file and of docs/runbooks.md. Public: a rename breaks silences and routes. */
export const ALERT_NAMES = [
  'TimeBudgetBurn',
  'RetryBudgetExhausted',
  'RetryBudgetDraining',
  'RetryBudgetLowSuccess',
  'RetryBudgetWithoutEffect',
  'RetryAmplification',
  'WastedExecution',
  'PostCancelWork',
  'LocalSpendDominates',
  'DependencySlow',
  'CallerBudgetUnrealistic',
  'ConnectionPoolSaturated',
  'CallsWithoutDeadline',
  'BudgetContractViolation',
  'TimeBudgetTelemetryMissing',
  'TimeBudgetLabelOverflow',
  'TimeBudgetInternalErrors',
] as const;
export type AlertName = (typeof ALERT_NAMES)[number];
