/** Programs that are not Node and not ours: those that scripts/real-parts.sh brings, else those on the PATH. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const TOOLS = fileURLToPath(new URL('../.tools/bin', import.meta.url));

/** What to run for a program of this name; undefined where there is none that works. */
export function programPath(name: string, tools: string = TOOLS): string | undefined {
  const built = join(tools, name);
  const path = existsSync(built) ? built : name;
  return spawnSync(path, ['--version']).status === 0 ? path : undefined;
}

/** `3.16.0`, as the program says it. */
export function programVersion(path: string): string | undefined {
  // Older versions of Prometheus print it on stderr.
  const { stdout, stderr } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  return /version v?(\d+(\.\d+)*)/.exec(stdout + stderr)?.[1];
}
