/**
 * What runs in this process, once: the recorder, the adapters and where the metrics go. `register` and the
 * instrumentation class both come here, so that using both counts nothing twice.
 */
import { performance } from 'node:perf_hooks';
import type { MeterProvider } from '@opentelemetry/api';
import type { InstrumentationNodeModuleDefinition } from '@opentelemetry/instrumentation';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { Carriage } from '../../src/carriage.ts';
import type { Clock } from '../../src/clock.ts';
import { Recorder } from '../../src/recorder.ts';
import type { Config } from '../../src/telemetry/config.ts';
import { attachMeter } from '../../src/telemetry/meter-backend.ts';
import { VERSION } from '../../src/version.ts';
import { type Adapter, Hooks, type Undo } from '../adapter.ts';
import { loopIdleMs, loopWaitMs, watchLoop } from './loop-clock.ts';
import { watchSaturation } from './saturation.ts';

const KEY = Symbol.for('otel-time-budget.runtime.1');
type Holder = { [KEY]?: Runtime };
// The symbol is ours alone. Another copy of the package may have put its own runtime there, of this shape.
const holder = globalThis as Holder;

const CLOCK: Clock = { now: () => performance.now(), waitMs: loopWaitMs, idleMs: loopIdleMs };

/** The runtime of this process, of whichever copy of the package. */
export function activeRuntime(): Runtime | undefined {
  return holder[KEY];
}

export class Runtime {
  readonly hooks: Hooks;
  readonly #adapters: readonly Adapter[];
  readonly #undos: Undo[] = [];
  #areModulesTaken = false;
  #exportsItself = false;
  #meterProvider: MeterProvider | undefined;
  #detach: Undo | undefined;

  /** `serviceName` is what peers see as their caller. Starts nothing. */
  constructor(config: Config, serviceName: string, adapters: readonly Adapter[]) {
    this.hooks = new Hooks(new Recorder(config, CLOCK), new Carriage(config, serviceName));
    this.#adapters = adapters;
  }

  get isRunning(): boolean {
    return holder[KEY] === this;
  }

  /** Starts listening. Nothing happens where it runs already, or another one does. An adapter that fails is left out. */
  start(): void {
    if (holder[KEY] !== undefined || !activateRecorder(this.hooks.recorder)) return;
    holder[KEY] = this;
    const starts = [
      () => watchLoop(this.hooks),
      () => watchSaturation(this.hooks),
      ...this.#adapters.map((adapter) => () => adapter.start(this.hooks)),
    ];
    for (const start of starts) {
      const undo = this.hooks.attempt(start);
      if (undo !== undefined) this.#undos.push(undo);
    }
  }

  stop(): void {
    if (!this.isRunning) return;
    for (const undo of this.#undos.splice(0).reverse()) this.hooks.attempt(undo);
    this.#useNoMeter();
    deactivateRecorder(this.hooks.recorder);
    delete holder[KEY];
  }

  /** The modules to wrap: given out once, so that they are wrapped once. */
  takeModules(): InstrumentationNodeModuleDefinition[] {
    if (this.#areModulesTaken) return [];
    this.#areModulesTaken = true;
    const { hooks } = this;
    const modules = this.#adapters.flatMap((adapter) => hooks.attempt(() => adapter.modules?.(hooks)) ?? []);
    // What it throws would come out of the service's `require`.
    for (const module of modules) {
      const { patch } = module;
      module.patch = (exports, version) => hooks.attempt(() => patch?.(exports, version)) ?? exports;
    }
    return modules;
  }

  /** The cells are read where they lie, by an exporter of ours: no meter is told of them any more. */
  exportItself(): void {
    this.#exportsItself = true;
    this.#useNoMeter();
  }

  /** Hands the cells over to a meter provider, with all that was counted before. One that does nothing is passed over. */
  useMeterProvider(provider: MeterProvider): void {
    if (this.#exportsItself || provider === this.#meterProvider || isNoop(provider)) return;
    this.#useNoMeter();
    const { hooks } = this;
    this.#meterProvider = provider;
    this.#detach = hooks.attempt(() =>
      attachMeter(hooks.recorder.families, provider, VERSION, (error) => hooks.report(error)),
    );
  }

  #useNoMeter(): void {
    if (this.#detach !== undefined) this.hooks.attempt(this.#detach);
    this.#detach = undefined;
    this.#meterProvider = undefined;
  }
}

/** By its name: each copy of the API has a class of its own. One that is taken for a real one does no harm. */
function isNoop(provider: MeterProvider): boolean {
  return provider.constructor?.name === 'NoopMeterProvider';
}
