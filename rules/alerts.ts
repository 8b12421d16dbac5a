/** All alerts, in the order of their names. */
import { burnAlerts } from './alerts-burn.ts';
import { contractAlerts } from './alerts-contract.ts';
import { loadAlerts } from './alerts-load.ts';
import { retryAlerts } from './alerts-retries.ts';
import { saturationAlerts } from './alerts-saturation.ts';
import { timeAlerts } from './alerts-time.ts';
import { wasteAlerts } from './alerts-waste.ts';
import type { Alert } from './rule.ts';
import type { Vocabulary } from './vocabulary.ts';

/** They read the records, so they stand behind them in the same group. */
export function alerts(words: Vocabulary): readonly Alert[] {
  return [
    ...burnAlerts(words),
    ...retryAlerts(words),
    ...wasteAlerts(words),
    ...timeAlerts(words),
    ...saturationAlerts(words),
    ...loadAlerts(words),
    ...contractAlerts(words),
  ];
}
