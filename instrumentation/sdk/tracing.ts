/** The part of the SDK that makes traces: NodeSDK with the standard variables, and the instrumentations. */
import type { IncomingMessage } from 'node:http';
import type { MeterProvider } from '@opentelemetry/api';
import type { Instrumentation } from '@opentelemetry/instrumentation';
import { ExpressInstrumentation } from '@opentelemetry/instrumentation-express';
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http';
import { PgInstrumentation } from '@opentelemetry/instrumentation-pg';
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici';
import type { Resource } from '@opentelemetry/resources';
import { NodeSDK, startNodeSdk } from '@opentelemetry/sdk-node';
import type { Environment } from '../../src/telemetry/config-env.ts';
import { isOwnServer } from '../process/own-traffic.ts';

/** What the base class of them all offers, their configurations left aside. */
type Wrapping = Instrumentation & { getModuleDefinitions(): readonly { readonly name: string }[] };

export class Tracing {
  /** Wrapping from here on; without a provider, their spans are nothing. */
  readonly #instrumentations: readonly Wrapping[] = [
    new HttpInstrumentation({ ignoreIncomingRequestHook: isScrape }),
    new ExpressInstrumentation(),
    new UndiciInstrumentation(),
    new PgInstrumentation(),
  ];

  get moduleNames(): readonly string[] {
    return this.#instrumentations.flatMap((each) => each.getModuleDefinitions().map(({ name }) => name));
  }

  /** Before the wraps of others come on top: taking ours off then would take theirs off. */
  disable(): void {
    for (const each of this.#instrumentations) each.disable();
  }

  start(resource: Resource, env: Environment): void {
    const instrumentations = [...this.#instrumentations];
    // Again, where another SDK was loaded that registered nothing.
    for (const each of instrumentations) each.enable();
    const hasFile = (env.OTEL_CONFIG_FILE ?? '').trim() !== '';
    // The file says itself what the resource is and where the metrics go.
    if (hasFile) startNodeSdk({ instrumentations });
    else new NodeSDK({ instrumentations, resource, autoDetectResources: false, metricReaders: [] }).start();
  }

  useMeterProvider(provider: MeterProvider): void {
    for (const each of this.#instrumentations) each.setMeterProvider(provider);
  }
}

function isScrape({ socket }: IncomingMessage): boolean {
  // Node's own link from an accepted socket to its server.
  const { server } = socket as { readonly server?: object };
  return server !== undefined && isOwnServer(server);
}
