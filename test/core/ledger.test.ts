import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Call, phaseIndex } from '../../src/core/call.ts';
import { PHASES, type Phase } from '../../src/core/terms.ts';
import { TimeBudget } from '../../src/core/time-budget.ts';

function budget(effectiveMs: number | undefined, arrivedAt = 0, startedAt = arrivedAt): TimeBudget {
  return new TimeBudget({
    arrivedAt,
    startedAt,
    idleMs: 0,
    receivedMs: effectiveMs,
    effectiveMs,
    source: 'x_request_timeout_ms',
    verdict: 'accepted',
    caller: 'unknown',
    priority: 'unset',
    fromInstrumented: false,
  });
}

function begin(request: TimeBudget, dependency: string, at: number, phase: Phase = 'request'): Call {
  const call = new Call({ dependency, workKind: 'http' }, at, request.deadlineAt, false);
  call.enter(phase, at);
  // The loop is idle all the time unless a test says otherwise.
  request.begin(call, at, at);
  return call;
}

function end(request: TimeBudget, call: Call, at: number, lagMs = 0): void {
  call.end(at, lagMs);
  request.end(at, at);
}

function phaseMs(request: TimeBudget, dependency: string, phase: Phase): number {
  const term = request.ledger.terms.find((one) => one.dependency === dependency);
  return term?.phaseMs[phaseIndex(phase)] ?? 0;
}

describe('ledger', () => {
  test('a request with one call: queue, local, the phases of the call, local again', () => {
    const request = budget(1000);
    request.handling(20);
    const call = begin(request, 'orders', 50, 'connect');
    call.enter('request', 60);
    call.enter('response', 150);
    end(request, call, 170);
    request.close(180, 180, 'useful');
    expect(request.ledger.queueMs).toBe(20);
    expect(request.ledger.localMs).toBe(40);
    expect(phaseMs(request, 'orders', 'connect')).toBe(10);
    expect(phaseMs(request, 'orders', 'request')).toBe(90);
    expect(phaseMs(request, 'orders', 'response')).toBe(20);
    expect(request.ledger.totalMs()).toBe(180);
  });

  test('parallel calls are counted once: the one that ended last, before its start the other', () => {
    const request = budget(1000);
    request.handling(0);
    const first = begin(request, 'a', 0);
    const second = begin(request, 'b', 50);
    end(request, first, 100);
    end(request, second, 150);
    request.close(150, 150, 'useful');
    expect(phaseMs(request, 'a', 'request')).toBe(50);
    expect(phaseMs(request, 'b', 'request')).toBe(100);
    expect(request.ledger.totalMs()).toBe(150);
  });

  test('a call that ended inside a longer one takes nothing', () => {
    const request = budget(1000);
    request.handling(0);
    const long = begin(request, 'long', 0);
    const short = begin(request, 'short', 20);
    end(request, short, 40);
    end(request, long, 100);
    request.close(100, 100, 'useful');
    expect(phaseMs(request, 'short', 'request')).toBe(0);
    expect(phaseMs(request, 'long', 'request')).toBe(100);
  });

  test('what is still open at the end is counted up to the end', () => {
    const request = budget(100);
    request.handling(0);
    const call = begin(request, 'orders', 10);
    request.close(120, 120, 'expired');
    end(request, call, 500);
    expect(phaseMs(request, 'orders', 'request')).toBe(110);
    expect(request.ledger.totalMs()).toBe(120);
    expect(request.ledger.expiry).toEqual({ phase: 'request', call });
  });

  test('the wait for a busy loop is event_loop, not the dependency', () => {
    const request = budget(1000);
    request.handling(0);
    const call = begin(request, 'orders', 0);
    end(request, call, 300, 280);
    request.close(300, 300, 'useful');
    expect(phaseMs(request, 'orders', 'request')).toBe(20);
    expect(request.ledger.eventLoopMs).toBe(280);
    expect(request.ledger.totalMs()).toBe(300);
    expect(request.loopBlockedMs()).toBe(280);
  });

  test('F18: time from the arrival until this process saw the request is queue, and counts as blocked', () => {
    const request = budget(500, 0, 400);
    request.handling(401);
    request.close(600, 599, 'late');
    expect(request.ledger.queueMs).toBe(401);
    expect(request.ledger.localMs).toBe(199);
    expect(request.loopBlockedMs()).toBeGreaterThanOrEqual(400);
    expect(request.ledger.expiry?.phase).toBe('local');
  });

  test.each([
    ['queue', 5],
    ['local', 15],
    ['connect', 25],
    ['request', 35],
    ['response', 45],
    ['local', 55],
  ] as const)('an expiry in %s is found there, at %i', (phase, deadline) => {
    const request = budget(deadline);
    request.handling(10);
    const call = begin(request, 'orders', 20, 'connect');
    call.enter('request', 30);
    call.enter('response', 40);
    end(request, call, 50);
    request.close(60, 60, 'late');
    expect(request.ledger.expiry?.phase).toBe(phase);
  });

  test('a deadline on a border belongs to the phase before it: remaining 0 is expired', () => {
    const request = budget(30);
    request.handling(0);
    const call = begin(request, 'orders', 0, 'connect');
    call.enter('request', 30);
    end(request, call, 60);
    request.close(60, 60, 'late');
    expect(request.ledger.expiry?.phase).toBe('connect');
  });

  test('a request that ends before its deadline has no expiry', () => {
    const request = budget(61);
    request.handling(0);
    request.close(60, 60, 'useful');
    expect(request.ledger.expiry).toBeUndefined();
  });
});

describe('the ledger closes', () => {
  const PHASE = fc.constantFrom<Phase>('pool_wait', 'connect', 'tls', 'request', 'response', 'db_execution');
  const CALL = fc.record({
    dependency: fc.constantFrom('a', 'b', 'c'),
    startedAt: fc.integer({ min: 0, max: 900 }),
    steps: fc.array(fc.record({ phase: PHASE, ms: fc.integer({ min: 0, max: 80 }) }), {
      minLength: 1,
      maxLength: 6,
    }),
    lagMs: fc.integer({ min: 0, max: 60 }),
    stays: fc.boolean(),
  });
  const REQUEST = fc.record({
    calls: fc.array(CALL, { maxLength: 40 }),
    queueMs: fc.integer({ min: 0, max: 200 }),
    endAt: fc.integer({ min: 900, max: 1200 }),
    effectiveMs: fc.integer({ min: 1, max: 1500 }),
  });

  /** Plays a fan-out in the order of time. */
  function play(plan: typeof REQUEST extends fc.Arbitrary<infer T> ? T : never): TimeBudget {
    const request = budget(plan.effectiveMs, -10, 0);
    request.handling(plan.queueMs);
    const events: { at: number; run: (at: number) => void }[] = [];
    for (const one of plan.calls) {
      let call: Call | undefined;
      let at = one.startedAt;
      const first = one.steps[0]?.phase ?? 'request';
      events.push({ at, run: (now) => (call = begin(request, one.dependency, now, first)) });
      for (const step of one.steps) {
        events.push({ at, run: (now) => call?.enter(step.phase, now) });
        at += step.ms;
      }
      if (!one.stays)
        events.push({ at, run: (now) => call !== undefined && end(request, call, now, one.lagMs) });
    }
    events.sort((a, b) => a.at - b.at);
    for (const event of events) if (event.at <= plan.endAt) event.run(event.at);
    request.close(plan.endAt, plan.endAt, 'useful');
    return request;
  }

  test('over random fan-outs the terms add up to the time that passed', () => {
    fc.assert(
      fc.property(REQUEST, (plan) => {
        const request = play(plan);
        const left = plan.effectiveMs - request.ledger.totalMs();
        expect(request.ledger.totalMs()).toBeCloseTo(plan.endAt + 10, 6);
        expect(left).toBeCloseTo(request.remainingMs(plan.endAt) ?? Number.NaN, 6);
        const expired = plan.endAt + 10 >= plan.effectiveMs;
        expect(request.ledger.expiry !== undefined).toBe(expired);
      }),
      { numRuns: 2000, seed: 1 },
    );
  });

  test('and no longer do when a term is dropped', () => {
    let noticed = 0;
    for (const phase of PHASES) {
      const request = budget(1000);
      request.handling(10);
      const call = begin(request, 'orders', 20, phase);
      end(request, call, 100, phase === 'event_loop' ? 80 : 0);
      request.close(100, 100, 'useful');
      const term = request.ledger.terms[0];
      if (term !== undefined) term.phaseMs.fill(0);
      request.ledger.eventLoopMs = 0;
      if (Math.abs(request.ledger.totalMs() - 100) > 2) noticed++;
    }
    expect(noticed).toBe(PHASES.length);
  });

  test('a fan-out of more than 32 calls is shared out along the path that it had in the end', () => {
    const request = budget(1_000);
    request.handling(0);
    for (let at = 0; at < 300; at += 10) end(request, begin(request, 'short', at), at + 10);
    const first = begin(request, 'first', 310);
    const second = begin(request, 'second', 315);
    end(request, begin(request, 'short', 320), 321);
    end(request, first, 325);
    end(request, second, 326);
    request.close(326, 326, 'useful');
    // What was waited for was the second, and before it began the first.
    expect(phaseMs(request, 'first', 'request')).toBe(5);
    expect(phaseMs(request, 'second', 'request')).toBe(11);
    expect(phaseMs(request, 'short', 'request')).toBe(300);
    expect(request.ledger.totalMs()).toBe(326);
  });

  test('ten thousand calls beside a long one are folded on the way, and it still closes', () => {
    const request = budget(1e9);
    request.handling(0);
    const long = begin(request, 'long', 0);
    for (let i = 1; i <= 10_000; i++) end(request, begin(request, 'short', i * 10), i * 10 + 5);
    end(request, long, 200_000);
    request.close(200_000, 200_000, 'useful');
    expect(request.ledger.totalMs()).toBe(200_000);
  });
});
