/** The words for a duration, the same for the environment, the file and given options. */

const PERCENT = /^\s*[0-9.]+\s*%\s*$/;
const UNIT = /^\s*[0-9.]+\s*[A-Za-zµ]+\s*$/;

/**
 * `above zero`: where 0 could be read both as "none" and as "no time at all", it is refused, and none is said
 * by leaving the key out.
 */
export type ZeroRule = 'zero' | 'above zero';

/** `MAX_MS` in words. */
export function msRange(zero: ZeroRule): string {
  return zero === 'zero' ? 'from 0 to 2^53' : 'above 0 and up to 2^53 (leave it out for none)';
}

/** What to say about this value: percentages (requirement B-12) and units get their own reason. */
export function msAllowed(value: unknown, allowed: string): string {
  if (typeof value !== 'string') return allowed;
  if (PERCENT.test(value)) {
    return `${allowed}; a percentage is refused because its size changes with what each caller sends`;
  }
  return UNIT.test(value) ? `${allowed}, without a unit` : allowed;
}
