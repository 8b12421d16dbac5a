/** What a real Prometheus tells of its alerts. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Prometheus } from './prometheus.ts';

/** Of labels, those that tell which. */
const SHOWN = ['operation', 'caller', 'queue', 'mode', 'kind', 'label', 'dependency'];

/** `job Alert label …` of whatever fired within the last so many seconds, in order. */
export async function firedAlerts(prometheus: Prometheus, seconds: number): Promise<string[]> {
  const labels = ['job', 'alertname', ...SHOWN];
  const alerts = await prometheus.query(
    `count by (${labels.join(', ')}) (max_over_time(ALERTS{alertstate="firing"}[${seconds}s]))`,
  );
  return alerts.map((alert) => labels.flatMap((name) => alert.labels[name] ?? []).join(' ')).sort();
}

export interface FiringAlert {
  readonly name: string;
  /** Its annotations. */
  readonly texts: Readonly<Record<string, string>>;
}

/** The alerts of a job that fire now. */
export async function firingAlerts(prometheus: Prometheus, job: string): Promise<FiringAlert[]> {
  const answer = await fetch(`${prometheus.api}/api/v1/alerts`);
  // What the HTTP API answers.
  const { data } = (await answer.json()) as {
    data: {
      alerts: { labels: Record<string, string>; annotations: Record<string, string>; state: string }[];
    };
  };
  return data.alerts
    .filter(({ state, labels }) => state === 'firing' && labels.job === job)
    .map((alert) => ({ name: alert.labels.alertname ?? '', texts: alert.annotations }));
}

/** Texts of annotations whose template went wrong, with their alert. */
export function brokenTexts(alerts: readonly FiringAlert[]): string[] {
  return alerts
    .flatMap(({ name, texts }) => Object.values(texts).map((text) => `${name}: ${text}`))
    .filter((text) => /<error|<no value>|\{\{|NaN/.test(text));
}

/** Asks again and again until it holds; what throws does not. Throws, saying what did not come, after 75 s. */
export async function untilSeen(what: () => string, holds: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 75_000;
  while (!(await holds().catch(() => false))) {
    if (performance.now() > giveUpAt) throw new Error(`too late: ${what()}`);
    await sleep(250);
  }
}
