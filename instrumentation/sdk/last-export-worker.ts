/** The thread of the last export: sends what it was given, once, and tells the waiting process. */
import { workerData } from 'node:worker_threads';
import type { AttributeValue } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import type { ScopeMetrics } from '@opentelemetry/sdk-metrics';
import type { OtlpProtocol } from './environment.ts';
import { createOtlpExporter } from './otlp-exporter.ts';

export interface LastExportData {
  /** Becomes 1 when it is over, whatever came of it. */
  readonly done: Int32Array<SharedArrayBuffer>;
  readonly protocol: OtlpProtocol;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly scopeMetrics: ScopeMetrics[];
}

/** The exporter waits 800 ms or more before it tries again: with less than that, it tries once. */
const TIMEOUT_MS = 750;

// Given by last-export.ts and nobody else.
const { done, protocol, attributes, scopeMetrics } = workerData as LastExportData;

function finish(): void {
  Atomics.store(done, 0, 1);
  Atomics.notify(done, 0);
}

try {
  const exporter = await createOtlpExporter(protocol, TIMEOUT_MS);
  // They come from a resource, cloned.
  const resource = resourceFromAttributes(attributes as Record<string, AttributeValue>);
  exporter.export({ resource, scopeMetrics }, finish);
} catch {
  finish();
}
