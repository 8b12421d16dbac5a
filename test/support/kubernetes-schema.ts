/** The published schemas of what deploy/kubernetes holds: see test/deploy/schemas/ORIGIN.md. */
import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';

const FOLDER = new URL('../deploy/schemas/', import.meta.url);
const CORE = 'io.k8s.api.core.v1';

/** By `apiVersion kind`; nothing else may be in our files. */
const KINDS: Readonly<Record<string, string>> = {
  'v1 ConfigMap': `kubernetes.json#/$defs/${CORE}.ConfigMap`,
  'v1 Service': `kubernetes.json#/$defs/${CORE}.Service`,
  'apps/v1 DaemonSet': 'kubernetes.json#/$defs/io.k8s.api.apps.v1.DaemonSet',
  'apps/v1 Deployment': 'kubernetes.json#/$defs/io.k8s.api.apps.v1.Deployment',
  'apps/v1 StatefulSet': 'kubernetes.json#/$defs/io.k8s.api.apps.v1.StatefulSet',
  'monitoring.coreos.com/v1 PodMonitor': 'prometheus-operator.json#/$defs/PodMonitor',
  'monitoring.coreos.com/v1 ServiceMonitor': 'prometheus-operator.json#/$defs/ServiceMonitor',
  'monitoring.coreos.com/v1 PrometheusRule': 'prometheus-operator.json#/$defs/PrometheusRule',
  'opentelemetry.io/v1alpha1 Instrumentation': 'operators.json#/$defs/Instrumentation',
  'grafana.integreatly.org/v1beta1 GrafanaDashboard': 'operators.json#/$defs/GrafanaDashboard',
};

// Not strict: the schemas have keywords of Kubernetes and types that allow null.
const ajv = new Ajv({ strict: false, allErrors: true, validateFormats: false });
for (const name of ['kubernetes.json', 'prometheus-operator.json', 'operators.json']) {
  // Our own files, which are schemas.
  ajv.addSchema(JSON.parse(readFileSync(new URL(name, FOLDER), 'utf8')) as object);
}

/** What is wrong with an object that is to be applied; nothing if it is right. */
export function schemaErrors(object: { readonly apiVersion: string; readonly kind: string }): string[] {
  const reference = KINDS[`${object.apiVersion} ${object.kind}`];
  if (reference === undefined) return [`no schema for ${object.apiVersion} ${object.kind}`];
  const validate: ValidateFunction | undefined = ajv.getSchema(reference);
  if (validate === undefined) throw new Error(`no ${reference}`);
  if (validate(object) === true) return [];
  return (validate.errors ?? []).map(({ instancePath, message, params }) =>
    `${instancePath} ${message ?? ''} ${JSON.stringify(params)}`.trim(),
  );
}
