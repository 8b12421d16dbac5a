/**
 * The page that Prometheus scrapes. With a server of our own, because that of OpenTelemetry's exporter holds a
 * process that wants to end, and with the cells written by ourselves.
 */
import cluster from 'node:cluster';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MetricReader } from '@opentelemetry/sdk-metrics';
import type { Families } from '../../src/telemetry/metrics.ts';
import { complain, messageOf } from '../process/complain.ts';
import { addOwnServer, runAsOwnTraffic } from '../process/own-traffic.ts';
import { createTextWriter } from './prometheus-text.ts';

const PATH = '/metrics';
const IN_CLUSTER =
  'the workers of a cluster share one port, so each scrape would show another one: their metrics are not ' +
  'exported, set OTEL_METRICS_EXPORTER=otlp';

/** A reader that is scraped: what instruments of the SDK have, and the cells. The port is opened by `listen`. */
export class ScrapeServer extends MetricReader {
  readonly #server: Server;
  readonly #host: string;
  readonly #port: number;
  // No labels for the scope: they would tell series of the same name apart on one way of export only.
  readonly #serializer = new PrometheusSerializer('', false, undefined, false, true);
  readonly #writeCells: () => string;

  constructor(host: string, port: number, families: Families) {
    super();
    this.#host = host;
    this.#port = port;
    this.#writeCells = createTextWriter(families);
    this.#server = createServer((request, response) => {
      if (request.url?.split('?')[0] === PATH) this.#answer(response);
      else response.writeHead(404).end();
    });
    addOwnServer(this.#server);
    this.#server.unref();
    // An accepted connection holds the process as well, and a scraper keeps its own open.
    this.#server.on('connection', (socket) => socket.unref());
  }

  /** Says on stderr why it cannot; the service is not affected. */
  listen(): void {
    // A primary process hands on connections and serves no request itself.
    if (Object.keys(cluster.workers ?? {}).length > 0) return;
    if (cluster.isWorker) {
      // Once for them all.
      if (cluster.worker?.id === 1) complain(IN_CLUSTER);
      return;
    }
    this.#server.on('error', (error) => complain(this.#explain(error)));
    runAsOwnTraffic(() => this.#server.listen({ host: this.#host, port: this.#port }));
  }

  protected override async onForceFlush(): Promise<void> {}

  protected override async onShutdown(): Promise<void> {
    this.#server.close();
  }

  #answer(response: ServerResponse): void {
    this.collect()
      .then(({ resourceMetrics }) => {
        const text = `${this.#serializer.serialize(resourceMetrics)}\n${this.#writeCells()}`;
        response.setHeader('content-type', 'text/plain; version=0.0.4; charset=utf-8');
        response.end(text);
      })
      // Of the writing as well: unhandled, it would end the service.
      .catch((error: unknown) => response.writeHead(500).end(`# ${messageOf(error)}\n`));
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
