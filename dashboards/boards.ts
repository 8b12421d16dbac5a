/** All dashboards, in the order of the questions that somebody on call asks. */
import type { Board } from './board.ts';
import { BUDGET_PATH } from './boards/budget-path.ts';
import { CANCELLATION_AND_WASTE } from './boards/cancellation-and-waste.ts';
import { DEPENDENCIES_AND_CALLERS } from './boards/dependencies-and-callers.ts';
import { OVERVIEW } from './boards/overview.ts';
import { QUEUES_AND_RECOVERY } from './boards/queues-and-recovery.ts';
import { RETRIES } from './boards/retries.ts';

export const BOARDS: readonly Board[] = [
  OVERVIEW,
  BUDGET_PATH,
  DEPENDENCIES_AND_CALLERS,
  RETRIES,
  CANCELLATION_AND_WASTE,
  QUEUES_AND_RECOVERY,
];
