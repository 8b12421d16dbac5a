import { fileURLToPath } from 'node:url';
import { freePort } from '../../demo/free-port.ts';

export const VARIANTS = ['bare', 'otel', 'otel_us', 'us'] as const;
export type Variant = (typeof VARIANTS)[number];

export const VARIANT_NAMES: Readonly<Record<Variant, string>> = {
  bare: 'bare',
  otel: 'OpenTelemetry alone',
  otel_us: 'OpenTelemetry with us',
  us: 'us without tracing',
};

const OTEL = fileURLToPath(new URL('otel.ts', import.meta.url));
export const REGISTER = fileURLToPath(new URL('../../dist/instrumentation/register.js', import.meta.url));

interface Setup {
  /** Loaded with `--import`. */
  readonly loaded: string | undefined;
  /** What must be seen of it, so that a variant that did not come up is not measured as a cheap one. */
  readonly exportsSpans: boolean;
  readonly records: boolean;
}

export const SETUPS: Readonly<Record<Variant, Setup>> = {
  bare: { loaded: undefined, exportsSpans: false, records: false },
  otel: { loaded: OTEL, exportsSpans: true, records: false },
  otel_us: { loaded: REGISTER, exportsSpans: true, records: true },
  us: { loaded: REGISTER, exportsSpans: false, records: true },
};

export interface Launch {
  readonly execArgv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Where its metrics are scraped; undefined for the bare one. */
  readonly metricsUrl: string | undefined;
}

/** How to start a variant whose spans go to `sinkUrl`. */
export async function launchOf(variant: Variant, sinkUrl: string): Promise<Launch> {
  const { loaded, exportsSpans } = SETUPS[variant];
  const execArgv = ['--expose-gc', ...(loaded === undefined ? [] : ['--import', loaded])];
  if (loaded === undefined) return { execArgv, env: {}, metricsUrl: undefined };
  const port = await freePort();
  return {
    execArgv,
    env: {
      OTEL_SERVICE_NAME: 'bench',
      // Left to itself it waits for the SDK that the package.json of the service, which here is ours, speaks of.
      TIME_BUDGET_SDK: 'on',
      OTEL_TRACES_EXPORTER: exportsSpans ? 'otlp' : 'none',
      OTEL_TRACES_SAMPLER: 'always_on',
      // Shorter than the 5 s of the default, so that what a slice made is exported in it, and is not in the heap.
      OTEL_BSP_SCHEDULE_DELAY: '200',
      OTEL_METRICS_EXPORTER: 'prometheus',
      OTEL_LOGS_EXPORTER: 'none',
      OTEL_NODE_RESOURCE_DETECTORS: 'none',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf',
      OTEL_EXPORTER_OTLP_ENDPOINT: `${sinkUrl}/${variant}`,
      OTEL_EXPORTER_PROMETHEUS_HOST: '127.0.0.1',
      OTEL_EXPORTER_PROMETHEUS_PORT: String(port),
    },
    metricsUrl: `http://127.0.0.1:${port}/metrics`,
  };
}
