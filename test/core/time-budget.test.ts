import { describe, expect, test } from 'vitest';
import { Call } from '../../src/core/call.ts';
import { TimeBudget } from '../../src/core/time-budget.ts';

function budget(effectiveMs: number): TimeBudget {
  return new TimeBudget({
    arrivedAt: 0,
    startedAt: 0,
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

describe('the handler of a framework starts behind its middleware', () => {
  test('the way there is queue, also the part that had been taken for local work', () => {
    const request = budget(1000);
    request.handling(10);
    const call = new Call({ dependency: 'sessions', workKind: 'http' }, 30, request.deadlineAt, false);
    call.enter('request', 30);
    request.begin(call, 30, 30);
    call.end(70);
    request.end(70, 70);
    request.rehandle(80);
    request.close(100, 100, 'useful');
    expect(request.handlerAt).toBe(80);
    // 0 to 30 before the call of a middleware, 70 to 80 after it.
    expect(request.ledger.queueMs).toBe(40);
    expect(request.ledger.localMs).toBe(20);
    expect(request.ledger.totalMs()).toBe(100);
  });

  test('only the first counts, and the first listener no longer does', () => {
    const request = budget(1000);
    request.handling(10);
    request.rehandle(50);
    request.rehandle(70);
    request.handling(90);
    request.close(100, 100, 'useful');
    expect(request.handlerAt).toBe(50);
    expect(request.ledger.queueMs).toBe(50);
    expect(request.ledger.localMs).toBe(50);
  });

  test('time that ran out in a middleware ran out in the queue', () => {
    const request = budget(20);
    request.handling(0);
    const call = new Call({ dependency: 'sessions', workKind: 'http' }, 30, request.deadlineAt, false);
    call.enter('request', 30);
    request.begin(call, 30, 30);
    expect(request.ledger.expiry?.phase).toBe('local');
    call.end(40);
    request.end(40, 40);
    request.rehandle(50);
    request.close(60, 60, 'late');
    expect(request.ledger.expiry).toEqual({ phase: 'queue', call: undefined });
  });

  test('time that ran out in a call of a middleware stays there', () => {
    const request = budget(35);
    request.handling(0);
    const call = new Call({ dependency: 'sessions', workKind: 'http' }, 30, request.deadlineAt, false);
    call.enter('request', 30);
    request.begin(call, 30, 30);
    call.end(40);
    request.end(40, 40);
    request.rehandle(50);
    request.close(60, 60, 'late');
    expect(request.ledger.expiry).toEqual({ phase: 'request', call });
  });
});
