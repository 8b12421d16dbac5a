/** Repeats over real processes: a dependency that recovers in time and one that does not, and a proxy that repeats. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Child, testFile } from '../support/child.ts';
import { ask as askPort, close, listen } from '../support/loopback.ts';
import { type Metrics, Service } from '../support/service.ts';

let folder: string;
let services: { stop(): Promise<unknown> }[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'time-budget-retries-'));
  services = [];
});

afterEach(async () => {
  await Promise.all(services.map((each) => each.stop()));
  rmSync(folder, { recursive: true });
});

function configured(lines: readonly string[]): string {
  const file = join(folder, 'time-budget.yaml');
  writeFileSync(file, `version: 1\n${lines.join('\n')}\n`);
  return file;
}

async function startService(script: string, env: Readonly<Record<string, string>>): Promise<Service> {
  const service = await Service.start(script, { env: { OTEL_TRACES_EXPORTER: 'none', ...env } });
  services.push(service);
  return service;
}

describe('T-22: a dependency that recovers before the deadline of the caller, and one that does not', () => {
  async function start(): Promise<{ readonly stock: Child; readonly service: Service }> {
    const stock = new Child([testFile('apps/recovering.mjs')], {});
    services.push({ stop: () => stock.stop('SIGKILL') });
    const port = await stock.port();
    const service = await startService('apps/retrying.mjs', {
      NEXT_URL: `http://127.0.0.1:${port}`,
      TIME_BUDGET_CONFIG: configured([
        'dependencies:',
        `  stock: { match: ["127.0.0.1:${port}"], mode: enforce, typical_ms: 20 }`,
      ]),
    });
    return { stock, service };
  }

  const attempts = (metrics: Metrics) => metrics.value('time_budget_attempts_total', { dependency: 'stock' });
  const outcomes = (metrics: Metrics) =>
    Object.fromEntries(
      metrics.samples
        .filter(({ name, value }) => name === 'time_budget_outcomes_total' && value > 0)
        .map(({ labels, value }) => [labels.outcome, value]),
    );

  test('it recovers: a useful completion, and the repeat that rescued it', async () => {
    const { stock, service } = await start();
    const reply = askPort(service.port, { headers: { 'x-request-timeout-ms': '30000' } });
    await service.until((metrics) => attempts(metrics) >= 3);
    stock.signal('SIGUSR2');
    expect(await reply).toMatchObject({ status: 200, body: 'up' });
    const metrics = await service.until((each) => each.value('time_budget_outcomes_total') === 1);
    expect(outcomes(metrics)).toEqual({ useful: 1 });
    const results = (result: string) => metrics.value('time_budget_repeat_results_total', { result });
    expect([results('useful'), results('late')]).toEqual([1, 0]);
    expect(results('failed')).toBe(attempts(metrics) - 2);
    expect(metrics.value('time_budget_refused_total', { attempt: 'repeat' })).toBe(0);
  });

  test('it does not: the repeats stop in time, and the caller gets the answer of the dependency', async () => {
    const { service } = await start();
    const reply = await askPort(service.port, { headers: { 'x-request-timeout-ms': '2000' } });
    expect(reply).toMatchObject({ status: 503, body: 'down' });
    const metrics = await service.until((each) => each.value('time_budget_outcomes_total') === 1);
    // Within the tolerance of the deadline a 503 says that the time was up; before it, that the work has failed.
    const [outcome] = Object.keys(outcomes(metrics));
    expect(['failed', 'expired']).toContain(outcome);
    expect(attempts(metrics)).toBeGreaterThanOrEqual(2);
    const refused = (reason: string) =>
      metrics.value('time_budget_refused_total', { attempt: 'repeat', reason });
    expect(refused('does_not_fit_retry') + refused('deadline_exceeded_before_dispatch')).toBe(1);
    expect(metrics.value('time_budget_repeat_results_total', { result: 'useful' })).toBe(0);
    expect(metrics.value('time_budget_violations_total', { kind: 'started_after_end' })).toBe(0);
  });
});

describe('I10: a proxy that makes two attempts more, which nobody asked for', () => {
  test('one call of the client, three executions of the server; which are repeats is seen in the server', async () => {
    const server = await startService('apps/attempts.mjs', { ATTEMPTS: '1' });
    // As a mesh does by default: 503 is tried again, and the attempt is told where the route includes it.
    const mesh = http.createServer(async (request, response) => {
      let status = 503;
      for (let attempt = 1; attempt <= 3 && status === 503; attempt++) {
        const headers = { ...request.headers, 'x-envoy-attempt-count': String(attempt) };
        const sent = Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name, String(value)]),
        );
        status = (await askPort(server.port, { path: request.url ?? '/', headers: sent })).status;
      }
      response.writeHead(status).end();
    });
    const client = await startService('apps/attempts.mjs', {
      ATTEMPTS: '1',
      CLIENT: 'http',
      NEXT_URL: `http://127.0.0.1:${await listen(mesh)}`,
    });
    try {
      expect((await askPort(client.port, { path: '/orders/1' })).status).toBe(503);
    } finally {
      await close(mesh);
    }
    const made = await client.until((metrics) => metrics.value('time_budget_attempts_total') === 1);
    const executed = await server.until((metrics) => metrics.value('time_budget_outcomes_total') === 3);
    expect(made.value('time_budget_attempts_total', { kind: 'original', owner: 'none' })).toBe(1);
    const [admitted, retried] = ['admitted', 'retried'].map((name) =>
      executed.value(`time_budget_${name}_total`),
    );
    // Admitted / (admitted - retried), the rule of docs/attempts.md: three attempts for one operation.
    expect([admitted, retried]).toEqual([3, 2]);
  });
});
