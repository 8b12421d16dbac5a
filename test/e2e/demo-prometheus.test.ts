/** The demo with --prometheus, as a user starts it: what it prints can be opened, and nothing is left at its end. */
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { type DemoRun, endDemos, expectNothingLeft, processesOf, startDemo } from '../support/demo-run.ts';
import { findProgram, findPrometheus3 } from '../support/real-program.ts';

const hasBoth = findPrometheus3() !== undefined && findProgram('otelcol') !== undefined;
const TIMEOUT_MS = 120_000;

afterEach(endDemos);

/** Until a condition holds; the test's own time limit ends it otherwise. */
async function until(run: DemoRun, holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) {
    if (run.child.exitCode !== null) throw new Error(`it ended: ${run.stderr}`);
    await sleep(100);
  }
}

async function running(): Promise<DemoRun> {
  const run = startDemo('--keep', '--prometheus', '--scenario', 'healthy');
  await until(run, () => run.stderr.includes('OTEL_EXPORTER_OTLP_ENDPOINT'));
  return run;
}

function printed(run: DemoRun, pattern: RegExp): string {
  const found = pattern.exec(run.stderr)?.[1];
  if (found === undefined) throw new Error(`no ${pattern} in ${run.stderr}`);
  return found;
}

function prometheusOf(run: DemoRun): number | undefined {
  // Not the shell that holds it.
  return processesOf(run).find(({ command }) => /^\S*prometheus --config/.test(command))?.pid;
}

/** What Prometheus answers at a path of its API. */
async function api(run: DemoRun, path: string): Promise<Record<string, unknown>> {
  const response = await fetch(`${printed(run, /Prometheus +(http\S+)/)}/api/v1/${path}`);
  // Its HTTP API.
  return ((await response.json()) as { data: Record<string, unknown> }).data;
}

/** The jobs that a query finds. */
async function jobs(run: DemoRun, query: string): Promise<string[]> {
  const { result } = await api(run, `query?query=${encodeURIComponent(query)}`);
  // The answer to an instant query.
  const series = result as readonly { readonly metric: Readonly<Record<string, string>> }[];
  return [...new Set(series.map(({ metric }) => metric.job ?? ''))].sort();
}

describe.skipIf(!hasBoth)('npm run demo -- --keep --prometheus', () => {
  test(
    'Prometheus has the services and the rules, the Collector keeps traces, and Ctrl-C leaves nothing',
    async () => {
      const run = await running();
      const services = ['gateway', 'inventory', 'orders'];
      await until(run, async () => (await jobs(run, 'up == 1')).join() === `collector,${services}`);
      const queries = [...run.stderr.matchAll(/--data-urlencode 'query=(.*)'/g)].map(
        ([, query]) => query ?? '',
      );
      expect(queries).toHaveLength(3);
      // Callers go on, and among what they ask are requests whose time runs out.
      for (const query of queries) await until(run, async () => (await jobs(run, query)).length > 0);
      await until(run, async () => (await jobs(run, queries[0] ?? '')).join() === String(services));

      const shipped = parse(readFileSync('dashboards/alerts/time-budget.rules.yml', 'utf8'));
      const { groups } = await api(run, 'rules');
      // Its HTTP API.
      const loaded = groups as readonly { readonly name: string; readonly rules: readonly unknown[] }[];
      expect(loaded.map(({ name, rules }) => [name, rules.length])).toEqual([
        ['time-budget', shipped.groups[0].rules.length],
      ]);
      expect((await fetch(printed(run, /active alerts +(http\S+)/))).status).toBe(200);

      const traces = printed(run, /tail -f (\S+)/);
      await until(run, () => readFileSync(traces, 'utf8').includes('time_budget.outcome=expired'));
      run.child.kill('SIGINT');
      expect(await run.ended).toBe(130);
      expectNothingLeft(run);
    },
    TIMEOUT_MS,
  );

  test(
    'a service of somebody else reaches this Prometheus through the Collector; killed, the player takes all with it',
    async () => {
      const run = await running();
      const otlp = printed(run, /OTEL_EXPORTER_OTLP_ENDPOINT=(http\S+)/);
      const timeUnixNano = String(BigInt(Date.now()) * 1_000_000n);
      const gauge = { dataPoints: [{ asInt: '7', timeUnixNano }] };
      const sent = await fetch(`${otlp}/v1/metrics`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({
          resourceMetrics: [
            {
              resource: { attributes: [{ key: 'service.name', value: { stringValue: 'mine' } }] },
              scopeMetrics: [{ metrics: [{ name: 'of_mine', gauge }] }],
            },
          ],
        }),
      });
      expect(sent.status).toBe(200);
      await until(run, async () => (await jobs(run, 'of_mine')).join() === 'mine');
      run.child.kill('SIGKILL');
      await run.ended;
      for (let i = 0; i < 200 && processesOf(run).length > 0; i++) await sleep(50);
      expect(processesOf(run)).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test.runIf(process.platform === 'linux')(
    'Ctrl-C while Prometheus starts: 130, nothing said, nothing left',
    async () => {
      const run = startDemo('--keep', '--prometheus', '--scenario', 'healthy');
      await until(run, () => prometheusOf(run) !== undefined);
      run.child.kill('SIGINT');
      expect({ code: await run.ended, stderr: run.stderr }).toEqual({ code: 130, stderr: '' });
      expectNothingLeft(run);
    },
    TIMEOUT_MS,
  );

  test.runIf(process.platform === 'linux')(
    'when Prometheus dies, so does the demo: exit code 1, its last words, nothing left',
    async () => {
      const run = await running();
      const pid = prometheusOf(run);
      if (pid === undefined) throw new Error('Prometheus does not run');
      process.kill(pid, 'SIGKILL');
      expect(await run.ended).toBe(1);
      // 128 and the number of the signal.
      expect(run.stderr).toContain('Prometheus ended (137):\n');
      expectNothingLeft(run);
    },
    TIMEOUT_MS,
  );
});
