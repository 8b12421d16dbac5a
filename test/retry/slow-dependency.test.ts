/** I18: a slow dependency, a timeout below it, and three repeats of each call; on a clock that stands still. */
import { beforeEach, describe, expect, test } from 'vitest';
import { enterScope, runInScope } from '../../src/current.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { counter, hasPromtool, type Phase, wrongAlerts } from '../support/promtool.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

const PER_SECOND = 100;
const SECONDS = 10;
const TIMEOUT_MS = 700;
const MOST_ATTEMPTS = 4;

let clock: VirtualClock;
let t: TestHooks;

beforeEach(() => {
  enterScope(undefined);
  clock = createVirtualClock();
  t = createTestHooks({ clock, config: { dependencies: { stock: { match: ['stock'] } } } });
});

/** One request, whose call is made again as often as it times out. */
function serve(arrivedAt: number, tookMs: number): void {
  clock.at = arrivedAt;
  const facts = { headers: {}, remoteAddress: '127.0.0.1', method: 'GET', path: '/' };
  const record = t.recorder.enter(facts, clock.at);
  t.recorder.handling(record, 'GET /', clock.at);
  const { calls } = t.hooks;
  const target = calls.target('stock', 80, 'http');
  const isSlow = tookMs > TIMEOUT_MS;
  for (let attempt = 1; attempt <= (isSlow ? MOST_ATTEMPTS : 1); attempt++) {
    const call = runInScope(record, () => calls.begin(target, clock.at, TIMEOUT_MS));
    calls.attempts.begin(call, { origin: target.origin, method: 'GET', path: '/items' }, undefined);
    call.enter('request', clock.at);
    calls.dispatch(call, clock.at);
    clock.at += Math.min(tookMs, TIMEOUT_MS);
    if (!isSlow) calls.attempts.head(call, 200, clock.at);
    calls.end(call, isSlow ? 'timed_out' : 'answered', clock.at);
  }
  t.recorder.finish(record, { completed: true, status: isSlow ? 504 : 200 }, clock.at);
}

interface Rates {
  readonly originals: number;
  readonly resends: number;
  readonly useful: number;
}

/** Per second, under the same demand. */
function serveFor(tookMs: number): Rates {
  const figures = () => [
    t.value('attempts', { kind: 'original' }),
    t.value('attempts', { kind: 'resend' }),
    t.value('outcomes', { outcome: 'useful' }),
  ];
  const before = figures();
  const startedAt = clock.at;
  for (let i = 0; i < PER_SECOND * SECONDS; i++) serve(startedAt + (i * 1_000) / PER_SECOND, tookMs);
  const [originals = 0, resends = 0, useful = 0] = figures().map(
    (value, index) => (value - (before[index] ?? 0)) / SECONDS,
  );
  return { originals, resends, useful };
}

describe('I18: p95 of the dependency 2 s, timeout 700 ms, three repeats, 100 requests per second', () => {
  test('from 100 attempts per second to 400, four for one operation, and nothing is useful', () => {
    expect(serveFor(50)).toEqual({ originals: 100, resends: 0, useful: 100 });
    expect(serveFor(2_000)).toEqual({ originals: 100, resends: 300, useful: 0 });
    expect(t.value('attempts', { owner: 'unknown' })).toBe(300 * SECONDS);
    expect(t.value('repeatResults', { result: 'timed_out' })).toBe(300 * SECONDS);
  });

  test.skipIf(!hasPromtool)('the alert fires within its ten minutes', () => {
    const [healthy, slow] = [serveFor(50), serveFor(2_000)];
    const series = (figure: (rates: Rates) => number): string => {
      const phases: Phase[] = [
        [90, figure(healthy)],
        [30, figure(slow)],
      ];
      return counter(...phases);
    };
    const attempts = 'time_budget_attempts_total{job="shop",instance="a",dependency="stock",operation="GET"';
    const fired = 'RetryAmplification job=shop dependency=stock';
    const all = {
      [`${attempts},kind="original",owner="none"}`]: series(({ originals }) => originals),
      [`${attempts},kind="resend",owner="unknown"}`]: series(({ resends }) => resends),
      'time_budget_outcomes_total{job="shop",instance="a",operation="GET",outcome="useful"}': series(
        ({ useful }) => useful,
      ),
    };
    expect(wrongAlerts(all, { 90: [], 98: [], 104: [fired], 119: [fired] })).toBe(undefined);
  });
});
