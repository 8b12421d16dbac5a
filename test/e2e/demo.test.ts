/** The demo as a user runs it: what every scenario must show. */
import { afterEach, describe, expect, test } from 'vitest';
import type { Counted, Figures } from '../../demo/figures.ts';
import type { Hop } from '../../demo/hops.ts';
import type { Played } from '../../demo/player.ts';
import { endDemos, expectNothingLeft, startDemo } from '../support/demo-run.ts';

afterEach(endDemos);

function hopOf({ hops }: Played, service: string): Hop {
  const hop = hops.find((one) => one.service === service);
  if (hop === undefined) throw new Error(`no hop of ${service}`);
  return hop;
}

function figuresOf({ figures }: Played, service: string): Figures {
  const found = figures.find((one) => one.service === service);
  if (found === undefined) throw new Error(`no figures of ${service}`);
  return found;
}

function namesOf(counted: readonly Counted[]): string[] {
  return counted.map(({ name }) => name);
}

/** Outcome, phase → dependency and cause: of the span, which must be those of the metrics as well. */
function verdictOf(played: Played, service: string): readonly (string | undefined)[] {
  const hop = hopOf(played, service);
  const { outcomes, expiries, causes } = figuresOf(played, service);
  const isNone = hop.expiryDependency === undefined || hop.expiryDependency === 'none';
  const where = isNone ? hop.expiryPhase : `${hop.expiryPhase} → ${hop.expiryDependency}`;
  expect(namesOf(outcomes)).toEqual([hop.outcome]);
  if (hop.cause !== undefined) {
    expect(namesOf(expiries)).toEqual([where]);
    expect(namesOf(causes)).toEqual([hop.cause]);
  }
  return [hop.outcome, where, hop.cause];
}

const USEFUL = ['useful', undefined, undefined];
const EXPIRED_AT_GATEWAY = ['expired', 'request → orders', 'slow_dependency'];

describe('a whole run', () => {
  let scenarios = new Map<string, Played>();
  const played = (name: string): Played => {
    const found = scenarios.get(name);
    if (found === undefined) throw new Error(`${name} was not played`);
    return found;
  };

  test('prints one JSON document and nothing else, exits with 0 and leaves nothing behind', async () => {
    const run = startDemo('--json');
    expect({ code: await run.ended, stderr: run.stderr }).toEqual({ code: 0, stderr: '' });
    // What the demo prints with --json.
    const all = (JSON.parse(run.stdout) as { readonly scenarios: readonly Played[] }).scenarios;
    scenarios = new Map(all.map((one) => [one.scenario.name, one]));
    expect(scenarios.size).toBe(10);
    expectNothingLeft(run);
  }, 120_000);

  test.each([
    ['healthy', USEFUL, USEFUL],
    ['slow-dependency', EXPIRED_AT_GATEWAY, ['late', 'request → inventory', 'slow_dependency']],
    ['local-queue', EXPIRED_AT_GATEWAY, ['late', 'queue', 'spent_before_call']],
    ['pool-exhausted', EXPIRED_AT_GATEWAY, ['late', 'pool_wait → postgres', 'pool_saturated']],
    ['slow-query', EXPIRED_AT_GATEWAY, ['late', 'db_execution → postgres', 'slow_dependency']],
    ['client-leaves', ['cancelled', undefined, undefined], USEFUL],
    ['stalled-body', EXPIRED_AT_GATEWAY, ['late', 'response → inventory', 'slow_dependency']],
    ['blocked-loop', EXPIRED_AT_GATEWAY, ['late', 'event_loop → inventory', 'event_loop']],
    ['fresh-timeout', EXPIRED_AT_GATEWAY, ['late', 'request → inventory', 'slow_dependency']],
  ])('%s: gateway %j, orders %j', (name, gateway, orders) => {
    expect(verdictOf(played(name), 'gateway')).toEqual(gateway);
    expect(verdictOf(played(name), 'orders')).toEqual(orders);
  });

  test('unrealistic-budget: it is the caller, nowhere a dependency', () => {
    const one = played('unrealistic-budget');
    expect(verdictOf(one, 'gateway')).toEqual(['expired', 'request → orders', 'caller_budget_too_small']);
    expect(verdictOf(one, 'orders')[2]).not.toBe('slow_dependency');
    expect(verdictOf(one, 'inventory')).toEqual(['late', 'local', 'caller_budget_too_small']);
  });

  test('T-01: time only shrinks on its way down', () => {
    for (const [name, { hops, scenario }] of scenarios) {
      const received = [scenario.budgetMs, ...hops.map((hop) => hop.receivedMs ?? Number.NaN)];
      expect(
        hops.map(({ service }) => service),
        name,
      ).toEqual(['gateway', 'orders', 'inventory']);
      expect(received[1], name).toBe(scenario.budgetMs);
      for (const [i, ms] of received.slice(1).entries())
        expect(ms, name).toBeLessThanOrEqual(received[i] ?? 0);
    }
  });

  test('the terms of a hop add up to its time', () => {
    for (const { hops } of scenarios.values()) {
      for (const hop of hops) {
        expect((hop.leftMs ?? 0) + hop.toMs - hop.fromMs).toBeCloseTo((hop.deadlineMs ?? 0) - hop.fromMs, 3);
        for (const call of hop.calls) {
          const phasesMs = call.phases.reduce((sum, { fromMs, toMs }) => sum + toMs - fromMs, 0);
          expect(phasesMs).toBeLessThanOrEqual(call.toMs - call.fromMs + 0.01);
        }
      }
    }
  });

  test('client-leaves: the client is the source, and the call below goes on for nobody', () => {
    const one = played('client-leaves');
    expect(hopOf(one, 'gateway').cancelSource).toBe('client_disconnect');
    expect(namesOf(figuresOf(one, 'gateway').cancelSources)).toEqual(['client_disconnect']);
    expect(hopOf(one, 'gateway').postCancelMs).toBeGreaterThan(200);
    const http = figuresOf(one, 'gateway').postCancel.find(({ work }) => work === 'http → orders');
    expect(http?.ms).toBeCloseTo(hopOf(one, 'gateway').postCancelMs, -1);
  });

  test('fresh-timeout: the hop that gave more than was left is found, and the one that got it', () => {
    const one = played('fresh-timeout');
    expect(hopOf(one, 'gateway').calls.map((call) => call.resetViolation)).toEqual([true]);
    expect(hopOf(one, 'orders').calls.some((call) => call.resetViolation)).toBe(false);
    expect(figuresOf(one, 'gateway').violations).toEqual([{ name: 'reset', count: 1 }]);
    expect(figuresOf(one, 'orders').violations).toEqual([{ name: 'reset', count: 1 }]);
    expect(hopOf(one, 'orders').receivedMs).toBeLessThanOrEqual(600);
    expect(figuresOf(one, 'gateway').lateExecutionMs).toBeGreaterThan(200);
  });

  test('no other scenario has a reset, and no hook of ours failed', () => {
    for (const [name, { figures }] of scenarios) {
      expect(figures.map((one) => one.internalErrors)).toEqual([0, 0, 0]);
      const violations = figures.flatMap((one) => namesOf(one.violations));
      if (name !== 'fresh-timeout') expect(violations, name).not.toContain('reset');
    }
  });

  test('scrapes are no requests', () => {
    for (const [name, { figures }] of scenarios) {
      if (name.endsWith('queue') || name.startsWith('pool')) continue;
      for (const { verdicts } of figures) expect(namesOf(verdicts), name).toEqual(['accepted']);
    }
  });
});
