import {
  defaultResource,
  detectResources,
  envDetector,
  hostDetector,
  osDetector,
  processDetector,
  type Resource,
  type ResourceDetector,
  resourceFromAttributes,
  serviceInstanceIdDetector,
} from '@opentelemetry/resources';
import type { Environment } from '../../src/telemetry/config-env.ts';
import { givenServiceName } from '../../src/telemetry/service-name.ts';

/** By the names of `OTEL_NODE_RESOURCE_DETECTORS`. */
const DETECTORS: Readonly<Record<string, ResourceDetector>> = {
  serviceinstance: serviceInstanceIdDetector,
  process: processDetector,
  host: hostDetector,
  os: osDetector,
  env: envDetector,
};
/** Unlike NodeSDK's, without the command line, the paths and the user: the page for Prometheus is open to read. */
const DEFAULT_DETECTORS = ['serviceinstance', 'host', 'env'];

/** One resource for traces and metrics: both must name the same instance. */
export function sdkResource(env: Environment, service: string | undefined): Resource {
  const resource = defaultResource().merge(detectResources({ detectors: detectors(env) }));
  if (service === undefined || givenServiceName(env) !== undefined) return resource;
  return resource.merge(resourceFromAttributes({ 'service.name': service }));
}

function detectors({ OTEL_NODE_RESOURCE_DETECTORS: text }: Environment): ResourceDetector[] {
  const given = (text ?? '').split(',').flatMap((name) => name.trim() || []);
  if (given.includes('none')) return [];
  const names = given.length === 0 ? DEFAULT_DETECTORS : given;
  return Object.entries(DETECTORS).flatMap(([name, detector]) =>
    names.includes('all') || names.includes(name) ? [detector] : [],
  );
}
