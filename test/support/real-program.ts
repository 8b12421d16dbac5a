/** Programs that scripts/real-parts.sh brings, or that somebody has installed. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** The path of one, built for the tests or else on the PATH; undefined, and said so once, where there is none. */
export function findProgram(name: string): string | undefined {
  const built = fileURLToPath(new URL(`../../.tools/bin/${name}`, import.meta.url));
  const path = existsSync(built) ? built : name;
  if (spawnSync(path, ['--version']).status === 0) return path;
  console.warn(`SKIPPED: no ${name} here; scripts/real-parts.sh brings it`);
  return undefined;
}

/** The same of Prometheus, where it is version 3 or newer: an older one takes no OTLP. */
export function findPrometheus3(): string | undefined {
  const path = findProgram('prometheus');
  if (path === undefined) return undefined;
  // Older ones print it on stderr.
  const { stdout, stderr } = spawnSync(path, ['--version'], { encoding: 'utf8' });
  const version = /version (\d+)\S*/.exec(stdout + stderr);
  if (Number(version?.[1]) >= 3) return path;
  console.warn(`SKIPPED: Prometheus ${version?.[0]} takes no OTLP; scripts/real-parts.sh brings version 3`);
  return undefined;
}
