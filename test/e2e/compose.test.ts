/** docker-compose.yml without Docker: test/support/compose-stage.ts says what is real and what is not. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ComposeStage } from '../support/compose-stage.ts';
import { findProgram, findPrometheus3 } from '../support/real-program.ts';

const hasAll =
  findPrometheus3() !== undefined &&
  ['otelcol', 'promtool', 'amtool', 'prometheus-alertmanager'].every(
    (name) => findProgram(name) !== undefined,
  );

describe.skipIf(!hasAll)('what docker-compose.yml starts', () => {
  const stage = new ComposeStage();

  /** What Prometheus answers at a path of its API. */
  async function api(path: string): Promise<Record<string, unknown>> {
    const response = await fetch(`http://127.0.0.1:${stage.port('prometheus:9090')}/api/v1/${path}`);
    // Its HTTP API.
    return ((await response.json()) as { data: Record<string, unknown> }).data;
  }

  async function labels(query: string, label: string): Promise<string[]> {
    const { result } = await api(`query?query=${encodeURIComponent(query)}`);
    // The answer to an instant query.
    const series = result as readonly { readonly metric: Readonly<Record<string, string>> }[];
    return series.map(({ metric }) => metric[label] ?? '').sort();
  }

  beforeAll(() => stage.start(), 60_000);
  afterAll(() => stage.stop(), 60_000);

  it.each(['gateway', 'orders', 'inventory', 'traffic', 'prometheus', 'alertmanager'])(
    'the health check of %s becomes good',
    async (name) => {
      await stage.until(`${name} is healthy`, () => stage.health(name) === 0);
    },
    70_000,
  );

  it('Prometheus scrapes the services and the collectors, and has their requests by outcome', async () => {
    // Prometheus scrapes itself too; which of them it comes to first is not said.
    const all = ['collector', 'collector', 'gateway', 'inventory', 'orders', 'prometheus'];
    await stage.until('all are up', async () => (await labels('up == 1', 'job')).length >= all.length);
    expect(await labels('up == 1', 'job')).toEqual(all);
    await stage.until('some requests ran out of time, and others did not', async () => {
      const outcomes = await labels(
        'sum by (outcome) (time_budget_outcomes_total{job="gateway"}) > 0',
        'outcome',
      );
      return ['expired', 'useful'].every((outcome) => outcomes.includes(outcome));
    });
  }, 120_000);

  it('Prometheus knows Alertmanager, and every rule works', async () => {
    await stage.until('Alertmanager is known', async () => {
      const { activeAlertmanagers } = await api('alertmanagers');
      return Array.isArray(activeAlertmanagers) && activeAlertmanagers.length === 1;
    });
    const evaluated = async () => {
      const { groups } = await api('rules');
      // The answer of that path.
      return (
        groups as readonly {
          readonly rules: readonly { readonly health: string; readonly lastError?: string }[];
        }[]
      ).flatMap(({ rules }) => rules);
    };
    await stage.until('all rules have run', async () =>
      (await evaluated()).every(({ health }) => health !== 'unknown'),
    );
    expect((await evaluated()).flatMap(({ lastError }) => lastError ?? [])).toEqual([]);
  }, 120_000);

  it('spans come through both collectors to the trace store', async () => {
    await stage.until('an export', () => stage.traceExports > 0);
  }, 70_000);
});
