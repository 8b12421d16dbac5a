import { getEventListeners } from 'node:events';
import { setTimeout as later } from 'node:timers/promises';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { phaseIndex } from '../../src/core/call.ts';
import { enterScope, runInScope } from '../../src/current.ts';
import { detach, signal } from '../../src/index.ts';
import type { RequestRecord } from '../../src/records.ts';
import { backoff, mayRetry, type RetryAsk, retryBudget } from '../../src/retry/index.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

const BUSY = { status: 503 };
const BUCKET = { model: 'token_bucket', ratio: 0.1, reservePerSecond: 0.1, ttlMs: 10_000 } as const;

let clock: VirtualClock;
let t: TestHooks;
const started: TestHooks[] = [];

function start(config: ConfigOptions = {}): void {
  for (const one of started.splice(0)) deactivateRecorder(one.recorder);
  clock = createVirtualClock();
  t = createTestHooks({ clock, config });
  started.push(t);
  activateRecorder(t.recorder);
}

function enter(budgetMs?: number): RequestRecord {
  const headers = budgetMs === undefined ? {} : { 'x-request-timeout-ms': String(budgetMs) };
  const record = t.recorder.enter(
    { headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' },
    clock.at,
  );
  t.recorder.handling(record, 'GET /', clock.at);
  return record;
}

function finish(record: RequestRecord): void {
  t.recorder.finish(record, { completed: true, status: 200 }, clock.at);
}

/** One call to a dependency, sent at once, that has the answer after `ms`. */
function call(dependency: string, status: number, ms = 1): void {
  const { calls } = t.hooks;
  const one = calls.begin(calls.target(dependency, 80, 'http'), clock.at);
  one.enter('request', clock.at);
  calls.dispatch(one, clock.at);
  one.status = status;
  clock.at += ms;
  calls.end(one, 'answered', clock.at);
}

const ask = (more: Partial<RetryAsk> = {}): RetryAsk => ({
  dependency: 'stock',
  error: BUSY,
  attempt: 1,
  maxAttempts: 3,
  ...more,
});

beforeEach(() => {
  enterScope(undefined);
  start({ mode: 'enforce' });
});

afterEach(() => {
  for (const one of started.splice(0)) deactivateRecorder(one.recorder);
});

describe('the answer', () => {
  test('allowed without a budget: the limit of the request pays, and nothing is counted', () => {
    expect(mayRetry(ask({ backoffMs: 20 }))).toEqual({
      isAllowed: true,
      refusal: undefined,
      isBlocked: false,
      paidBy: 'request_limit',
      attempt: 2,
      remainingMs: undefined,
      backoffMs: 20,
      expectedAttemptMs: undefined,
      reserveMs: 0,
      neededMs: 20,
      isEnforced: true,
      onEmpty: undefined,
      policyVersion: undefined,
    });
    expect(t.value('refused', { attempt: 'repeat' })).toBe(0);
  });

  test.each([
    ['not_retryable', ask({ error: { status: 400 }, attempt: 9 })],
    ['per_request_limit', ask({ attempt: 3 })],
    ['retry_budget_empty', ask()],
  ] as const)('%s, in the order of the rule', (reason, question) => {
    retryBudget('stock', { ...BUCKET, reservePerSecond: 0, policyVersion: 'v7', onEmpty: 'degrade' });
    const answer = mayRetry(question);
    expect(answer).toMatchObject({ isAllowed: false, refusal: reason, paidBy: 'none', policyVersion: 'v7' });
    expect(answer.onEmpty).toBe(reason === 'retry_budget_empty' ? 'degrade' : undefined);
    expect(t.value('refused', { dependency: 'stock', attempt: 'repeat', reason })).toBe(1);
    expect(t.value('refused', { attempt: 'repeat' })).toBe(1);
    expect(t.value('retryWithdrawals', { result: 'refused' })).toBe(reason === 'retry_budget_empty' ? 1 : 0);
  });

  test('R-11: backoff + expected attempt + reserve fits at equality, and not a millisecond above', () => {
    start({ mode: 'enforce', reserveMs: 30, dependencies: { stock: { typicalMs: 80 } } });
    const record = enter(200);
    runInScope(record, () => {
      expect(mayRetry(ask({ backoffMs: 90 }))).toMatchObject({ isAllowed: true, neededMs: 200 });
      expect(mayRetry(ask({ backoffMs: 91 }))).toMatchObject({
        isAllowed: false,
        refusal: 'does_not_fit_retry',
        remainingMs: 200,
        expectedAttemptMs: 80,
        reserveMs: 30,
        neededMs: 201,
      });
      expect(mayRetry(ask({ backoffMs: 91, expectedAttemptMs: 79 })).isAllowed).toBe(true);
    });
  });

  test('a budget whose name comes after the cap of labels is fed and asked, and is told as other', () => {
    start({ mode: 'enforce', labels: { dependencies: 1 } });
    call('first', 200);
    retryBudget('stock', { ...BUCKET, ratio: 1, reservePerSecond: 0, ttlMs: 10_000 });
    retryBudget('price', { ...BUCKET, reservePerSecond: 0 });
    call('stock', 503);
    expect(t.value('retryDeposits', { dependency: 'other', source: 'original' })).toBe(1);
    const record = enter(5_000);
    runInScope(record, () => {
      expect(mayRetry(ask())).toMatchObject({ isAllowed: true, paidBy: 'retry_budget' });
      expect(mayRetry(ask({ dependency: 'price' })).refusal).toBe('retry_budget_empty');
      // Has the label of the one that was paid for, and is no repeat.
      call('tax', 200);
      call('price', 200);
      call('stock', 200);
    });
    finish(record);
    expect(t.value('retryDeposits', { source: 'refund' })).toBe(0);
    expect(t.value('retryDeposits', { source: 'original' })).toBe(2);
    expect(mayRetry(ask()).refusal).toBe('retry_budget_empty');
  });

  test.each([undefined, null, 5, 'stock', {}])('asked with %o it says no, and throws nothing', (none) => {
    // Plain JavaScript can give anything; started or not.
    const run = () => mayRetry(none as unknown as RetryAsk);
    expect(run()).toMatchObject({ isAllowed: false, refusal: 'per_request_limit' });
    expect(runInScope(enter(100), run)).toMatchObject({ isAllowed: false, refusal: 'per_request_limit' });
    deactivateRecorder(t.recorder);
    expect(run()).toMatchObject({ isAllowed: false, refusal: 'per_request_limit' });
  });

  test('what is no number was not said, and a text or a BigInt says one', () => {
    retryBudget('stock', { ...BUCKET, reservePerSecond: 2 });
    const given = (value: unknown) => {
      const number = value as number;
      return { backoffMs: number, retryAfterMs: number, expectedAttemptMs: number, cost: number };
    };
    runInScope(enter(5_000), () => {
      for (const none of [Symbol('5'), {}, Object.create(null), 'soon', Number.NaN]) {
        expect(mayRetry(ask(given(none)))).toMatchObject({ isAllowed: true, backoffMs: 0, neededMs: 0 });
        expect(mayRetry(ask({ attempt: none as number })).refusal).toBe('per_request_limit');
        expect(mayRetry(ask({ maxAttempts: none as number })).refusal).toBe('per_request_limit');
      }
      for (const two of ['2', 2n] as unknown[]) {
        const number = two as number;
        expect(mayRetry(ask({ ...given(two), attempt: number, maxAttempts: 3 }))).toMatchObject({
          isAllowed: true,
          attempt: 3,
          backoffMs: 2,
          neededMs: 4,
        });
        expect(mayRetry(ask({ maxAttempts: number })).isAllowed).toBe(true);
      }
    });
  });

  test('R-30: what is refused for its time costs no token', () => {
    retryBudget('stock', BUCKET);
    const record = enter(100);
    runInScope(record, () => {
      expect(mayRetry(ask({ backoffMs: 101 })).refusal).toBe('does_not_fit_retry');
    });
    expect(t.value('retryWithdrawals')).toBe(0);
    expect(mayRetry(ask()).paidBy).toBe('retry_budget');
  });

  test('the caller has gone: refused in enforce, and let through in work that was detached', () => {
    const record = enter();
    t.recorder.cancel(record, 'client_disconnect', clock.at);
    runInScope(record, () => {
      expect(mayRetry(ask()).refusal).toBe('caller_gone');
      expect(detach(() => mayRetry(ask())).isAllowed).toBe(true);
    });
  });

  test('blocked by a breaker: no, without a refusal and without a token, in every mode', () => {
    for (const mode of ['observe', 'enforce'] as const) {
      start({ mode });
      retryBudget('stock', BUCKET);
      expect(mayRetry(ask({ isBlocked: true }))).toMatchObject({
        isAllowed: false,
        isBlocked: true,
        refusal: undefined,
      });
      expect([t.value('retryWithdrawals'), t.value('refused', { attempt: 'repeat' })]).toEqual([0, 0]);
    }
  });

  test.each(['observe', 'propagate'] as const)(
    '%s refuses nothing but what the loop itself rules out',
    (mode) => {
      start({ mode });
      retryBudget('stock', { ...BUCKET, reservePerSecond: 0 });
      const record = enter(100);
      runInScope(record, () => {
        const late = mayRetry(ask({ backoffMs: 101 }));
        expect([late.isAllowed, late.isEnforced, late.refusal]).toEqual([true, false, 'does_not_fit_retry']);
        expect(mayRetry(ask()).isAllowed).toBe(true);
        expect(mayRetry(ask({ attempt: 3 })).isAllowed).toBe(false);
        expect(mayRetry(ask({ error: { status: 404 } })).isAllowed).toBe(false);
      });
      expect(t.value('refused', { reason: 'retry_budget_empty', attempt: 'repeat' })).toBe(1);
    },
  );

  test('the mode is that of the calls to the dependency', () => {
    start({ dependencies: { stock: { mode: 'enforce', match: ['stock.internal:8080'] } } });
    const modes = ['stock', 'stock.internal:8080', 'other.internal', '[::1]'].map(
      (dependency) => mayRetry(ask({ dependency })).isEnforced,
    );
    expect(modes).toEqual([true, true, false, false]);
  });

  test('a peer’s Retry-After lengthens the wait, and never past what is left', () => {
    const record = enter(3_000);
    const busy = { status: 429, headers: new Headers({ 'retry-after': '2' }) };
    runInScope(record, () => {
      expect(mayRetry(ask({ error: busy, backoffMs: 10 }))).toMatchObject({
        isAllowed: true,
        backoffMs: 2_000,
      });
      expect(mayRetry(ask({ error: busy, retryAfterMs: 4_000 })).refusal).toBe('does_not_fit_retry');
    });
  });

  test('hostile errors and a classify that throws take nobody down', () => {
    const hostile = new Proxy(
      {},
      {
        get: () => {
          throw new Error('no');
        },
      },
    );
    const classify = () => {
      throw new Error('no');
    };
    expect(mayRetry(ask({ error: hostile })).isAllowed).toBe(true);
    expect(mayRetry(ask({ classify })).isAllowed).toBe(true);
    expect(mayRetry(ask({ error: undefined, isSafe: false })).refusal).toBe('not_retryable');
    expect(mayRetry(ask({ classify: () => 'auth' })).refusal).toBe('not_retryable');
  });

  test('what plain JavaScript leaves out takes nobody down, and is no wait of weeks', () => {
    expect(mayRetry(ask({ dependency: undefined as unknown as string })).isAllowed).toBe(true);
    expect(mayRetry(ask({ backoffMs: Number.NaN, retryAfterMs: Number.NaN })).backoffMs).toBe(0);
  });

  test('not started: class and attempts alone decide', () => {
    deactivateRecorder(t.recorder);
    expect(mayRetry(ask()).isAllowed).toBe(true);
    expect(mayRetry(ask({ attempt: 3 })).refusal).toBe('per_request_limit');
  });
});

describe('feeding', () => {
  test('originals pay in when they are sent, and repeats do not', () => {
    retryBudget('stock', { ...BUCKET, ratio: 0.5 });
    const record = enter();
    runInScope(record, () => {
      call('stock', 503);
      expect(mayRetry(ask()).isAllowed).toBe(true);
      call('stock', 200);
      call('price', 200);
      call('stock', 200);
    });
    expect(t.value('retryDeposits', { source: 'original' })).toBe(2);
    expect(retryBudget('stock').balance(clock.at)).toBe(1 + 0.5 * 2 - 1);
  });

  test('a connection that was refused was an original too', () => {
    retryBudget('stock', BUCKET);
    const { calls } = t.hooks;
    calls.end(calls.begin(calls.target('stock', 80, 'http'), clock.at), 'failed', clock.at);
    expect(t.value('retryDeposits', { source: 'original' })).toBe(1);
  });

  test('waiting for a pool is no original', () => {
    retryBudget('stock', BUCKET);
    const { calls } = t.hooks;
    const wait = calls.begin(calls.target('stock', 80, 'sql'), clock.at);
    wait.teaches = false;
    calls.end(wait, 'answered', clock.at);
    expect(t.value('retryDeposits')).toBe(0);
  });

  test('successes pay in where they feed it; an error answer is none', () => {
    retryBudget('stock', { ...BUCKET, feed: 'success' });
    for (const status of [200, 404, 429, 500, 503, 204]) call('stock', status);
    expect(t.value('retryDeposits', { source: 'success' })).toBe(3);
    expect(t.value('retryDeposits', { source: 'original' })).toBe(0);
  });

  test('in flight: the place of a repeat is free again when it has ended', () => {
    const budget = retryBudget('stock', { model: 'in_flight_percent', percent: 0, minimum: 1 });
    expect(mayRetry(ask()).isAllowed).toBe(true);
    expect(mayRetry(ask()).refusal).toBe('retry_budget_empty');
    call('stock', 200);
    expect(budget.balance(clock.at)).toBe(1);
  });

  test('a quota gets the cost of a repeat back when that succeeds, and 1 for an original', () => {
    const floor = { attempts: 1, everyMs: 60_000 };
    const quota = { model: 'fixed_quota', capacity: 500, attemptCost: 10, successAmount: 1, floor } as const;
    const budget = retryBudget('stock', quota);
    const full = budget.capacity(clock.at);
    mayRetry(ask());
    mayRetry(ask());
    call('stock', 200);
    expect(budget.balance(clock.at)).toBe(full - 10);
    call('stock', 503);
    call('stock', 200);
    expect(budget.balance(clock.at)).toBe(full - 9);
  });

  test('one budget for two dependencies: its series stand under its own name', () => {
    retryBudget('inner', { ...BUCKET, dependencies: ['stock', 'price'] });
    call('stock', 200);
    call('price', 200);
    expect(mayRetry(ask({ dependency: 'price' })).paidBy).toBe('retry_budget');
    expect(mayRetry(ask({ dependency: 'stock' })).refusal).toBe('retry_budget_empty');
    expect(t.value('retryDeposits', { dependency: 'inner', source: 'original' })).toBe(2);
    expect(t.value('refused', { dependency: 'stock', attempt: 'repeat' })).toBe(1);
  });

  test('a repeat that its request does not make any more pays its token back', () => {
    const budget = retryBudget('stock', BUCKET);
    const record = enter();
    runInScope(record, () => mayRetry(ask({ backoffMs: 50 })));
    clock.at = 20;
    finish(record);
    expect(budget.balance(clock.at)).toBe(1);
    expect(t.value('retryDeposits', { source: 'refund' })).toBe(1);
    expect(t.histogram('callPhase', { phase: 'backoff' }).sum).toBeCloseTo(0.02, 9);
  });

  test('outside a request it is given up a minute after its backoff', () => {
    const budget = retryBudget('stock', { model: 'in_flight_percent', percent: 0, minimum: 1 });
    mayRetry(ask({ backoffMs: 100 }));
    clock.at = 60_099;
    mayRetry(ask({ dependency: 'price' }));
    expect(budget.balance(clock.at)).toBe(0);
    clock.at = 60_100;
    mayRetry(ask({ dependency: 'price' }));
    expect(budget.balance(clock.at)).toBe(1);
  });

  test('the call of one request is not the repeat of another', () => {
    retryBudget('stock', BUCKET);
    const [one, other] = [enter(), enter()];
    runInScope(one, () => mayRetry(ask()));
    runInScope(other, () => call('stock', 200));
    expect(t.value('retryDeposits', { source: 'original' })).toBe(1);
    runInScope(one, () => call('stock', 200));
    expect(t.value('retryDeposits', { source: 'original' })).toBe(1);
  });
});

describe('without success', () => {
  test.each([1, 20])(
    'T-29, R-24: %i callers fail together: the floor, neither a lock-out nor a bypass',
    (callers) => {
      const budget = retryBudget('stock', {
        model: 'grpc_throttling',
        maxTokens: 10,
        tokenRatio: 0.1,
        floor: { attempts: 3, everyMs: 10_000 },
      });
      const grantedIn = (windowMs: number): number => {
        const until = clock.at + windowMs;
        let granted = 0;
        for (; clock.at < until; clock.at += 50) {
          for (let caller = 0; caller < callers; caller++) {
            call('stock', 503, 0);
            if (!mayRetry(ask({ maxAttempts: 2 })).isAllowed) continue;
            granted++;
            call('stock', 503, 0);
          }
        }
        return granted;
      };
      // Above half of the tokens repeats are free: ten tokens are five failures away from it.
      expect(grantedIn(10_000)).toBe(4 + 3);
      expect(budget.isLowSuccess(clock.at)).toBe(true);
      const perWindow = [0, 1, 2, 3].map(() => grantedIn(10_000));
      expect(perWindow).toEqual([3, 3, 3, 3]);
      t.recorder.families.retryLowSuccess.refresh?.();
      expect(t.value('retryLowSuccess', { dependency: 'stock' })).toBe(1);
    },
  );

  test('granted is never more than ratio x originals + reserve of the window, whatever happens', () => {
    const step = fc.oneof(
      fc.record({ kind: fc.constant('original' as const), n: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ kind: fc.constant('ask' as const), n: fc.integer({ min: 1, max: 5 }) }),
      fc.record({ kind: fc.constant('pass' as const), n: fc.integer({ min: 1, max: 4_000 }) }),
    );
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 100 }), fc.array(step, { maxLength: 80 }), (percent, steps) => {
        start({ mode: 'enforce' });
        const ratio = percent / 100;
        retryBudget('stock', { ...BUCKET, ratio });
        const events: { readonly at: number; readonly amount: number }[] = [];
        for (const { kind, n } of steps) {
          if (kind === 'pass') clock.at += n;
          for (let i = 0; kind === 'original' && i < n; i++) {
            call('stock', 200, 0);
            events.push({ at: clock.at, amount: ratio });
          }
          for (let i = 0; kind === 'ask' && i < n; i++) {
            if (!mayRetry(ask()).isAllowed) continue;
            events.push({ at: clock.at, amount: -1 });
            // The repeat is made, and must not pay in.
            call('stock', 503, 0);
          }
        }
        for (const { at } of events) {
          // Less than one slot before a window is over, what is in it is forgotten together.
          const inWindow = events.filter((event) => event.at > at - 9_500 && event.at <= at);
          const granted = inWindow.filter(({ amount }) => amount < 0).length;
          const before = events.filter(
            (event) => event.at > at - 20_000 && event.at <= at && event.amount > 0,
          );
          expect(granted).toBeLessThanOrEqual(ratio * before.length + 1 + 1e-6);
        }
      }),
      { numRuns: 60 },
    );
  });
});

describe('the wait', () => {
  const budgetMs = 400;

  beforeEach(() => {
    deactivateRecorder(t.recorder);
    t = createTestHooks({
      config: { mode: 'enforce' },
      clock: { now: () => performance.now(), waitMs: () => 0, idleMs: () => performance.now() },
    });
    started.push(t);
    activateRecorder(t.recorder);
  });

  function enterNow(ms: number | undefined): RequestRecord {
    clock.at = performance.now();
    return enter(ms);
  }

  function waited(record: RequestRecord, dependency: string): number {
    // Kept, once it has been asked for.
    expect(record.ledger.queueMs).toBe(0);
    clock.at = performance.now();
    finish(record);
    const term = record.ledger.terms.find((each) => each.dependency === dependency);
    return term?.phaseMs[phaseIndex('backoff')] ?? 0;
  }

  test('counts as backoff of the request', async () => {
    const record = enterNow(budgetMs);
    expect(await runInScope(record, () => backoff(30))).toBe(true);
    const ms = waited(record, 'none');
    expect(ms).toBeGreaterThan(28);
    expect(record.ledger.totalMs()).toBeCloseTo(clock.at - record.arrivedAt, 6);
  });

  test('S-23: after an answer it counts for the dependency, and as the phase in which the time ran out', async () => {
    deactivateRecorder(t.recorder);
    t = createTestHooks({ clock: t.recorder.clock });
    started.push(t);
    activateRecorder(t.recorder);
    const record = enterNow(20);
    // In observe it is waited out, past the deadline.
    expect(await runInScope(record, () => backoff(mayRetry(ask({ backoffMs: 40 }))))).toBe(true);
    expect(waited(record, 'stock')).toBeGreaterThan(38);
    expect(record.ledger.expiry?.phase).toBe('backoff');
    // The dependency has not worked meanwhile, so it cannot have been slow.
    expect(record.ledger.terms.map(({ slowestMs }) => slowestMs)).toEqual([0]);
    expect(record.cause).toBe('retries');
    expect(t.value('expiries', { dependency: 'stock', phase: 'backoff' })).toBe(1);
  });

  test('never goes past the deadline: at once, where it does not fit', async () => {
    const record = enterNow(50);
    const startedAt = performance.now();
    expect(await runInScope(record, () => backoff(60))).toBe(false);
    expect(performance.now() - startedAt).toBeLessThan(20);
  });

  test('ends with the request, and pays the token back', async () => {
    const budget = retryBudget('stock', BUCKET);
    const record = enterNow(5_000);
    const { waiting, inside } = runInScope(record, () => {
      const answer = mayRetry(ask({ backoffMs: 3_000 }));
      expect(answer.paidBy).toBe('retry_budget');
      return { waiting: backoff(answer), inside: signal() };
    });
    await later(10);
    expect(budget.balance(performance.now())).toBe(0);
    const timers = (): number => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    const before = timers();
    t.recorder.cancel(record, 'client_disconnect', performance.now());
    expect(await waiting).toBe(false);
    expect(timers()).toBe(before - 1);
    expect(budget.balance(performance.now())).toBe(1);
    expect(inside === undefined ? [] : getEventListeners(inside, 'abort')).toEqual([]);
    expect(record.openCalls).toBe(0);
  });

  test('a bare wait outside a request, and what is no number', async () => {
    expect(await backoff(1)).toBe(true);
    await expect(backoff(-1)).rejects.toThrow('backoff: ms must be a number >= 0, got -1');
    await expect(backoff(Number.NaN)).rejects.toThrow(RangeError);
  });
});
