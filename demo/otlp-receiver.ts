/** A receiver of OTLP traces in JSON, as small as the demo needs: it keeps the spans of the traces asked for. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';

type AttributeValue = string | number | boolean;

/** A finished span. Instants are Unix milliseconds by the clock of the service. */
export interface Span {
  readonly service: string;
  readonly name: string;
  readonly kind: 'server' | 'client' | 'other';
  readonly traceId: string;
  readonly spanId: string;
  readonly parentId: string | undefined;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly attributes: Readonly<Record<string, AttributeValue>>;
}

/** How long a trace must have been complete before it is handed out: leaves may come in the next batch. */
const QUIET_MS = 250;
const POLL_MS = 20;

export class OtlpReceiver {
  readonly #server = http.createServer((request, response) => this.#receive(request, response));
  readonly #wanted = new Map<string, Span[]>();
  #next: string | undefined;

  /** Starts on a free port; gives the value for OTEL_EXPORTER_OTLP_TRACES_ENDPOINT. */
  async start(): Promise<string> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    // A server that listens on a port has an address of this form.
    const { port } = this.#server.address() as AddressInfo;
    return `http://127.0.0.1:${port}/v1/traces`;
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  /** Keeps the spans of a trace from now on. Others are dropped, so that no run grows memory. */
  expect(traceId: string): void {
    this.#wanted.set(traceId, []);
  }

  /** Hands on what comes from now on to a receiver behind this one; what that one does not take is lost. */
  forwardTo(tracesUrl: string): void {
    this.#next = tracesUrl;
  }

  /** The trace once it is complete; throws with what is missing after `timeoutMs`. */
  async take(
    traceId: string,
    rootId: string,
    services: readonly string[],
    timeoutMs: number,
  ): Promise<Span[]> {
    const until = performance.now() + timeoutMs;
    let completeAt = Number.POSITIVE_INFINITY;
    let seen = 0;
    for (;;) {
      const spans = this.#wanted.get(traceId) ?? [];
      const missing = missingIn(spans, rootId, services);
      const now = performance.now();
      if (missing !== undefined || spans.length !== seen) completeAt = now;
      seen = spans.length;
      if (missing === undefined && now - completeAt >= QUIET_MS) {
        this.#wanted.delete(traceId);
        return spans;
      }
      if (now > until) throw new Error(`the trace is not complete: ${missing ?? 'spans still arrive'}`);
      await sleep(POLL_MS);
    }
  }

  #receive(request: http.IncomingMessage, response: http.ServerResponse): void {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      if (this.#next !== undefined) void handOn(text, this.#next);
      for (const span of readSpans(text)) this.#wanted.get(span.traceId)?.push(span);
      response.setHeader('content-type', 'application/json');
      response.end('{}');
    });
  }
}

async function handOn(body: string, url: string): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  await fetch(url, { method: 'POST', headers, body })
    .then((answer) => answer.arrayBuffer())
    .catch(() => undefined);
}

/** What a trace still lacks: the server span of a service, or a span that another one names as its parent. */
function missingIn(spans: readonly Span[], rootId: string, services: readonly string[]): string | undefined {
  for (const service of services) {
    if (!spans.some((span) => span.kind === 'server' && span.service === service)) {
      return `no server span of ${service}`;
    }
  }
  const ids = new Set(spans.map((span) => span.spanId)).add(rootId);
  const orphan = spans.find((span) => span.parentId !== undefined && !ids.has(span.parentId));
  return orphan && `the parent of ${orphan.name} of ${orphan.service}`;
}

interface OtlpValue {
  readonly stringValue?: string;
  readonly boolValue?: boolean;
  readonly intValue?: number | string;
  readonly doubleValue?: number;
}
interface OtlpAttribute {
  readonly key: string;
  readonly value: OtlpValue;
}
interface OtlpTraces {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly OtlpAttribute[] };
    readonly scopeSpans?: readonly { readonly spans?: readonly OtlpSpan[] }[];
  }[];
}
interface OtlpSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind?: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes?: readonly OtlpAttribute[];
}

const KINDS: Readonly<Record<number, Span['kind']>> = { 2: 'server', 3: 'client' };

/** Takes apart one OTLP/JSON export of traces. */
export function readSpans(text: string): Span[] {
  // The sender is the SDK in our own services; its form is fixed by the OTLP specification.
  const traces = JSON.parse(text) as OtlpTraces;
  const spans: Span[] = [];
  for (const { resource, scopeSpans } of traces.resourceSpans ?? []) {
    const service = String(readAttributes(resource?.attributes)['service.name']);
    for (const scope of scopeSpans ?? []) {
      for (const span of scope.spans ?? []) {
        spans.push({
          service,
          name: span.name,
          kind: KINDS[span.kind ?? 0] ?? 'other',
          traceId: span.traceId,
          spanId: span.spanId,
          parentId: span.parentSpanId || undefined,
          startedAt: unixMs(span.startTimeUnixNano),
          endedAt: unixMs(span.endTimeUnixNano),
          attributes: readAttributes(span.attributes),
        });
      }
    }
  }
  return spans;
}

function readAttributes(attributes: readonly OtlpAttribute[] = []): Record<string, AttributeValue> {
  const values: Record<string, AttributeValue> = {};
  for (const { key, value } of attributes) {
    const { stringValue, boolValue, intValue, doubleValue } = value;
    const number = intValue === undefined ? doubleValue : Number(intValue);
    const known = stringValue ?? boolValue ?? number;
    if (known !== undefined) values[key] = known;
  }
  return values;
}

/** Nanoseconds since 1970 do not fit a double; microseconds do. */
function unixMs(nanoseconds: string): number {
  return Number(BigInt(nanoseconds) / 1000n) / 1000;
}
