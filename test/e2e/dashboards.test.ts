/**
 * D-01 to D-38 by data: every query of every panel on a real Prometheus that scrapes real services, and on one that has
 * nothing. Skipped, and said so, where Prometheus is not installed.
 */
import type { Dashboard } from '@grafana/grafana-foundation-sdk/dashboard';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { buildDashboard } from '../../dashboards/board.ts';
import { BOARDS } from '../../dashboards/boards.ts';
import { panelsOf, placeOf, queriesOf, variableValues } from '../../dashboards/lint/place.ts';
import { DEFAULT_OPTIONS } from '../../dashboards/options.ts';
import { type DashboardStage, IDLE, startDashboardStage } from '../support/dashboard-stage.ts';
import { isPrometheusInstalled, Prometheus, type Series } from '../support/prometheus.ts';

const isInstalled = isPrometheusInstalled();
if (!isInstalled) console.warn('SKIPPED: prometheus and promtool are not on the PATH; .ci/run installs them');

interface Asked {
  readonly place: string;
  readonly uid: string;
  readonly panel: number;
  readonly expr: string;
  readonly legend: string;
  readonly isTable: boolean;
}

const ASKED: readonly Asked[] = BOARDS.map((board) => buildDashboard(board, DEFAULT_OPTIONS)).flatMap(asked);

function asked(dashboard: Dashboard): Asked[] {
  const choices = variableValues(dashboard);
  return panelsOf(dashboard).flatMap((panel) =>
    queriesOf(panel).flatMap((query) => {
      if (query.expr === undefined) return [];
      const first = Object.fromEntries(
        Object.entries(choices).map(([name, values]) => [name, values.at(-1) ?? '']),
      );
      const fill = (text: string) => text.replace(/\$(\w+)/g, (whole, name: string) => first[name] ?? whole);
      return {
        place: placeOf(dashboard, panel, query),
        uid: dashboard.uid ?? '',
        panel: panel.id ?? 0,
        expr: fill(query.expr),
        legend: fill(query.legendFormat ?? ''),
        isTable: panel.type === 'table',
      };
    }),
  );
}

/** What Grafana puts in, with everything chosen that is not named. */
function filled(expr: string, rangeS: number, chosen: Readonly<Record<string, string>> = {}): string {
  return expr
    .replaceAll(/\$__(rate_interval|range)/g, `${rangeS}s`)
    .replaceAll(/\$(\w+)/g, (_, name: string) => chosen[name] ?? '.*');
}

/** A backlog that does not drain is the one answer that is infinite, on purpose. */
function isNumeric({ uid, panel }: Asked, { value }: Series): boolean {
  return Number.isFinite(value) || (value === Infinity && uid === 'time-budget-queues' && panel === 22);
}

describe.skipIf(!isInstalled)('every query of every panel', () => {
  let stage: DashboardStage;
  let answers: ReadonlyMap<Asked, readonly Series[]>;

  const ask = (one: Asked, chosen: Readonly<Record<string, string>> = {}) =>
    stage.prometheus.query(filled(one.expr, stage.rangeS, chosen), stage.atS);

  beforeAll(async () => {
    stage = await startDashboardStage();
    const all = new Map<Asked, readonly Series[]>();
    for (const one of ASKED) all.set(one, await ask(one));
    answers = all;
  }, 180_000);
  afterAll(async () => stage?.stop());

  const places = (isWrong: (one: Asked, series: readonly Series[]) => boolean) =>
    [...answers].filter(([one, series]) => isWrong(one, series)).map(([{ place }]) => place);

  test('has an answer', () => {
    expect(places((_, series) => series.length === 0)).toEqual([]);
  });

  test('N3: gives numbers, and no NaN', () => {
    expect(places((one, series) => !series.every((single) => isNumeric(one, single)))).toEqual([]);
  });

  test('has every label that its legend names, and no two series of one name', () => {
    const nameOf = ({ legend }: Asked, { labels }: Series) =>
      legend.replace(/\{\{(\w+)\}\}/g, (_, label: string) => labels[label] ?? '?');
    expect(
      places((one, series) => {
        const names = series.map((single) => nameOf(one, single));
        return (
          !one.isTable && (new Set(names).size < names.length || names.some((name) => name.includes('?')))
        );
      }),
    ).toEqual([]);
  });

  /** The one query of a panel with this legend, for a part of the load. */
  async function value(
    board: string,
    panel: number,
    legend: string,
    chosen: Readonly<Record<string, string>>,
    labels: Readonly<Record<string, string>> = {},
  ): Promise<number | undefined> {
    const found = ASKED.filter(
      (one) => one.uid === `time-budget-${board}` && one.panel === panel && one.legend === legend,
    );
    const [one] = found;
    if (one === undefined || found.length > 1)
      throw new Error(`no one query "${legend}" in ${board} ${panel}`);
    const series = (await ask(one, chosen)).filter((single) =>
      Object.entries(labels).every(([key, wanted]) => single.labels[key] === wanted),
    );
    expect(series).toHaveLength(1);
    return series[0]?.value;
  }

  const shop = { job: 'shop' };

  test('D-05: 30 of 40 admitted requests ended usefully', async () => {
    const chosen = { ...shop, operation: 'GET /work|GET /slow', caller: 'web|batch' };
    expect(await value('overview', 11, 'useful', chosen)).toBeCloseTo(30 / 40, 1);
  });

  test('D-05: what was shed was offered and not admitted', async () => {
    expect(await value('overview', 12, 'refused', { ...shop, operation: 'GET /full' })).toBeCloseTo(1, 5);
    expect(await value('overview', 12, 'refused', { ...shop, operation: 'GET /work' })).toBe(0);
  });

  test('D-35: one caller gives too little time, the other does not', async () => {
    expect(await value('path', 13, '{{caller}}', shop, { caller: 'batch' })).toBeCloseTo(1, 5);
    expect(await value('path', 13, '{{caller}}', shop, { caller: 'web' })).toBe(0);
  });

  test('D-01: the verdict names the caller, with its share, and not the one beside it', async () => {
    const row = { job: 'shop', dependency: 'stock' };
    const verdict = async (caller: string) => value('dependencies', 11, 'verdict', shop, { ...row, caller });
    expect(await verdict('batch')).toBeOneOf([1, 1.25, 3]);
    expect(await verdict('web')).toBeOneOf([0, 0.25, 2]);
  });

  test('D-12: three attempts are 3 per original operation', async () => {
    const chosen = { ...shop, operation: 'GET /thrice' };
    expect(await value('retries', 21, '{{dependency}}', chosen, { dependency: 'price' })).toBeCloseTo(3, 1);
    expect(await value('retries', 21, '{{dependency}}', { ...shop, operation: 'GET /work' })).toBeCloseTo(
      1,
      5,
    );
  });

  test('D-03: the median of what arrives lies in the bucket of what was sent', async () => {
    const received = await value('path', 11, 'p50 {{caller}}', {
      ...shop,
      operation: 'GET /work',
      caller: 'web',
    });
    expect(received).toBeGreaterThan(1);
    expect(received).toBeLessThanOrEqual(2.5);
  });

  test('D-17: reserve and cap are drawn as they are configured', async () => {
    expect(await value('dependencies', 26, 'reserve {{dependency}}', { ...shop, dependency: 'stock' })).toBe(
      0.01,
    );
    expect(await value('dependencies', 26, 'cap {{dependency}}', { ...shop, dependency: 'stock' })).toBe(0.5);
  });

  test('D-21: the oldest and the useful life of a queue are its own', async () => {
    expect(await value('queues', 21, 'oldest {{queue}}', shop, { queue: 'outbox' })).toBeCloseTo(0.2, 2);
    expect(await value('queues', 21, 'useful life {{queue}}', shop, { queue: 'outbox' })).toBe(1);
  });

  test('D-36: a hop that gained time is named at both of its ends, and nowhere else', async () => {
    const table = ASKED.filter(({ uid, panel }) => uid === 'time-budget-waste' && panel === 31);
    const rows = (await Promise.all(table.map((one) => ask(one)))).flat();
    const resets = rows.filter(({ labels }) => labels.kind === 'reset').map(({ labels }) => labels.job);
    expect(resets.sort()).toEqual(['gateway', 'orders']);
  });

  test('N3: a service without traffic gives no NaN, and no error', async () => {
    const wrong: string[] = [];
    for (const one of ASKED) {
      const series = await ask(one, { job: IDLE });
      if (!series.every((single) => isNumeric(one, single))) wrong.push(one.place);
    }
    expect(wrong).toEqual([]);
  });
});

describe.skipIf(!isInstalled)('a Prometheus that has nothing', () => {
  let prometheus: Prometheus;

  beforeAll(async () => {
    prometheus = await Prometheus.start({ pages: {}, scrapeInterval: '1s' });
  });
  afterAll(async () => prometheus.stop());

  test('answers every query, with nothing but the limits', async () => {
    const answered: string[] = [];
    for (const one of ASKED) {
      const series = await prometheus.query(filled(one.expr, 60));
      if (series.length > 0) answered.push(one.legend);
    }
    expect(answered).toEqual(['limit of the alert']);
  });
});
