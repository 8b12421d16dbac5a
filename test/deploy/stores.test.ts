import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { METRICS, type MetricDefinition, prometheusName } from '../../src/telemetry/names.ts';
import { RULES } from '../support/promtool.ts';
import { findProgram } from '../support/real-program.ts';

const FOLDER = fileURLToPath(new URL('../../deploy/stores/', import.meta.url));
const PROMTOOL = findProgram('promtool');

const remoteWrites = readdirSync(FOLDER).filter((file) => file.startsWith('prometheus-remote-write-'));

function read(file: string) {
  return parse(readFileSync(join(FOLDER, file), 'utf8'));
}

/** As they stand in a store: a histogram is three. */
const names = Object.values(METRICS).flatMap((metric: MetricDefinition) => {
  const name = prometheusName(metric);
  return metric.type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name];
});

const records: string[] = parse(readFileSync(RULES, 'utf8')).groups.flatMap(
  (group: { rules: { record?: string }[] }) => group.rules.flatMap(({ record }) => record ?? []),
);

describe.each(remoteWrites)('%s', (file) => {
  it.skipIf(PROMTOOL === undefined)('is read by promtool', () => {
    const { status, stdout, stderr } = spawnSync(PROMTOOL ?? '', ['check', 'config', join(FOLDER, file)], {
      encoding: 'utf8',
    });
    expect(status, stdout + stderr).toBe(0);
  });

  it('sends every series of ours, every record and the alerts, and nothing else', () => {
    const [{ write_relabel_configs: relabel }] = read(file).remote_write;
    expect(relabel).toMatchObject([{ source_labels: ['__name__'], action: 'keep' }]);
    const kept = new RegExp(`^(?:${relabel[0].regex})$`);
    expect(names.length).toBeGreaterThan(100);
    expect(records.length).toBeGreaterThan(10);
    expect([...names, ...records, 'ALERTS', 'up'].filter((name) => !kept.test(name))).toEqual([]);
    expect(
      ['scrape_duration_seconds', 'node_cpu_seconds_total', 'my_time_budget_x'].filter((name) =>
        kept.test(name),
      ),
    ).toEqual([]);
  });
});

it('stream aggregation sums counters and histograms, and no gauge', () => {
  const [{ match }] = read('victoriametrics-stream-aggregation.yml');
  const [, pattern] = /^\{__name__=~"(.*)"\}$/.exec(match) ?? [];
  const summed = new RegExp(`^(?:${pattern})$`);
  const gauges = Object.values(METRICS).flatMap((metric: MetricDefinition) =>
    metric.type === 'gauge' ? [prometheusName(metric)] : [],
  );
  expect(gauges.filter((name) => summed.test(name))).toEqual([]);
  expect(names.filter((name) => !gauges.includes(name) && !summed.test(name))).toEqual([]);
});
