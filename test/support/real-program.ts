/** Programs that scripts/real-parts.sh brings, or that somebody has installed. */
import { programPath, programVersion } from '../../demo/program.ts';

/** The path of one, built for the tests or else on the PATH; undefined, and said so once, where there is none. */
export function findProgram(name: string): string | undefined {
  const path = programPath(name);
  if (path === undefined) console.warn(`SKIPPED: no ${name} here; scripts/real-parts.sh brings it`);
  return path;
}

/** The same of Prometheus, where it is version 3 or newer: an older one takes no OTLP. */
export function findPrometheus3(): string | undefined {
  const path = findProgram('prometheus');
  if (path === undefined) return undefined;
  const version = programVersion(path) ?? 'of an unknown version';
  if (Number.parseInt(version, 10) >= 3) return path;
  console.warn(`SKIPPED: Prometheus ${version} takes no OTLP; scripts/real-parts.sh brings version 3`);
  return undefined;
}
