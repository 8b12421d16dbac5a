/** What the standard variables ask of an SDK of ours. An empty variable counts as not set. */
import type { Environment } from '../../src/telemetry/config-env.ts';

const METRIC_EXPORTERS = ['prometheus', 'otlp', 'console'] as const;
type MetricExporter = (typeof METRIC_EXPORTERS)[number];
const OTLP_PROTOCOLS = ['http/protobuf', 'http/json', 'grpc'] as const;
export type OtlpProtocol = (typeof OTLP_PROTOCOLS)[number];

export interface SdkSettings {
  /** `OTEL_SDK_DISABLED`. */
  readonly disabled: boolean;
  /** Traces are exported only where somebody said where to: they cost more than all that is ours. */
  readonly traces: boolean;
  /** Empty = none. */
  readonly metrics: readonly MetricExporter[];
  readonly protocol: OtlpProtocol;
  readonly host: string;
  readonly port: number;
  readonly intervalMs: number;
  readonly timeoutMs: number;
  /** One line each; the default is used instead. */
  readonly problems: readonly string[];
}

/** The defaults of the specification, but for the exporter of metrics. */
const DEFAULT_HOST = 'localhost';
const DEFAULT_PORT = 9464;
const DEFAULT_INTERVAL_MS = 60_000;
const DEFAULT_TIMEOUT_MS = 30_000;

export function readSdkSettings(env: Environment): SdkSettings {
  const problems: string[] = [];
  const number = (name: string, most: number): number | undefined => {
    const text = given(env, name);
    if (text === undefined) return undefined;
    const value = /^[0-9]+$/.test(text) ? Number(text) : 0;
    if (value > 0 && value <= most) return value;
    problems.push(
      `${name}: ${JSON.stringify(text)} is not a whole number from 1 to ${most}; the default is used`,
    );
    return undefined;
  };
  const intervalMs = number('OTEL_METRIC_EXPORT_INTERVAL', MAX_TIMER_MS) ?? DEFAULT_INTERVAL_MS;
  const timeoutMs = number('OTEL_METRIC_EXPORT_TIMEOUT', MAX_TIMER_MS) ?? DEFAULT_TIMEOUT_MS;
  return {
    disabled: given(env, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true',
    traces: wantsTraces(env),
    metrics: metricExporters(env, problems),
    protocol: protocol(env, problems),
    host: given(env, 'OTEL_EXPORTER_PROMETHEUS_HOST') ?? DEFAULT_HOST,
    port: number('OTEL_EXPORTER_PROMETHEUS_PORT', 65_535) ?? DEFAULT_PORT,
    intervalMs,
    // The reader takes no timeout above its interval.
    timeoutMs: Math.min(timeoutMs, intervalMs),
    problems,
  };
}

/** Longer ones fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

function wantsTraces(env: Environment): boolean {
  // A file of declarative configuration says itself what is exported.
  if (given(env, 'OTEL_CONFIG_FILE') !== undefined) return true;
  const exporters = list(env, 'OTEL_TRACES_EXPORTER');
  if (exporters.length > 0) return !exporters.includes('none');
  return ['OTEL_EXPORTER_OTLP_ENDPOINT', 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'].some(
    (name) => given(env, name) !== undefined,
  );
}

function metricExporters(env: Environment, problems: string[]): readonly MetricExporter[] {
  const names = list(env, 'OTEL_METRICS_EXPORTER');
  if (names.length === 0) return ['prometheus'];
  if (names.includes('none')) return [];
  return names.flatMap((name) => {
    const known = METRIC_EXPORTERS.find((each) => each === name);
    if (known !== undefined) return [known];
    problems.push(
      `OTEL_METRICS_EXPORTER: ${JSON.stringify(name)} is none of ${METRIC_EXPORTERS.join(', ')}, none`,
    );
    return [];
  });
}

function protocol(env: Environment, problems: string[]): OtlpProtocol {
  const name = ['OTEL_EXPORTER_OTLP_METRICS_PROTOCOL', 'OTEL_EXPORTER_OTLP_PROTOCOL'].find(
    (each) => given(env, each) !== undefined,
  );
  if (name === undefined) return 'http/protobuf';
  const known = OTLP_PROTOCOLS.find((each) => each === given(env, name));
  if (known !== undefined) return known;
  problems.push(
    `${name}: ${JSON.stringify(env[name])} is none of ${OTLP_PROTOCOLS.join(', ')}; http/protobuf is used`,
  );
  return 'http/protobuf';
}

function list(env: Environment, name: string): string[] {
  const names = (given(env, name)?.split(',') ?? []).map((each) => each.trim().toLowerCase());
  return [...new Set(names.filter((each) => each !== ''))];
}

function given(env: Environment, name: string): string | undefined {
  const text = env[name]?.trim();
  return text === undefined || text === '' ? undefined : text;
}
