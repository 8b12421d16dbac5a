/** Durations as Prometheus writes them: `5m`, `1h30m`, `500ms`. Numbers here are milliseconds. */

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
] as const;

/** Largest first, each unit once, as Prometheus demands it. */
const FORM = /^(?:(\d{1,4})d)?(?:(\d{1,6})h)?(?:(\d{1,6})m(?!s))?(?:(\d{1,8})s)?(?:(\d{1,9})ms)?$/;

/** undefined for anything that is not a duration above 0. Weeks and years are not taken: nothing here is that long. */
export function parseDuration(text: string): number | undefined {
  const found = FORM.exec(text);
  if (found === null) return undefined;
  const ms = UNITS.reduce((sum, [, unitMs], i) => sum + Number(found[i + 1] ?? 0) * unitMs, 0);
  return ms > 0 ? ms : undefined;
}

/** In the largest unit that needs no fraction, so that a day is `1d` and 90 minutes are `90m`; at least `1ms`. */
export function formatDuration(ms: number): string {
  const whole = Math.max(1, Math.round(ms));
  for (const [unit, unitMs] of UNITS) {
    if (whole % unitMs === 0) return `${whole / unitMs}${unit}`;
  }
  return `${whole}ms`;
}
