/** Longer texts are cut: it may be a request's. */
const LONGEST = 80;

/** What was given instead of what is allowed, for a message: never throws, as `String` does for some objects. */
export function textOf(value: unknown): string {
  try {
    return String(value).slice(0, LONGEST);
  } catch {
    return `a ${typeof value}`;
  }
}
