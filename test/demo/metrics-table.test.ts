import { describe, expect, test } from 'vitest';
import { readFigures } from '../../demo/figures.ts';
import { drawMetricsTable } from '../../demo/metrics-table.ts';
import { plainText } from '../../demo/page.ts';
import { parseExposition } from '../../demo/scrape.ts';
import { METRICS, prometheusName } from '../../src/telemetry/names.ts';

const WHO = 'caller="unknown",operation="GET /orders/:id",priority="unset"';
const ADDED = parseExposition(`
time_budget_received_seconds_sum{caller="unknown",operation="GET /orders/:id"} 1.2
time_budget_received_seconds_count{caller="unknown",operation="GET /orders/:id"} 2
time_budget_received_seconds_bucket{caller="unknown",operation="GET /orders/:id",le="+Inf"} 2
time_budget_received_seconds_sum{caller="gateway",operation="GET /orders/:id"} 0.3
time_budget_received_seconds_count{caller="gateway",operation="GET /orders/:id"} 1
time_budget_received_seconds_sum{caller="unknown",operation="GET /reports/:day"} 9
time_budget_received_seconds_count{caller="unknown",operation="GET /reports/:day"} 1
time_budget_remaining_seconds_sum{operation="GET /orders/:id",point="before_call"} 0.3
time_budget_remaining_seconds_count{operation="GET /orders/:id",point="before_call"} 1
time_budget_call_phase_seconds_sum{dependency="postgres",phase="pool_wait"} 0.7
time_budget_call_phase_seconds_count{dependency="postgres",phase="pool_wait"} 1
time_budget_call_phase_seconds_sum{dependency="postgres",phase="response"} 0.0005
time_budget_call_phase_seconds_count{dependency="postgres",phase="response"} 1
time_budget_outcomes_total{${WHO},outcome="late"} 2
time_budget_expiries_total{dependency="none",phase="queue"} 1
time_budget_expiries_total{dependency="postgres",phase="pool_wait"} 1
time_budget_expiry_causes_total{operation="GET /orders/:id",cause="pool_saturated"} 1
time_budget_post_cancel_seconds_total{dependency="none",kind="handler",intended="no"} 0.4
time_budget_post_cancel_seconds_total{dependency="postgres",kind="sql",intended="no"} 0.25
time_budget_violations_total{kind="reset"} 1
`);

const figures = readFigures('orders', 'GET /orders/:id', ADDED);

describe('figures of one operation', () => {
  test('means over callers, without other operations', () => {
    expect(figures.receivedMs?.count).toBe(3);
    expect(figures.receivedMs?.meanMs).toBeCloseTo(500, 9);
  });

  test('what did not happen is absent, not 0', () => {
    expect([figures.overrunMs, figures.queueMs, figures.handlerMs]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(figures.left.map(({ point }) => point)).toEqual(['before_call']);
  });

  test('counts by their label', () => {
    expect(figures.outcomes).toEqual([{ name: 'late', count: 2 }]);
    expect(figures.expiries.map(({ name }) => name)).toEqual(['queue', 'pool_wait → postgres']);
    expect(figures.postCancel.map(({ work }) => work)).toEqual(['handler', 'sql → postgres']);
  });
});

test('the table: a column per service, phases below 1 ms and rows without anything left out', () => {
  expect(drawMetricsTable([figures], 60).map(plainText)).toEqual([
    '  in their own metrics      orders',
    '  received                  500 ms ×3',
    '  pool_wait → postgres      700 ms',
    '  left before a call        300 ms',
    '  outcome                   late ×2',
    '  time ran out in           queue',
    '                            pool_wait → postgres',
    '  because of                pool_saturated',
    '  worked for nobody         400 ms handler',
    '                            250 ms sql → postgres',
    '  violations                reset',
  ]);
});

test('names as the exporter writes them', () => {
  expect(prometheusName(METRICS.outcomes)).toBe('time_budget_outcomes_total');
  expect(prometheusName(METRICS.callPhase)).toBe('time_budget_call_phase_seconds');
});
