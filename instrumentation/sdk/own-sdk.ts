/** An SDK of ours, for a service that has none. Prepared before the service is loaded, started when it is sure. */
import { DiagConsoleLogger, DiagLogLevel, diag, metrics } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import type { Environment } from '../../src/telemetry/config-env.ts';
import { registeredMeterProvider, registeredTracerProvider } from '../../src/telemetry/otel-globals.ts';
import type { Undo } from '../adapter.ts';
import { runAsOwnTraffic } from '../process/own-traffic.ts';
import type { Runtime } from '../process/runtime.ts';
import type { SdkSettings } from './environment.ts';
import { exportAtExit } from './last-export.ts';
import { createMetricExport, type MetricExport } from './metric-export.ts';
import { sdkResource } from './resource.ts';
import type { Tracing } from './tracing.ts';

export class OwnSdk {
  readonly #runtime: Runtime;
  readonly #env: Environment;
  readonly #service: string | undefined;
  readonly #tracing: Tracing | undefined;
  readonly #export: MetricExport;
  readonly #undoExit: Undo;

  /** Loads what the settings ask for. With traces, libraries are wrapped from here on, recording nothing yet. */
  static async prepare(
    runtime: Runtime,
    env: Environment,
    settings: SdkSettings,
    service: string | undefined,
  ): Promise<OwnSdk> {
    // The SDK for traces takes several times as long to load as all the rest.
    const tracing = settings.traces ? new (await import('./tracing.ts')).Tracing() : undefined;
    const metricExport = await createMetricExport(settings, runtime.hooks.recorder.families);
    return new OwnSdk(runtime, env, settings, service, tracing, metricExport);
  }

  private constructor(
    runtime: Runtime,
    env: Environment,
    settings: SdkSettings,
    service: string | undefined,
    tracing: Tracing | undefined,
    metricExport: MetricExport,
  ) {
    this.#runtime = runtime;
    this.#env = env;
    this.#service = service;
    this.#tracing = tracing;
    this.#export = metricExport;
    const { otlp } = metricExport;
    const resourceAttributes = () => sdkResource(env, service).attributes;
    this.#undoExit =
      otlp === undefined
        ? () => {}
        : exportAtExit({ otlp, protocol: settings.protocol, resourceAttributes }, (work) =>
            runtime.hooks.guard(work),
          );
  }

  /** Packages that an ES module may import and that are wrapped for traces. */
  get moduleNames(): readonly string[] {
    return this.#tracing?.moduleNames ?? [];
  }

  /** Another SDK is being loaded: what it wraps must not be wrapped by us too. Metrics may still be needed. */
  giveWay(): void {
    this.#tracing?.disable();
  }

  /** Another SDK exports the metrics: nothing of ours is needed, not even at the end of the process. */
  standBack(): void {
    this.#undoExit();
    this.#tracing?.disable();
  }

  /** Starts what nobody else has. A meter provider that is there is used; beside any provider, no traces are ours. */
  start(): void {
    runAsOwnTraffic(() => this.#start());
  }

  #start(): void {
    const resource = sdkResource(this.#env, this.#service);
    const isAlone = registeredTracerProvider() === undefined && registeredMeterProvider() === undefined;
    if (isAlone) this.#tracing?.start(resource, this.#env);
    else this.#tracing?.disable();
    // Of another SDK, or of a file of declarative configuration.
    const provider = registeredMeterProvider();
    if (provider === undefined) {
      this.#exportMetrics(resource, isAlone);
      return;
    }
    this.#undoExit();
    this.#runtime.useMeterProvider(provider);
  }

  #exportMetrics(resource: Resource, isAlone: boolean): void {
    this.#runtime.exportItself();
    if (this.#export.readers.length === 0) return;
    const provider = new MeterProvider({ resource, readers: [...this.#export.readers] });
    // Beside another SDK it stays ours alone, so that a meter provider of that SDK can still be registered.
    if (isAlone) {
      this.#showFaults();
      metrics.setGlobalMeterProvider(provider);
    }
    this.#tracing?.useMeterProvider(provider);
    this.#export.listen();
  }

  /** By `OTEL_LOG_LEVEL`, as NodeSDK does; without it, a collector that is gone fills no log. */
  #showFaults(): void {
    const name = this.#env.OTEL_LOG_LEVEL?.trim().toUpperCase() ?? '';
    const level = Object.entries(DiagLogLevel).find(([each]) => each === name)?.[1];
    if (typeof level !== 'number' || this.#tracing !== undefined) return;
    diag.setLogger(new DiagConsoleLogger(), { logLevel: level });
  }
}
