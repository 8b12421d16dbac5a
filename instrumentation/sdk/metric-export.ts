/** The readers that the standard variables ask for, each with the cells as a producer of its own. */
import {
  AggregationTemporality,
  AggregationType,
  ConsoleMetricExporter,
  type MetricReader,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics';
import type { Families } from '../../src/telemetry/metrics.ts';
import { VERSION } from '../../src/version.ts';
import { type CellProducer, createCellProducer } from '../process/metric-producer.ts';
import { runAsOwnTraffic } from '../process/own-traffic.ts';
import type { SdkSettings } from './environment.ts';
import { createOtlpExporter } from './otlp-exporter.ts';
import { ScrapeServer } from './scrape-server.ts';

export interface MetricExport {
  readonly readers: readonly MetricReader[];
  /** What OTLP is told of; undefined where nothing is sent there. */
  readonly otlp: CellProducer | undefined;
  /** Opens the page for Prometheus, where there is one. */
  listen(): void;
}

export async function createMetricExport(settings: SdkSettings, families: Families): Promise<MetricExport> {
  const readers: MetricReader[] = [];
  let otlp: CellProducer | undefined;
  let page: ScrapeServer | undefined;
  const pushTo = (exporter: PushMetricExporter): CellProducer => {
    const temporalityOf = exporter.selectAggregationTemporality?.bind(exporter);
    const producer = createCellProducer(
      families,
      VERSION,
      temporalityOf ?? (() => AggregationTemporality.CUMULATIVE),
    );
    readers.push(
      new PeriodicExportingMetricReader({
        exporter: asOwnTraffic(exporter),
        exportIntervalMillis: settings.intervalMs,
        exportTimeoutMillis: settings.timeoutMs,
        metricProducers: [producer],
      }),
    );
    return producer;
  };
  for (const name of settings.metrics) {
    if (name === 'console') pushTo(new ConsoleMetricExporter());
    if (name === 'otlp') otlp = pushTo(await createOtlpExporter(settings.protocol));
    if (name === 'prometheus') {
      page = new ScrapeServer(settings.host, settings.port, families);
      readers.push(page);
    }
  }
  return { readers, otlp, listen: () => page?.listen() };
}

/** Its connections, retries included, are made outside of any request and are not recorded. */
function asOwnTraffic(exporter: PushMetricExporter): PushMetricExporter {
  return {
    export: (metrics, onResult) => runAsOwnTraffic(() => exporter.export(metrics, onResult)),
    forceFlush: () => exporter.forceFlush(),
    shutdown: () => exporter.shutdown(),
    selectAggregation: (type) => exporter.selectAggregation?.(type) ?? { type: AggregationType.DEFAULT },
    selectAggregationTemporality: (type) =>
      exporter.selectAggregationTemporality?.(type) ?? AggregationTemporality.CUMULATIVE,
  };
}
