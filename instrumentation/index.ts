/** The instrumentation for a list of one's own: `new NodeSDK({ instrumentations: [new TimeBudgetInstrumentation()] })`. */
import type { MeterProvider } from '@opentelemetry/api';
import {
  InstrumentationBase,
  type InstrumentationConfig,
  type InstrumentationNodeModuleDefinition,
} from '@opentelemetry/instrumentation';
import { type ConfigOptions, environment, loadProcessConfig } from '../src/telemetry/config.ts';
import { SCOPE_NAME } from '../src/telemetry/names.ts';
import { serviceName } from '../src/telemetry/service-name.ts';
import { VERSION } from '../src/version.ts';
import { LIBRARIES } from './libraries.ts';
import { complain, messageOf } from './process/complain.ts';
import { packageName } from './process/package-name.ts';
import { activeRuntime, Runtime } from './process/runtime.ts';

export type { ConfigOptions } from '../src/telemetry/config.ts';

/** The modules travel in the configuration: the base class asks for them before this one has any state. */
interface Config extends InstrumentationConfig {
  modules?: InstrumentationNodeModuleDefinition[];
}

/**
 * Records the time budgets of this process. The settings of the environment and of the configuration file win
 * over the options. A second one, beside `register` or another, records nothing of its own: it only hands over
 * its meter provider. Settings that are not allowed are said on stderr, and the service runs without us.
 */
export class TimeBudgetInstrumentation extends InstrumentationBase<Config> {
  /** Undefined where it is switched off or not allowed. */
  readonly #runtime: Runtime | undefined;
  readonly #isOwner: boolean;

  constructor(options: ConfigOptions = {}) {
    const active = activeRuntime();
    const runtime = active ?? createRuntime(options);
    // Not enabled by the base class, whose constructor would do so before the fields are there.
    super(SCOPE_NAME, VERSION, { enabled: false, modules: runtime?.takeModules() ?? [] });
    this.#runtime = runtime;
    this.#isOwner = active === undefined;
    this.enable();
  }

  protected override init(): InstrumentationNodeModuleDefinition[] {
    return this.getConfig().modules ?? [];
  }

  override enable(): void {
    super.enable();
    if (this.#isOwner) this.#runtime?.start();
  }

  override disable(): void {
    super.disable();
    if (this.#isOwner) this.#runtime?.stop();
  }

  override setMeterProvider(provider: MeterProvider): void {
    super.setMeterProvider(provider);
    this.#runtime?.useMeterProvider(provider);
  }
}

function createRuntime(options: ConfigOptions): Runtime | undefined {
  try {
    const result = loadProcessConfig(options);
    if (!result.ok) {
      for (const problem of result.problems) complain(problem);
      complain('not started; the service runs without it');
      return undefined;
    }
    if (result.config.disabled) return undefined;
    return new Runtime(result.config, serviceName(environment(), packageName()) ?? '', LIBRARIES);
  } catch (error) {
    complain(`not started: ${messageOf(error)}; the service runs without it`);
    return undefined;
  }
}
