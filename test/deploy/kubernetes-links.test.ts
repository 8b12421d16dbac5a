/** Names that one file of deploy/kubernetes uses and another gives: nothing else tells when they part. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { findProgram } from '../support/real-program.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/kubernetes/', import.meta.url));
const COLLECTOR = fileURLToPath(new URL('../../collector/', import.meta.url));
const OTELCOL = findProgram('otelcol');

type Labels = Readonly<Record<string, string>>;

interface Port {
  readonly name: string;
  readonly port?: number;
  readonly containerPort?: number;
}

interface Container {
  readonly name: string;
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string }[];
  readonly ports?: readonly Port[];
  readonly resources?: { readonly limits?: { readonly memory?: string } };
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string }[];
}

interface Pod {
  readonly initContainers?: readonly Container[];
  readonly containers: readonly Container[];
  readonly volumes?: readonly {
    readonly name: string;
    readonly configMap?: { readonly name: string };
  }[];
}

/** Of what the schemas allow, what is read here. */
interface Resource {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Labels };
  readonly data?: Labels;
  readonly spec: {
    readonly selector?: Labels & { readonly matchLabels?: Labels };
    readonly template?: { readonly metadata: { readonly labels: Labels }; readonly spec: Pod };
    readonly volumeClaimTemplates?: readonly { readonly metadata: { readonly name: string } }[];
    readonly ports?: readonly Port[];
    readonly podMetricsEndpoints?: readonly { readonly port: string }[];
    readonly endpoints?: readonly { readonly port: string }[];
  };
}

const resources = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.yaml'))
  .flatMap((file) => parseAllDocuments(readFileSync(join(FOLDER, file), 'utf8')))
  // kubernetes.test.ts holds them to their schemas.
  .map((document) => document.toJS() as Resource);

function ofKind(...kinds: readonly string[]): Resource[] {
  return resources.filter(({ kind }) => kinds.includes(kind));
}

function matches(wanted: Labels | undefined, labels: Labels | undefined): boolean {
  return Object.entries(wanted ?? {}).every(([key, value]) => labels?.[key] === value);
}

function workload(name: string): {
  readonly pod: Pod;
  readonly container: Container;
  readonly resource: Resource;
} {
  const resource = ofKind('Deployment', 'DaemonSet', 'StatefulSet').find(
    ({ metadata }) => metadata.name === name,
  );
  const pod = resource?.spec.template?.spec;
  const container = pod?.containers[0];
  if (resource === undefined || pod === undefined || container === undefined) throw new Error(`no ${name}`);
  return { pod, container, resource };
}

const WORKLOADS = ['orders', 'time-budget-agent', 'time-budget-gateway'];
const COLLECTORS = ['time-budget-agent', 'time-budget-gateway'];

describe('names that belong together', () => {
  it.each(WORKLOADS)('%s: selects its own pods, mounts what is there', (name) => {
    const { pod, resource } = workload(name);
    expect(matches(resource.spec.selector?.matchLabels, resource.spec.template?.metadata.labels)).toBe(true);
    const volumes = [
      ...(pod.volumes ?? []).map((volume) => volume.name),
      ...(resource.spec.volumeClaimTemplates ?? []).map(({ metadata }) => metadata.name),
    ];
    const mounted = [...(pod.initContainers ?? []), ...pod.containers].flatMap((container) =>
      (container.volumeMounts ?? []).map((mount) => mount.name),
    );
    expect(mounted.filter((volume) => !volumes.includes(volume))).toEqual([]);
    const maps = (pod.volumes ?? []).flatMap(({ configMap }) =>
      configMap === undefined ? [] : [configMap.name],
    );
    expect(maps.filter((map) => !ofKind('ConfigMap').some(({ metadata }) => metadata.name === map))).toEqual(
      [],
    );
  });

  it('each Service leads to ports of pods', () => {
    for (const service of ofKind('Service')) {
      const { container, resource } = workload(service.metadata.name);
      expect(matches(service.spec.selector, resource.spec.template?.metadata.labels)).toBe(true);
      const names = (container.ports ?? []).map((port) => port.name);
      expect((service.spec.ports ?? []).filter((port) => !names.includes(port.name))).toEqual([]);
    }
  });

  it('each ServiceMonitor finds one Service and its ports; the PodMonitor finds the example', () => {
    for (const monitor of ofKind('ServiceMonitor')) {
      const services = ofKind('Service').filter(({ metadata }) =>
        matches(monitor.spec.selector?.matchLabels, metadata.labels),
      );
      expect(services.map(({ metadata }) => metadata.name)).toEqual([monitor.metadata.name]);
      const names = (services[0]?.spec.ports ?? []).map((port) => port.name);
      expect((monitor.spec.endpoints ?? []).filter(({ port }) => !names.includes(port))).toEqual([]);
    }
    const [monitor] = ofKind('PodMonitor');
    const { container, resource } = workload('orders');
    expect(matches(monitor?.spec.selector?.matchLabels, resource.spec.template?.metadata.labels)).toBe(true);
    expect((container.ports ?? []).map((port) => port.name)).toContain(
      monitor?.spec.podMetricsEndpoints?.[0]?.port,
    );
  });

  it('each address of the collectors is a Service with that port', () => {
    const text = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.yaml') && !file.startsWith('dashboards'))
      .map((file) => readFileSync(join(FOLDER, file), 'utf8'))
      .join('\n');
    const addresses = [...text.matchAll(/(time-budget-[a-z]+)\.([a-z]+):(\d+)/g)];
    expect(addresses.length).toBeGreaterThan(2);
    for (const [, name, namespace, port] of addresses) {
      const service = ofKind('Service').find(({ metadata }) => metadata.name === name);
      expect(service?.metadata.namespace).toBe(namespace);
      expect((service?.spec.ports ?? []).map((one) => one.port)).toContain(Number(port));
    }
  });
});

describe.each(COLLECTORS)('%s', (name) => {
  const { container } = workload(name);
  const map = ofKind('ConfigMap').find(({ metadata }) => metadata.name === name);
  const files = (container.args ?? []).map((arg) => arg.replace(/^--config=\/etc\/otelcol\//, ''));

  it('is given the files of its ConfigMap, which are those of collector/', () => {
    expect(files).toEqual(Object.keys(map?.data ?? {}));
    for (const [file, text] of Object.entries(map?.data ?? {})) {
      expect(text === readFileSync(join(COLLECTOR, file), 'utf8'), `${file}: run npm run docs`).toBe(true);
    }
  });

  it('refuses before it is killed: its own limit lies below that of the container', () => {
    const own = Number((container.env ?? []).find((variable) => variable.name === 'MEMORY_MIB')?.value);
    const limit = Number(/^(\d+)Mi$/.exec(container.resources?.limits?.memory ?? '')?.[1]);
    expect(own).toBeLessThanOrEqual(limit * 0.8);
  });

  it.skipIf(OTELCOL === undefined)(
    'the Collector takes the configuration, with the variables of the pod',
    () => {
      const folder = mkdtempSync(join(tmpdir(), 'time-budget-collector-'));
      try {
        const args = files.map((file) => {
          writeFileSync(join(folder, file), map?.data?.[file] ?? '');
          return `--config=${join(folder, file)}`;
        });
        const variables = Object.fromEntries((container.env ?? []).map((one) => [one.name, one.value]));
        const { status, stderr } = spawnSync(OTELCOL ?? '', ['validate', ...args], {
          env: { ...variables, STORAGE: join(folder, 'storage') },
          encoding: 'utf8',
        });
        expect(status, stderr).toBe(0);
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );
});
