/** What `register` does once Node is known to be new enough. */
import process from 'node:process';
import { isMainThread } from 'node:worker_threads';
import { environment, loadProcessConfig } from '../src/telemetry/config.ts';
import { readSdk } from '../src/telemetry/config-env.ts';
import { serviceName } from '../src/telemetry/service-name.ts';
import { complain } from './complain.ts';
import { TimeBudgetInstrumentation } from './index.ts';
import { LIBRARIES } from './libraries.ts';
import { hookModules } from './module-hook.ts';
import { packageName } from './package-name.ts';
import { Runtime } from './runtime.ts';
import { chooseSdk } from './sdk/choice.ts';

/** Starts the product in this process, unless it is switched off, not allowed, or runs already. */
export async function start(): Promise<void> {
  // A worker inherits the flag. Its calls belong to no request, and a second exporter would want the same port.
  if (!isMainThread || isPackageManager(process.argv[1])) return;
  const env = environment();
  const result = loadProcessConfig();
  const sdk = readSdk(env);
  if (result.ok && result.config.disabled) return;
  const problems = [...('problem' in sdk ? [sdk.problem] : []), ...(result.ok ? [] : result.problems)];
  if (!result.ok || 'problem' in sdk) {
    for (const problem of problems) complain(problem);
    complain('not started; the service runs without it');
    return;
  }
  const service = serviceName(env, packageName());
  const runtime = new Runtime(result.config, service ?? '', LIBRARIES);
  runtime.start();
  if (!runtime.isRunning) return;
  const traced = await chooseSdk(runtime, env, sdk.sdk, service);
  // After the instrumentations of OpenTelemetry, so that ours wrap what is wrapped already.
  const own = new TimeBudgetInstrumentation();
  await hookModules([...traced, ...own.getModuleDefinitions().map(({ name }) => name)]);
}

const PACKAGE_MANAGER = /[/\\](npm|npx|yarn|pnpm|pnpx|corepack)(-cli)?(\.[cm]?js)?$/;

/** With the flag in `NODE_OPTIONS`, `npm start` has it too, and would take the port of the service's page. */
export function isPackageManager(script: string | undefined): boolean {
  return script !== undefined && PACKAGE_MANAGER.test(script);
}
