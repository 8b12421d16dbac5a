/** Reads a service's metrics where Prometheus would, and tells what a stretch of time added to them. */

export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** Fetches the samples of one endpoint. */
export async function scrape(url: string): Promise<Sample[]> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return parseExposition(await response.text());
}

const LINE = /^([A-Za-z_:][A-Za-z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const LABEL = /([A-Za-z_][A-Za-z0-9_]*)="((?:[^"\\]|\\.)*)",?/g;
const ESCAPES: Readonly<Record<string, string>> = { '\\n': '\n', '\\"': '"', '\\\\': '\\' };

/** The samples of Prometheus's text format. Comments and lines that are none are left out. */
export function parseExposition(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split('\n')) {
    const [, name, labels = '', value] = LINE.exec(line) ?? [];
    if (name !== undefined && value !== undefined) {
      samples.push({ name, labels: parseLabels(labels), value: parseValue(value) });
    }
  }
  return samples;
}

function parseLabels(text: string): Record<string, string> {
  const labels: Record<string, string> = {};
  for (const [, key = '', value = ''] of text.matchAll(LABEL)) {
    labels[key] = value.replace(/\\[n"\\]/g, (pair) => ESCAPES[pair] ?? pair);
  }
  return labels;
}

function parseValue(text: string): number {
  if (text === '+Inf') return Number.POSITIVE_INFINITY;
  return text === '-Inf' ? Number.NEGATIVE_INFINITY : Number(text);
}

/** What was added between two scrapes of one endpoint; series that did not move are left out. */
export function added(before: readonly Sample[], after: readonly Sample[]): Sample[] {
  const old = new Map(before.map((sample) => [seriesKey(sample), sample.value]));
  const changed: Sample[] = [];
  for (const sample of after) {
    const value = sample.value - (old.get(seriesKey(sample)) ?? 0);
    if (value !== 0) changed.push({ ...sample, value });
  }
  return changed;
}

function seriesKey({ name, labels }: Sample): string {
  return JSON.stringify([name, Object.entries(labels).sort()]);
}
