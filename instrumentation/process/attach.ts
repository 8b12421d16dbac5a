/** Starts everything in this process, in the order that matters. */
import { type Config, environment } from '../../src/telemetry/config.ts';
import type { SdkChoice } from '../../src/telemetry/config-env.ts';
import { serviceName } from '../../src/telemetry/service-name.ts';
import { TimeBudgetInstrumentation } from '../index.ts';
import { LIBRARIES } from '../libraries.ts';
import { chooseSdk } from '../sdk/choice.ts';
import { hookModules } from './module-hook.ts';
import { packageName } from './package-name.ts';
import { Runtime } from './runtime.ts';

/** Does nothing where it runs already, started by another flag or another copy of the package. */
export async function attach(config: Config, choice: SdkChoice): Promise<void> {
  const env = environment();
  const service = serviceName(env, packageName());
  const runtime = new Runtime(config, service ?? '', LIBRARIES);
  // Before the instrumentations of OpenTelemetry: of two listeners of a channel, ours comes first.
  runtime.start();
  if (!runtime.isRunning) return;
  const traced = await chooseSdk(runtime, env, choice, service);
  // After them: of two wrappers of a function, ours is the outer one.
  const own = new TimeBudgetInstrumentation();
  await hookModules([...traced, ...own.getModuleDefinitions().map(({ name }) => name)]);
}
