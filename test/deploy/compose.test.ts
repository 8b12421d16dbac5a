import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { loadConfig } from '../../src/telemetry/config.ts';
import { findProgram } from '../support/real-program.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const FILE = join(ROOT, 'docker-compose.yml');
const COMPOSE = findProgram('compose-check');
const PROMTOOL = findProgram('promtool');
const AMTOOL = findProgram('amtool');
const OTELCOL = findProgram('otelcol');

interface Service {
  readonly image: string;
  readonly build?: { readonly dockerfile: string };
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly networks?: readonly string[];
  readonly volumes?: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
}

interface Project {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<Record<string, { readonly internal?: boolean }>>;
  readonly volumes: Readonly<Record<string, unknown>>;
}

// compose-go, below, says whether it is one.
const project = parse(readFileSync(FILE, 'utf8'), { merge: true }) as Project;
const services = Object.entries(project.services);

function service(name: string): Service {
  const found = project.services[name];
  if (found === undefined) throw new Error(`no service ${name}`);
  return found;
}

/** What is mounted from this repository, by where. */
function mounts({ volumes = [] }: Service): ReadonlyMap<string, string> {
  const parts = volumes.map((volume) => volume.split(':'));
  return new Map(
    parts.flatMap(([source = '', target = '', mode]) => {
      if (!source.startsWith('./')) return [];
      expect(mode, `${source} must not be written to`).toBe('ro');
      return [[target, join(ROOT, source)]];
    }),
  );
}

/** Lays the mounts of a service into a folder, as the container has them in its root. */
function asMounted<T>(name: string, use: (root: string) => T): T {
  const root = mkdtempSync(join(tmpdir(), 'time-budget-compose-'));
  try {
    for (const [target, source] of mounts(service(name))) {
      mkdirSync(dirname(join(root, target)), { recursive: true });
      cpSync(source, join(root, target), { recursive: true });
    }
    return use(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function run(program: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): string {
  const { status, stdout, stderr } = spawnSync(program, args, {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...env },
  });
  return status === 0 ? 'ok' : `${stdout}${stderr}`;
}

describe('docker-compose.yml', () => {
  it.skipIf(COMPOSE === undefined)('is read by the parser of docker compose', () => {
    const { status, stdout, stderr } = spawnSync(COMPOSE ?? '', [FILE], { encoding: 'utf8', maxBuffer: 1e7 });
    expect(status, stderr).toBe(0);
    // The project as compose-go prints it.
    const read = JSON.parse(stdout) as Project;
    expect(Object.keys(read.services).sort()).toEqual(Object.keys(project.services).sort());
  });

  it.skipIf(COMPOSE === undefined)('the parser finds a dependency that does not exist', () => {
    const folder = mkdtempSync(join(tmpdir(), 'time-budget-compose-'));
    try {
      const file = join(folder, 'docker-compose.yml');
      cpSync(FILE, file);
      const broken = join(folder, 'override.yml');
      cpSync(join(ROOT, 'test/deploy/broken-compose.yml'), broken);
      const { status, stderr } = spawnSync(COMPOSE ?? '', [file, broken], { encoding: 'utf8' });
      expect(status).toBe(1);
      expect(stderr).toContain('nobody');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('every image has a version of its own', () => {
    const images = services
      .map(([, { image }]) => image)
      .filter((image) => image !== 'otel-time-budget-demo');
    expect(images.filter((image) => !/:v?\d+\.\d+/.test(image))).toEqual([]);
    expect(
      services.filter(([, { image, build }]) => image === 'otel-time-budget-demo' && build === undefined),
    ).toEqual([]);
  });

  it('the image of the demo has the Node that the tests run on', () => {
    // This repository's own.
    const { devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      devDependencies: Record<string, string>;
    };
    for (const file of ['demo/Dockerfile', 'deploy/image/Dockerfile']) {
      const [, version] = /^FROM node:(\S+?)-/m.exec(readFileSync(join(ROOT, file), 'utf8')) ?? [];
      expect(version, file).toBe(devDependencies.node);
    }
  });

  it('ports are open on this machine only', () => {
    const ports = services.flatMap(([, { ports = [] }]) => ports);
    expect(ports.length).toBeGreaterThan(0);
    expect(ports.filter((port) => !port.startsWith('127.0.0.1:'))).toEqual([]);
  });

  it('no password is set, and only orders reaches the database that asks for none', () => {
    const names = services.flatMap(([, { environment = {} }]) => Object.keys(environment));
    expect(names.filter((name) => /PASSWORD|SECRET|TOKEN|API_KEY/.test(name))).toEqual([]);
    expect(service('postgres').networks).toEqual(['database']);
    expect(service('postgres').ports).toBeUndefined();
    expect(project.networks.database?.internal).toBe(true);
    expect(
      services.filter(([, { networks = [] }]) => networks.includes('database')).map(([name]) => name),
    ).toEqual(['orders', 'postgres']);
    expect(service('grafana').environment).toMatchObject({
      GF_SECURITY_DISABLE_INITIAL_ADMIN_CREATION: 'true',
      GF_AUTH_BASIC_ENABLED: 'false',
    });
  });

  it('every service has a health check, but for the collectors, which cannot ask themselves', () => {
    const without = services.filter(([, { healthcheck }]) => healthcheck === undefined).map(([name]) => name);
    expect(without).toEqual(['collector-agent', 'collector-gateway']);
  });

  it('what is mounted is there, and so are the files that commands name', () => {
    for (const [name, one] of services) {
      const files = mounts(one);
      expect(
        [...files.values()].filter((file) => !existsSync(file)),
        name,
      ).toEqual([]);
      const named = (one.command ?? []).flatMap(
        (arg) => /^--?config(?:\.file)?=(.*)/.exec(arg)?.slice(1) ?? [],
      );
      expect(
        named.filter((file) => !files.has(file)),
        name,
      ).toEqual([]);
      const scripts = (one.command ?? []).filter((arg) => arg.startsWith('demo/'));
      expect(
        scripts.filter((script) => !existsSync(join(ROOT, script))),
        name,
      ).toEqual([]);
    }
  });

  it('every address is that of a service', () => {
    const texts = services.flatMap(([, { environment = {} }]) => Object.values(environment));
    const files = services
      .flatMap(([, one]) => [...mounts(one).values()])
      .filter((file) => file.includes('/deploy/compose/'));
    const prometheus = readFileSync(join(ROOT, 'deploy/compose/prometheus.yml'), 'utf8');
    const all = [
      ...texts,
      ...files.filter((file) => file.includes('/grafana/')).map((file) => readFileSync(file, 'utf8')),
    ];
    const hosts = [
      ...all.flatMap((text) =>
        [...text.matchAll(/(?:\w+:\/\/|^)(?:\w+@)?([a-z][a-z-]*):\d+/g)].map(([, host]) => host ?? ''),
      ),
      ...[...prometheus.matchAll(/["\s[]([a-z][a-z-]*):\d+/g)].map(([, host]) => host ?? ''),
    ];
    expect(new Set(hosts)).toContain('collector-gateway');
    expect(
      [...new Set(hosts)].filter((host) => host !== 'localhost' && project.services[host] === undefined),
    ).toEqual([]);
  });
});

describe('the files that docker-compose.yml mounts, read by their own programs', () => {
  it.skipIf(PROMTOOL === undefined)('Prometheus: configuration and rules', () => {
    asMounted('prometheus', (root) => {
      expect(run(PROMTOOL ?? '', ['check', 'config', join(root, 'etc/prometheus/prometheus.yml')])).toBe(
        'ok',
      );
    });
  });

  it.skipIf(AMTOOL === undefined)('Alertmanager', () => {
    asMounted('alertmanager', (root) => {
      expect(run(AMTOOL ?? '', ['check-config', join(root, 'etc/alertmanager/alertmanager.yml')])).toBe('ok');
    });
  });

  it.skipIf(OTELCOL === undefined).each(['collector-agent', 'collector-gateway'])('%s', (name) => {
    asMounted(name, (root) => {
      const args = (service(name).command ?? []).map((arg) => arg.replace('=/', `=${root}/`));
      const env = { ...service(name).environment, STORAGE: join(root, 'storage') };
      expect(run(OTELCOL ?? '', ['validate', ...args], env)).toBe('ok');
    });
  });

  it('the settings of the services', () => {
    const [file] = mounts(service('orders')).values();
    const read = loadConfig({ TIME_BUDGET_CONFIG: file }, (path) => readFileSync(path, 'utf8'));
    expect(read).toMatchObject({ ok: true, config: { mode: 'observe' } });
  });

  it('Grafana: its sources are those that the dashboards choose from, and lead to each other', () => {
    const read = (file: string) => parse(readFileSync(join(ROOT, 'deploy/compose/grafana', file), 'utf8'));
    const sources: { uid: string; type: string; jsonData: Record<string, unknown> }[] =
      read('datasources.yml').datasources;
    expect(sources.map(({ uid, type }) => [uid, type])).toEqual([
      ['prometheus', 'prometheus'],
      ['tempo', 'tempo'],
      ['alertmanager', 'alertmanager'],
    ]);
    const [prometheus, tempo] = sources;
    expect(prometheus?.jsonData).toMatchObject({
      timeInterval: '15s',
      alertmanagerUid: 'alertmanager',
      exemplarTraceIdDestinations: [{ name: 'trace_id', datasourceUid: 'tempo' }],
    });
    expect(tempo?.jsonData).toMatchObject({ tracesToMetrics: { datasourceUid: 'prometheus' } });
    const scraped = parse(readFileSync(join(ROOT, 'deploy/compose/prometheus.yml'), 'utf8'));
    expect(prometheus?.jsonData.timeInterval).toBe(scraped.global.scrape_interval);
    const [provider] = read('dashboards.yml').providers;
    expect(mounts(service('grafana')).get(provider.options.path)).toBe(join(ROOT, 'dashboards/json'));
  });
});
