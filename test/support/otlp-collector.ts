/** A collector for tests: takes OTLP as JSON, keeps the last metrics and all spans of each service. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

interface KeyValue {
  readonly key: string;
  readonly value: {
    readonly stringValue?: string;
    readonly intValue?: number | string;
    readonly doubleValue?: number;
    readonly boolValue?: boolean;
  };
}
interface Point {
  readonly attributes?: readonly KeyValue[];
  readonly asDouble?: number;
  readonly asInt?: number | string;
  readonly count?: number | string;
  readonly sum?: number;
  readonly bucketCounts?: readonly (number | string)[];
}
interface Payload {
  readonly resourceMetrics?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeMetrics: readonly {
      readonly scope: { readonly name: string; readonly version?: string };
      readonly metrics: readonly {
        readonly name: string;
        readonly sum?: { readonly dataPoints: readonly Point[] };
        readonly gauge?: { readonly dataPoints: readonly Point[] };
        readonly histogram?: { readonly dataPoints: readonly Point[] };
      }[];
    }[];
  }[];
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans: readonly {
      readonly scope: { readonly name: string };
      readonly spans?: readonly {
        readonly name: string;
        readonly kind: number;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly attributes?: readonly KeyValue[];
      }[];
    }[];
  }[];
}

export interface Span {
  readonly service: string;
  readonly scope: string;
  readonly name: string;
  readonly kind: 'server' | 'client' | 'other';
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly attributes: Readonly<Record<string, unknown>>;
}

export interface Series {
  readonly labels: Readonly<Record<string, unknown>>;
  /** Of a histogram, its count. */
  readonly value: number;
  readonly sum: number | undefined;
  readonly buckets: readonly number[] | undefined;
}

const KINDS: Readonly<Record<number, Span['kind']>> = { 2: 'server', 3: 'client' };

export class OtlpCollector {
  readonly spans: Span[] = [];
  /** Exports of metrics by service. */
  readonly exports = new Map<string, number>();
  /** Called with each body as it came. */
  onBody: ((body: string) => void) | undefined;
  readonly #metrics = new Map<string, Map<string, readonly Series[]>>();
  readonly #waiting = new Set<() => void>();
  readonly #server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      this.onBody?.(body);
      // What the exporters send is fixed by the OTLP specification.
      this.#take(JSON.parse(body) as Payload);
      response.setHeader('content-type', 'application/json');
      response.end('{}');
      for (const check of this.#waiting) check();
    });
  });

  /** After a `stop` as well, then with the port that it had. */
  async start(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, 'localhost', resolve));
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** For `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  get url(): string {
    return `http://localhost:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The series of a metric in the last export of a service; undefined where it was not in it. */
  series(service: string, metric: string): readonly Series[] | undefined {
    return this.#metrics.get(service)?.get(metric);
  }

  metricNames(service: string): string[] {
    return [...(this.#metrics.get(service)?.keys() ?? [])];
  }

  /** Sum of the series with these labels. */
  value(service: string, metric: string, labels: Readonly<Record<string, string>> = {}): number {
    const all = this.series(service, metric) ?? [];
    const wanted = all.filter((series) =>
      Object.entries(labels).every(([key, value]) => series.labels[key] === value),
    );
    return wanted.reduce((sum, { value }) => sum + value, 0);
  }

  /** Waits until `condition` holds after an export. */
  async until(condition: () => boolean, what: () => string, timeoutMs = 10_000): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(() => end(() => reject(new Error(`not exported: ${what()}`))), timeoutMs);
      const check = () => {
        if (condition()) end(resolve);
      };
      const end = (then: () => void) => {
        clearTimeout(timer);
        this.#waiting.delete(check);
        then();
      };
      this.#waiting.add(check);
    });
  }

  #take({ resourceMetrics = [], resourceSpans = [] }: Payload): void {
    for (const { resource, scopeMetrics } of resourceMetrics) {
      const service = String(attributesOf(resource?.attributes)['service.name']);
      const metrics = new Map<string, Series[]>();
      for (const { metrics: list } of scopeMetrics) {
        for (const { name, sum, gauge, histogram } of list) {
          const points = (sum ?? gauge ?? histogram)?.dataPoints ?? [];
          metrics.set(name, [...(metrics.get(name) ?? []), ...points.map(seriesOf)]);
        }
      }
      this.#metrics.set(service, metrics);
      this.exports.set(service, (this.exports.get(service) ?? 0) + 1);
    }
    for (const { resource, scopeSpans } of resourceSpans) {
      const service = String(attributesOf(resource?.attributes)['service.name']);
      for (const { scope, spans = [] } of scopeSpans) {
        for (const { name, kind, traceId, spanId, parentSpanId, attributes } of spans) {
          this.spans.push({
            service,
            scope: scope.name,
            name,
            kind: KINDS[kind] ?? 'other',
            traceId,
            spanId,
            parentId: parentSpanId === '' ? undefined : parentSpanId,
            attributes: attributesOf(attributes),
          });
        }
      }
    }
  }
}

function seriesOf({ attributes, asDouble, asInt, count, sum, bucketCounts }: Point): Series {
  return {
    labels: attributesOf(attributes),
    value: Number(asDouble ?? asInt ?? count),
    sum,
    buckets: bucketCounts?.map(Number),
  };
}

function attributesOf(attributes: readonly KeyValue[] = []): Record<string, unknown> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [
      key,
      value.stringValue ?? value.boolValue ?? value.doubleValue ?? value.intValue,
    ]),
  );
}
