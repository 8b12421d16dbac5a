/** The page that Prometheus scrapes. A server of our own: that of the exporter holds a process that wants to end. */
import { createServer, type Server } from 'node:http';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import type { MetricProducer, MetricReader } from '@opentelemetry/sdk-metrics';
import { complain, messageOf } from '../complain.ts';
import { addOwnServer, runAsOwnTraffic } from '../own-traffic.ts';

const PATH = '/metrics';

/** A reader that is scraped; the port is opened by `listen`. */
export class ScrapeServer {
  readonly reader: MetricReader;
  readonly #server: Server;
  readonly #host: string;
  readonly #port: number;

  constructor(host: string, port: number, producer: MetricProducer) {
    this.#host = host;
    this.#port = port;
    const exporter = new PrometheusExporter({
      preventServerStart: true,
      withoutScopeInfo: true,
      metricProducers: [producer],
    });
    this.reader = exporter;
    this.#server = createServer((request, response) => {
      if (request.url?.split('?')[0] === PATH) exporter.getMetricsRequestHandler(request, response);
      else response.writeHead(404).end();
    });
    addOwnServer(this.#server);
    this.#server.unref();
    // An accepted connection holds the process as well, and a scraper keeps its own open.
    this.#server.on('connection', (socket) => socket.unref());
  }

  /** Says on stderr why it cannot; the service is not affected. */
  listen(): void {
    this.#server.on('error', (error) => complain(this.#explain(error)));
    runAsOwnTraffic(() => this.#server.listen({ host: this.#host, port: this.#port }));
  }

  #explain(error: Error): string {
    const place = `port ${this.#port} of ${this.#host}`;
    const why =
      'code' in error && error.code === 'EADDRINUSE' ? `${place} is in use` : `${place}: ${messageOf(error)}`;
    return (
      `metrics cannot be scraped, ${why}: set OTEL_EXPORTER_PROMETHEUS_PORT (and _HOST) to a free one, or ` +
      'OTEL_METRICS_EXPORTER to otlp or none'
    );
  }
}
