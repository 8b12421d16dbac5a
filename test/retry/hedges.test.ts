import http from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { enterScope } from '../../src/current.ts';
import { BudgetError } from '../../src/index.ts';
import type { CallRecord } from '../../src/records.ts';
import { hedge } from '../../src/retry/index.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { close, listen, until } from '../support/loopback.ts';
import { DEPENDENCY, type RetryStage, startRetryStage } from '../support/retry-stage.ts';

/** Answers when it is told to, request by request in the order in which they came. */
class HeldServer {
  readonly server = http.createServer((request, response) => {
    request.resume();
    this.waiting.push(response);
    response.on('close', () => {
      if (!response.writableFinished) this.left.push(this.waiting.indexOf(response));
    });
  });
  readonly waiting: http.ServerResponse[] = [];
  /** Requests whose client went away. */
  readonly left: number[] = [];
  url = '';

  answer(index: number, status = 200): void {
    const response = this.waiting[index];
    if (response === undefined) throw new Error(`request ${index} has not come`);
    response.writeHead(status).end('stocked');
  }

  arrived(count: number): Promise<void> {
    return until(() => this.waiting.length >= count, `${count} arrivals`);
  }
}

let held: HeldServer;
let stage: RetryStage;
/** Every call that has ended, in order. */
let ended: CallRecord[];

async function start(config: ConfigOptions = {}): Promise<void> {
  held = new HeldServer();
  const port = await listen(held.server);
  held.url = `http://127.0.0.1:${port}/items`;
  stage = startRetryStage(port, config);
  ended = [];
  const { attempts } = stage.t.recorder.calls;
  const end = attempts.end.bind(attempts);
  attempts.end = (call, ending, now) => {
    ended.push(call);
    end(call, ending, now);
  };
}

beforeEach(() => enterScope(undefined));

afterEach(async () => {
  stage.stop();
  await close(held.server);
});

async function get(signal: AbortSignal): Promise<string> {
  const response = await fetch(held.url, { signal });
  if (!response.ok) throw Object.assign(new Error('busy'), { status: response.status });
  return response.text();
}

/** Attempts in the order in which they were begun, whatever their connections take. */
function inOrder() {
  const before = held.waiting.length;
  return async (signal: AbortSignal, ordinal: number): Promise<string> => {
    await held.arrived(before + ordinal - 1);
    return get(signal);
  };
}

const hedges = () =>
  Object.fromEntries(
    stage.t.recorder.families.hedges.cells.map(({ attributes, value }) => [attributes.result, value]),
  );
const attempts = (kind: string) => stage.t.value('attempts', { dependency: DEPENDENCY, kind });

const options = { dependency: DEPENDENCY, afterMs: 5 };
const NONE = { won: 0, lost: 0, failed: 0, suppressed: 0 };

describe('S-24: attempts that overlap', () => {
  test('the hedge wins: the original is stopped as the loser of a race, and says when it really stopped', async () => {
    await start();
    const reasons: unknown[] = [];
    await stage.inRequest(5_000, async () => {
      const attempt = inOrder();
      const answer = hedge(options, (signal, ordinal) => {
        signal.addEventListener('abort', () => reasons.push([ordinal, signal.reason]));
        return attempt(signal, ordinal);
      });
      await held.arrived(2);
      held.answer(1);
      expect(await answer).toBe('stocked');
      await until(() => ended.length === 2 && held.left.length === 1, 'the loser');
    });
    expect(reasons).toEqual([[1, new BudgetError('lost_race')]]);
    expect(held.left).toEqual([0]);
    expect(hedges()).toEqual({ ...NONE, won: 1 });
    expect([attempts('original'), attempts('hedge'), stage.t.value('attempts')]).toEqual([1, 1, 2]);
    expect(stage.t.value('attempts', { kind: 'hedge', owner: 'service' })).toBe(1);
    expect(stage.t.value('repeatResults', { result: 'useful' })).toBe(1);
    const loser = ended.find(({ attempt }) => attempt === 1);
    expect(loser?.cancelSource).toBe('lost_race');
    const lostAt = loser?.scope?.mark?.race?.lostAt ?? Number.NaN;
    expect(loser?.endedAt).toBeGreaterThanOrEqual(lostAt);
    expect(stage.t.value('hedgeLost', { dependency: DEPENDENCY })).toBeCloseTo(
      ((loser?.endedAt ?? 0) - lostAt) / 1_000,
      6,
    );
  });

  test('the original wins: the hedge is stopped, and is no useful repeat', async () => {
    await start();
    await stage.inRequest(5_000, async () => {
      const answer = hedge(options, inOrder());
      await held.arrived(2);
      held.answer(0);
      expect(await answer).toBe('stocked');
      await until(() => ended.length === 2, 'the loser');
    });
    expect(hedges()).toEqual({ ...NONE, lost: 1 });
    expect(ended.find(({ attempt }) => attempt === 2)?.cancelSource).toBe('lost_race');
    expect(stage.t.value('repeatResults', { result: 'aborted' })).toBe(1);
    expect(stage.t.value('repeatResults', { result: 'useful' })).toBe(0);
  });

  test('a loser that takes no signal goes on, and its time after the race is counted when it ends', async () => {
    await start();
    await stage.inRequest(5_000, async () => {
      const attempt = inOrder();
      const { signal } = new AbortController();
      const answer = hedge(options, (_, ordinal) => attempt(signal, ordinal));
      await held.arrived(2);
      held.answer(0);
      await answer;
      expect(ended).toHaveLength(1);
      const wonAt = performance.now();
      await until(() => performance.now() > wonAt + 30, '30 ms');
      held.answer(1);
      await until(() => ended.length === 2, 'the loser');
    });
    const [, loser] = ended;
    expect(loser?.cancelSource).toBeUndefined();
    expect(stage.t.value('repeatResults', { result: 'late' })).toBe(1);
    expect(stage.t.value('hedgeLost', { dependency: DEPENDENCY })).toBeGreaterThanOrEqual(0.03);
  });

  test('an answer before the time is up: no hedge, and no timer is left', async () => {
    await start();
    const timers = () => process.getActiveResourcesInfo().filter((each) => each === 'Timeout').length;
    const before = timers();
    await stage.inRequest(5_000, () => hedge({ ...options, afterMs: 60_000 }, async () => 'at once'));
    expect(timers()).toBe(before);
    expect(hedges()).toEqual(NONE);
  });

  test('a failure starts nothing: the error of the original', async () => {
    await start();
    const error = new Error('x');
    await stage.inRequest(5_000, () =>
      expect(hedge({ ...options, afterMs: 60_000 }, () => Promise.reject(error))).rejects.toBe(error),
    );
    await expect(
      hedge(options, () => {
        throw error;
      }),
    ).rejects.toBe(error);
    expect(hedges()).toEqual(NONE);
  });

  test('the hedge fails: the original is waited for', async () => {
    await start();
    await stage.inRequest(5_000, async () => {
      const answer = hedge(options, inOrder());
      await held.arrived(2);
      held.answer(1, 503);
      await until(() => hedges().failed === 1, 'the failure');
      held.answer(0);
      expect(await answer).toBe('stocked');
    });
    expect(hedges()).toEqual({ ...NONE, failed: 1 });
  });

  test('all fail: the error of the first that did', async () => {
    await start();
    await stage.inRequest(5_000, async () => {
      const answer = hedge({ ...options, maxAttempts: 3 }, inOrder());
      const outcome = expect(answer).rejects.toHaveProperty('status', 502);
      await held.arrived(3);
      held.answer(2, 502);
      await until(() => hedges().failed === 1, 'the first failure');
      held.answer(0, 503);
      held.answer(1, 503);
      await outcome;
    });
    expect(hedges()).toEqual({ ...NONE, failed: 2 });
    expect([attempts('original'), attempts('hedge')]).toEqual([1, 2]);
  });

  test('the retry budget pays for hedges, and one that is empty suppresses them in enforce', async () => {
    await start({
      mode: 'enforce',
      retryBudgets: { stock: { model: 'token_bucket', ratio: 0, reservePerSecond: 0.1, ttlMs: 10_000 } },
    });
    for (const arrivals of [2, 3]) {
      await stage.inRequest(5_000, async () => {
        const answer = hedge(options, inOrder());
        await held.arrived(arrivals);
        if (arrivals === 3) await until(() => hedges().suppressed === 1, 'the refusal');
        held.answer(arrivals - 1);
        expect(await answer).toBe('stocked');
      });
    }
    expect(held.waiting).toHaveLength(3);
    expect(hedges()).toEqual({ ...NONE, won: 1, suppressed: 1 });
    expect(stage.t.value('retryWithdrawals', { result: 'granted' })).toBe(1);
    expect(stage.t.value('refused', { attempt: 'repeat', reason: 'retry_budget_empty' })).toBe(1);
  });

  test('one that does not fit the time left is not sent in enforce', async () => {
    await start({ mode: 'enforce', dependencies: { stock: { reserveMs: 4_000, typicalMs: 2_000 } } });
    await stage.inRequest(5_000, async () => {
      const answer = hedge(options, inOrder());
      await until(() => hedges().suppressed === 1, 'the refusal');
      // The hedge is refused after 5 ms, which is sooner than the original arrives on a busy machine.
      await held.arrived(1);
      held.answer(0);
      expect(await answer).toBe('stocked');
    });
    expect(stage.t.value('refused', { attempt: 'repeat', reason: 'does_not_fit_retry' })).toBe(1);
  });

  test('the request is cancelled: every attempt stops, and for that reason', async () => {
    await start();
    await stage.inRequest(5_000, async (record) => {
      const answer = hedge(options, inOrder());
      const outcome = expect(answer).rejects.toHaveProperty('code', 'client_disconnect');
      await held.arrived(2);
      stage.t.recorder.cancel(record, 'client_disconnect', performance.now());
      await outcome;
      await until(() => ended.length === 2, 'both');
    });
    expect(ended.map(({ cancelSource }) => cancelSource)).toEqual(['client_disconnect', 'client_disconnect']);
  });

  test('the last accepted and the first refused value of every bound', async () => {
    await start();
    const run = (bounds: object) => () => hedge({ ...options, ...bounds }, async () => 'at once');
    expect(run({ afterMs: -1 })).toThrow('hedge: afterMs must be a number >= 0, got -1');
    expect(run({ afterMs: Number.NaN })).toThrow(RangeError);
    // Plain JavaScript can give anything.
    expect(run({ afterMs: Symbol('5') })).toThrow('hedge: afterMs must be a number >= 0, got Symbol(5)');
    expect(() => hedge(undefined as never, async () => '')).toThrow('hedge: afterMs must be a number >= 0');
    expect(run({ maxAttempts: 0 })).toThrow('hedge: maxAttempts must be in 1..10, got 0');
    expect(run({ maxAttempts: 11 })).toThrow(RangeError);
    for (const bounds of [{ afterMs: 0 }, { maxAttempts: 1 }, { maxAttempts: 10 }]) {
      expect(await run(bounds)()).toBe('at once');
    }
  });

  test('without the package it races all the same', async () => {
    await start();
    stage.stop();
    const answer = hedge(options, inOrder());
    await held.arrived(2);
    held.answer(1);
    expect(await answer).toBe('stocked');
  });
});
