/** Says something to whoever runs the service: one line on stderr, never an exception. */
export function complain(problem: string): void {
  try {
    process.stderr.write(`otel-time-budget: ${problem}\n`);
  } catch {
    // Nobody reads it.
  }
}

/** What was thrown, on one line. */
export function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return (text.split('\n')[0] ?? '').slice(0, 300);
}
