/**
 * Whether an SDK of ours is started. A provider can be registered once in a process, so ours must not come before
 * that of the service, wherever that is started: by another flag, or by the service itself. docs/attach.md has
 * the rule.
 */
import { dirname } from 'node:path';
import type { Environment, SdkChoice } from '../../src/telemetry/config-env.ts';
import { registeredMeterProvider, registeredTracerProvider } from '../../src/telemetry/otel-globals.ts';
import type { Undo } from '../adapter.ts';
import { complain, messageOf } from '../process/complain.ts';
import type { Runtime } from '../process/runtime.ts';
import { readSdkSettings } from './environment.ts';
import { declaresSdk, watchForSdk } from './foreign-sdk.ts';
import type { OwnSdk } from './own-sdk.ts';

/** A server of the service listens now: its main script has been run. */
const CHANNEL_LISTENING = 'tracing:net.server.listen:asyncEnd';
const LOOK_EVERY_MS = 100;
/** A service that listens on nothing counts as started after this time. */
const STARTED_AFTER_MS = 5_000;
/** One that brings an SDK is given this time to start it. */
const PATIENCE_MS = 15_000;

/**
 * Decides at once where it can; else prepares, waits and decides later. Gives the names of the packages that are
 * wrapped for traces.
 */
export async function chooseSdk(
  runtime: Runtime,
  env: Environment,
  choice: SdkChoice,
  service: string | undefined,
): Promise<readonly string[]> {
  const settings = readSdkSettings(env);
  const provider = registeredMeterProvider();
  if (choice === 'off' || settings.disabled) {
    followMeterProvider(runtime, LOOK_EVERY_MS);
    return [];
  }
  if (provider !== undefined) {
    runtime.useMeterProvider(provider);
    return [];
  }
  for (const problem of settings.problems) complain(problem);
  // Half of what there is to load, and not needed beside another SDK.
  const prepare = async () => (await import('./own-sdk.ts')).OwnSdk.prepare(runtime, env, settings, service);
  if (choice === 'on') {
    const own = await prepare();
    own.start();
    return own.moduleNames;
  }
  const isExpected = declaresSdk(serviceFolders()) || registeredTracerProvider() !== undefined;
  const own = isExpected ? undefined : await prepare();
  new Decision(runtime, isExpected, own, prepare).wait();
  return own?.moduleNames ?? [];
}

/** Waits, at next to no cost, for a meter provider that may never come. The cells keep what is counted meanwhile. */
function followMeterProvider(runtime: Runtime, againMs: number): void {
  const provider = registeredMeterProvider();
  if (provider !== undefined) runtime.useMeterProvider(provider);
  else setTimeout(() => followMeterProvider(runtime, Math.min(2 * againMs, 60_000)), againMs).unref();
}

class Decision {
  readonly #runtime: Runtime;
  readonly #prepare: () => Promise<OwnSdk>;
  readonly #begunAt: number;
  readonly #undos: Undo[] = [];
  #own: OwnSdk | undefined;
  /** There are signs that the service brings an SDK. */
  #isExpected: boolean;
  #hasStarted = false;

  constructor(
    runtime: Runtime,
    isExpected: boolean,
    own: OwnSdk | undefined,
    prepare: () => Promise<OwnSdk>,
  ) {
    this.#runtime = runtime;
    this.#isExpected = isExpected;
    this.#own = own;
    this.#prepare = prepare;
    this.#begunAt = runtime.hooks.now();
  }

  wait(): void {
    const { hooks } = this.#runtime;
    const onSdk = hooks.guard(() => {
      this.#isExpected = true;
      this.#own?.giveWay();
    });
    const onListening = (): void => {
      this.#hasStarted = true;
      this.#look();
    };
    const timer = setInterval(
      hooks.guard(() => this.#look()),
      LOOK_EVERY_MS,
    ).unref();
    this.#undos.push(watchForSdk(onSdk), hooks.subscribe(CHANNEL_LISTENING, onListening), () =>
      clearInterval(timer),
    );
  }

  #look(): void {
    const provider = registeredMeterProvider();
    if (provider !== undefined) {
      this.#end();
      this.#own?.standBack();
      this.#runtime.useMeterProvider(provider);
      return;
    }
    const waitedMs = this.#runtime.hooks.now() - this.#begunAt;
    if (waitedMs >= STARTED_AFTER_MS) this.#hasStarted = true;
    const isSettled = this.#hasStarted && (!this.#isExpected || registeredTracerProvider() !== undefined);
    if (!isSettled && waitedMs < PATIENCE_MS) return;
    this.#end();
    if (this.#own !== undefined) {
      this.#own.start();
      return;
    }
    // The error of the start as well: unhandled, it would end the service.
    this.#prepare()
      .then((own) => own.start())
      .catch((error: unknown) => complain(`no metrics are exported: ${messageOf(error)}`));
  }

  #end(): void {
    for (const undo of this.#undos.splice(0)) undo();
  }
}

/** Where the service's package.json is looked for. */
function serviceFolders(): string[] {
  const script = process.argv[1];
  return script === undefined ? [process.cwd()] : [dirname(script), process.cwd()];
}
