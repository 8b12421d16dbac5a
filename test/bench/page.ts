/** The page docs/benchmarks.md: what was measured on which machine, the figures, and how to repeat it. */
import { readFileSync } from 'node:fs';
import { cpus, totalmem } from 'node:os';
import type { Amounts } from './comparison.ts';
import { CONNECTIONS } from './services.ts';
import type { PairAmounts } from './switching.ts';

/** Whose versions decide what the figures mean. */
const PACKAGES = ['@opentelemetry/sdk-node', 'express', 'pg', 'autocannon'];

export function pageOf(tables: string, date: string, amounts: Amounts & PairAmounts): string {
  return `# Benchmarks

Written by \`npm run bench\`; do not edit. Ratios compare within one run and are what counts: the absolute figures are
those of one machine on one day.

- Date: ${date}
- Machine: ${cpus().length} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), ${Math.round(totalmem() / 2 ** 30)} GiB, ${process.platform}; shared, so with noise
- Node ${process.versions.node}, ${PACKAGES.map((name) => `${name} ${versionOf(name)}`).join(', ')}

${tables}

## How it was measured

Four variants of one process. *bare*: nothing is loaded. *OpenTelemetry alone*: NodeSDK with the http, express, undici
and pg instrumentations, every request sampled, batch processor, OTLP to a sink on the same machine, Prometheus reader.
*OpenTelemetry with us*: \`--import otel-time-budget/register\` with the same settings. *us without tracing*: the same
with \`OTEL_TRACES_EXPORTER=none\`.

Two workloads. *service*: an Express 5 request that makes one query to a real PostgreSQL and one \`fetch\` to another
process. *hello*: plain \`node:http\`. Requests bring a budget in our own header. ${CONNECTIONS} connections, client in a process of
its own, everything on the loopback.

A round starts a process of each variant, sends ${amounts.warmUp.service} (service) or ${amounts.warmUp.hello} (hello) requests that are not counted, then
measures the four in turn, ${amounts.slices} slices of ${amounts.slice.service} or ${amounts.slice.hello} requests each, begun with another one each time; ${amounts.rounds} rounds, with new
processes. CPU time is user and system time of the measured process, all threads. Two processes of the same code
differ by a few per cent, which is why the ratio of one round means little and the spread is shown.

A request in flight is one that waits for its peer: ${amounts.held} at once, heap after a collection, less the heap when all
their connections are closed. So it has its two connections with it, and what they keep of requests before; *idle
afterwards* is what is left of it when it has been answered.

Our own part is measured over ${amounts.pairs} pairs of ${amounts.requests.service} (service) or ${amounts.requests.hello} (hello) requests, half of each pair with the
hooks on.

A scrape is taken while the process turns its loop without a pause; the longest time between two turns is what the
scrape held it for.

## Repeat it

\`\`\`
npm run bench              # about a quarter of an hour; writes this page
npm run bench -- --quick   # under a minute, one short round: shows that it runs, its figures are noise
\`\`\`
`;
}

function versionOf(name: string): string {
  const file = new URL(`../../node_modules/${name}/package.json`, import.meta.url);
  // Every package.json has a version.
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
