/** Hand-made spans, sent as an exporter would, for what no service of ours does by itself. */
import { randomBytes } from 'node:crypto';

type Value = string | number | boolean;

export interface HandmadeSpan {
  /** Without one, its own trace. */
  readonly traceId?: string;
  readonly name?: string;
  readonly kind?: 'internal' | 'server' | 'client';
  readonly isError?: boolean;
  readonly statusMessage?: string;
  readonly attributes?: Readonly<Record<string, Value>>;
  readonly events?: readonly {
    readonly name: string;
    readonly attributes?: Readonly<Record<string, Value>>;
  }[];
}

const KINDS = { internal: 1, server: 2, client: 3 } as const;

/** Sends them in one batch to an OTLP endpoint; gives the ids of their traces, in order. */
export async function sendSpans(
  endpoint: string,
  resource: Readonly<Record<string, Value>>,
  spans: readonly HandmadeSpan[],
): Promise<string[]> {
  const nowNs = `${Date.now()}000000`;
  const ids = spans.map(({ traceId }) => traceId ?? randomBytes(16).toString('hex'));
  const body = {
    resourceSpans: [
      {
        resource: { attributes: pairs(resource) },
        scopeSpans: [
          {
            scope: { name: 'handmade' },
            spans: spans.map(({ name, kind, isError, statusMessage, attributes, events }, i) => ({
              traceId: ids[i],
              spanId: randomBytes(8).toString('hex'),
              name: name ?? 'GET /handmade',
              kind: KINDS[kind ?? 'server'],
              startTimeUnixNano: nowNs,
              endTimeUnixNano: nowNs,
              attributes: pairs(attributes),
              events: (events ?? []).map((event) => ({
                timeUnixNano: nowNs,
                name: event.name,
                attributes: pairs(event.attributes),
              })),
              status: { code: isError === true ? 2 : 0, message: statusMessage },
            })),
          },
        ],
      },
    ],
  };
  const response = await fetch(`${endpoint}/v1/traces`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`refused with ${response.status}: ${await response.text()}`);
  return ids;
}

function pairs(attributes: Readonly<Record<string, Value>> = {}) {
  return Object.entries(attributes).map(([key, value]) => ({ key, value: anyValue(value) }));
}

function anyValue(value: Value) {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  return Number.isInteger(value) ? { intValue: value } : { doubleValue: value };
}
