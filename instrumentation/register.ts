/**
 * `node --import otel-time-budget/register app.js`. Whatever goes wrong here is said in one line on stderr, and
 * the service runs as if the flag were not there.
 */
import { nodeComplaint } from './process/node-version.ts';

const complaint = nodeComplaint(process.versions.node);
if (complaint === undefined) {
  try {
    // Only now: an older Node could not even read what is imported there.
    const { start } = await import('./process/start.ts');
    await start();
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    process.stderr.write(
      `otel-time-budget: not started: ${text.split('\n')[0]}; the service runs without it\n`,
    );
  }
} else {
  process.stderr.write(`otel-time-budget: ${complaint}\n`);
}
