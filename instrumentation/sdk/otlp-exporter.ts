import type { PushMetricExporter } from '@opentelemetry/sdk-metrics';
import type { OtlpProtocol } from './environment.ts';

/** The exporter of a protocol; the rest it reads from the standard variables. Only the one asked for is loaded. */
export async function createOtlpExporter(
  protocol: OtlpProtocol,
  timeoutMillis?: number,
): Promise<PushMetricExporter> {
  const { OTLPMetricExporter } = await load(protocol);
  return new OTLPMetricExporter(timeoutMillis === undefined ? {} : { timeoutMillis });
}

function load(protocol: OtlpProtocol) {
  switch (protocol) {
    case 'grpc':
      return import('@opentelemetry/exporter-metrics-otlp-grpc');
    case 'http/json':
      return import('@opentelemetry/exporter-metrics-otlp-http');
    case 'http/protobuf':
      return import('@opentelemetry/exporter-metrics-otlp-proto');
  }
}
