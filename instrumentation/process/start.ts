/** What `register` does once Node is known to be new enough: finds out whether to start. */
import { isMainThread } from 'node:worker_threads';
import { type Config, environment, loadProcessConfig } from '../../src/telemetry/config.ts';
import { readSdk } from '../../src/telemetry/config-env.ts';
import { complain } from './complain.ts';

/** Starts the product in this process, unless it is switched off, not allowed, or not meant for it. */
export async function start(): Promise<void> {
  // A worker inherits the flag. Its calls belong to no request, and a second exporter would want the same port.
  if (!isMainThread || isPackageManager(process.argv[1])) return;
  const result = loadProcessConfig();
  if (result.ok && result.config.disabled) return;
  const choice = readSdk(environment());
  if (!result.ok || 'problem' in choice) {
    for (const problem of result.ok ? [] : result.problems) complain(problem);
    if ('problem' in choice) complain(choice.problem);
    complain('not started; the service runs without it');
    return;
  }
  if (enforces(result.config)) {
    complain(
      'mode enforce: so far the retry guard and admission gates refuse; other requests and calls are recorded, and not refused or stopped',
    );
  }
  // Only now: all that is needed to run takes ten times as long to load.
  const { attach } = await import('./attach.ts');
  await attach(result.config, choice.sdk);
}

/** Somebody counts on more than there is: that must not go unsaid. */
function enforces({ entry, calls, dependencies }: Config): boolean {
  return [entry, calls, ...Object.values(dependencies)].some(({ mode }) => mode === 'enforce');
}

const PACKAGE_MANAGER = /[/\\](npm|npx|yarn|pnpm|pnpx|corepack)(-cli)?(\.[cm]?js)?$/;

/** With the flag in `NODE_OPTIONS`, `npm start` has it too, and would take the port of the service's page. */
export function isPackageManager(script: string | undefined): boolean {
  return script !== undefined && PACKAGE_MANAGER.test(script);
}
