/** A quota of the service's own, as the gate asks it. */
import type { AdmissionOptions } from './options.ts';

/**
 * Milliseconds until there is room again; undefined within the quota. One that throws or tells no number, such as an
 * async one of plain JavaScript, refuses nobody: `onFault` hears of it.
 */
export function readOverQuota(
  overQuotaMs: AdmissionOptions['overQuotaMs'],
  onFault: () => void,
): number | undefined {
  let overMs: unknown;
  try {
    overMs = overQuotaMs?.();
  } catch {
    overMs = Number.NaN;
  }
  if (overMs === undefined) return undefined;
  if (typeof overMs === 'number' && !Number.isNaN(overMs)) return overMs;
  // Its rejection would be nobody's.
  if (overMs instanceof Promise) overMs.catch(() => {});
  onFault();
  return undefined;
}
