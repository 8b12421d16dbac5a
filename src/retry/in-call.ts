/** What the core refuses is named by its option; this says as well which call it was given to. */
export function inCall<T>(call: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (error instanceof RangeError) throw new RangeError(`${call}: ${error.message}`);
    throw error;
  }
}
