/** T-23: a queue service: uncertain acknowledgement, expired work, and replay that is deliberately bounded. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Metrics, Service } from '../support/service.ts';

const MAX_PER_SECOND = 20;

let service: Service;

beforeAll(async () => {
  service = await Service.start('apps/queue.mjs', { env: { MAX_PER_SECOND: String(MAX_PER_SECOND) } });
});

afterAll(async () => {
  await service?.stop();
});

interface State {
  readonly effects: number;
  readonly doneAt: readonly number[];
  readonly depth: number;
}

async function tell(path: string): Promise<State> {
  const response = await fetch(`${service.origin}${path}`, { method: 'POST' });
  // What the service of this test answers.
  return (await response.json()) as State;
}

const left = (metrics: Metrics, result: string) =>
  metrics.value('time_budget_queue_left_total', { queue: 'messages', result });
const gone = (metrics: Metrics) => metrics.value('time_budget_queue_left_total', { queue: 'messages' });
const entered = (metrics: Metrics) => metrics.value('time_budget_queue_entered_total', { queue: 'messages' });

describe('T-23', () => {
  test('an uncertain acknowledgement: unknown with its age; delivered again, it is known and has no second effect', async () => {
    await tell('/messages?id=pay-1&unacknowledged=1');
    const open = await service.until((metrics) => metrics.value('time_budget_unknown_open') === 1);
    expect(open.value('time_budget_outcomes_total', { operation: 'message', outcome: 'unknown' })).toBe(1);
    expect(open.value('time_budget_outcomes_total', { operation: 'message', outcome: 'failed' })).toBe(0);
    expect(open.value('time_budget_unknown_oldest_seconds', { operation: 'message' })).toBeGreaterThan(0);

    await tell('/messages?id=pay-1&redelivered=1');
    const again = await service.until(
      (metrics) => metrics.value('time_budget_duplicates_total', { ability: 'recognised' }) === 1,
    );
    expect(again.value('time_budget_duplicates_total', { ability: 'prevented' })).toBe(1);
    expect(again.value('time_budget_arrival_repeats_total', { owner: 'broker' })).toBe(1);
    expect(again.value('time_budget_queue_entered_repeats_total', { queue: 'messages' })).toBe(1);
    expect((await tell('/')).effects).toBe(1);

    await tell('/reconcile?id=pay-1');
    const closed = await service.metrics();
    expect(closed.value('time_budget_unknown_open')).toBe(0);
    expect(closed.value('time_budget_unknown_reconciled_total', { result: 'done' })).toBe(1);
    expect(closed.samples.some(({ labels }) => Object.values(labels).includes('pay-1'))).toBe(false);
  });

  test('L-16, T-34: expired when its turn comes: not run, and told so; entered = left + depth', async () => {
    const before = await service.metrics();
    const { effects } = await tell('/messages?id=stale&lifeMs=0');
    const after = await service.until((metrics) => left(metrics, 'expired') === left(before, 'expired') + 1);
    expect(left(after, 'started')).toBe(left(before, 'started'));
    expect(entered(after)).toBe(gone(after) + after.value('time_budget_queue_depth', { queue: 'messages' }));
    expect(after.value('time_budget_violations_total', { kind: 'no_disposition' })).toBe(0);
    expect((await tell('/')).effects).toBe(effects);
  });

  test('L-32: thirty messages at once are let run at the rate and no faster', async () => {
    const before = await service.metrics();
    const first = (await tell('/')).doneAt.length;
    await Promise.all(Array.from({ length: 30 }, (_, i) => tell(`/messages?id=old-${i}`)));
    const after = await service.until((metrics) => left(metrics, 'started') === left(before, 'started') + 30);
    const added = (name: string, labels = {}) => after.value(name, labels) - before.value(name, labels);
    expect(added('time_budget_replay_released_total', { queue: 'messages' })).toBe(30);
    expect(added('time_budget_workload_completed_total', { workload: 'replay' })).toBe(30);
    expect(after.value('time_budget_replay_limit', { queue: 'messages' })).toBe(MAX_PER_SECOND);
    const { doneAt } = await tell('/');
    const at = doneAt.slice(first);
    // Thirty have 29 gaps; the timer of the service may read a millisecond more than has passed.
    const tookMs = (at.at(-1) ?? 0) - (at[0] ?? 0);
    expect(tookMs).toBeGreaterThanOrEqual((29 * 1_000) / MAX_PER_SECOND - 5);
  });

  test('L-34: stopped while the dependency refuses, and let run on after it', async () => {
    await tell('/throttle?on=1');
    const before = await service.metrics();
    await tell('/messages?id=later');
    const stopped = await service.until(
      (metrics) => metrics.value('time_budget_replay_pauses_total', { stop: 'throttled' }) === 1,
    );
    const stops = (metrics: Metrics, stop: string) => metrics.value('time_budget_replay_stopped', { stop });
    expect([stops(stopped, 'throttled'), stops(stopped, 'latency')]).toEqual([1, 0]);
    expect(stopped.value('time_budget_replay_limit')).toBe(0);
    const released = 'time_budget_replay_released_total';
    expect(stopped.value(released)).toBe(before.value(released));
    await tell('/throttle?on=0');
    const running = await service.until((metrics) => metrics.value(released) === before.value(released) + 1);
    expect(stops(running, 'throttled')).toBe(0);
  });
});
