import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { currentScope, enterScope } from '../../src/current.ts';
import { current, remainingMs, signal, withBudget } from '../../src/index.ts';
import { type MessageOptions, messageHeaders, recordCall, takeMessage } from '../../src/manual/index.ts';
import type { RequestRecord } from '../../src/records.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';

let t: TestHooks;
const OPTIONS: MessageOptions = { operation: 'mails' };

function start(config: Parameters<typeof createTestHooks>[0] = {}): void {
  if (t !== undefined) deactivateRecorder(t.recorder);
  t = createTestHooks({
    clock: { now: () => performance.now(), waitMs: () => 0, idleMs: () => performance.now() },
    ...config,
  });
  activateRecorder(t.recorder);
}

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'],
    now: Date.UTC(2026, 10, 30),
  });
  start();
  enterScope(undefined);
});

afterEach(() => {
  deactivateRecorder(t.recorder);
  vi.useRealTimers();
});

/** Works for so long; gives what it saw when it began. */
async function workFor(ms: number): Promise<ReturnType<typeof current>> {
  const seen = current();
  await new Promise((resolve) => setTimeout(resolve, ms));
  return seen;
}

async function take(headers: unknown, options: MessageOptions, ms = 0): ReturnType<typeof workFor> {
  const taken = takeMessage(headers, () => workFor(ms), options);
  await vi.advanceTimersByTimeAsync(ms);
  return taken;
}

describe('H4: TTL 100, consumed at 250, handler 40 ms', () => {
  test('expired in queue, 40 ms past the deadline, and run all the same', async () => {
    let record: RequestRecord | undefined;
    const taken = takeMessage(
      { 'time-budget': 'remaining=100' },
      () => {
        record = currentScope()?.request;
        return workFor(40);
      },
      { operation: 'mails', ageMs: 250 },
    );
    await vi.advanceTimersByTimeAsync(40);
    expect(await taken).toMatchObject({ remainingMs: -150, receivedMs: 100, verdict: 'accepted' });
    expect(record?.ledger.expiry).toEqual({ phase: 'queue', call: undefined });
    expect([record?.ledger.queueMs, record?.ledger.localMs, record?.loopBlockedMs()]).toEqual([250, 40, 0]);
    expect(t.value('expiries', { phase: 'queue' })).toBe(1);
    expect(t.value('outcomes', { operation: 'mails', outcome: 'late' })).toBe(1);
    expect(t.value('expiryCauses', { operation: 'mails', cause: 'spent_before_call' })).toBe(1);
    expect(t.value('postCancelSeconds', { kind: 'handler' })).toBeCloseTo(0.04, 9);
    expect(t.value('postCancelItems', { kind: 'handler', result: 'started_after' })).toBe(1);
    expect(t.histogram('queue', { operation: 'mails' })).toEqual({ count: 1, sum: 0.25 });
    expect(t.histogram('remaining', { point: 'received' })).toEqual({ count: 1, sum: 0 });
  });

  test.each([
    [99, 'useful', 0],
    [100, 'late', 1],
  ])(
    'an age of %i of 100 is %s: what is used up to the last millisecond is over',
    async (ageMs, outcome, n) => {
      await take({ 'time-budget': 'remaining=100' }, { ...OPTIONS, ageMs });
      expect(t.value('outcomes', { outcome })).toBe(1);
      expect(t.value('expiries', { phase: 'queue' })).toBe(n);
    },
  );

  test('a deadline that falls into the work leaves the rest of it as work for nobody', async () => {
    await take({ 'time-budget': 'remaining=100' }, { ...OPTIONS, ageMs: 70 }, 40);
    expect(t.value('expiries', { phase: 'local' })).toBe(1);
    expect(t.value('postCancelSeconds', { kind: 'handler' })).toBeCloseTo(0.01, 9);
    expect(t.value('postCancelItems', { kind: 'handler', result: 'completed' })).toBe(1);
  });
});

describe('P-20: a budget ages in the broker', () => {
  const sent = (ago: number) => ({ 'time-budget': `remaining=500, sent=${Date.now() - ago}` });

  test("by the sender's clock where the broker says nothing, and by the broker's where it does", async () => {
    expect((await take(sent(200), OPTIONS))?.remainingMs).toBe(300);
    expect((await take(sent(200), { ...OPTIONS, ageMs: 30 }))?.remainingMs).toBe(470);
  });

  test('never longer: a sender ahead of us was just now, a broker ahead of us too', async () => {
    expect((await take(sent(-60_000), OPTIONS))?.remainingMs).toBe(500);
    expect((await take(sent(0), { ...OPTIONS, ageMs: -60_000 }))?.remainingMs).toBe(500);
  });

  test('nor is it longer for a sender that is not trusted', async () => {
    const seen = await take(sent(200), { ...OPTIONS, trusted: false });
    expect(seen).toMatchObject({ remainingMs: 300, verdict: 'untrusted' });
  });

  test('a default runs from the same moment', async () => {
    start({ config: { entry: { defaultMs: 1_000 } } });
    expect(await take({}, { ...OPTIONS, ageMs: 300 })).toMatchObject({
      remainingMs: 700,
      verdict: 'defaulted',
    });
  });

  test('without a budget nothing expires, and the wait is known all the same', async () => {
    const seen = await take({}, { ...OPTIONS, ageMs: 300 });
    expect(seen).toMatchObject({ remainingMs: undefined, verdict: 'absent' });
    expect(t.histogram('queue', { operation: 'mails' })).toEqual({ count: 1, sum: 0.3 });
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(1);
  });
});

describe('what the headers say', () => {
  const OURS = 'remaining=500, attempt=2, repeated, caller=web, priority=critical, workload=replay';

  test.each([
    ['a text', OURS],
    ['a Buffer', Buffer.from(OURS)],
    ['a list, as of a repeated key', [Buffer.from(OURS)]],
    ['a Uint8Array', new TextEncoder().encode(OURS)],
  ])('%s', async (_, value) => {
    const seen = await take({ 'time-budget': value }, OPTIONS);
    expect(seen).toMatchObject({ remainingMs: 500, caller: 'web', priority: 'critical' });
    expect(t.value('workloadCompleted', { workload: 'replay' })).toBe(1);
    expect(t.value('retried', { caller: 'web' })).toBe(1);
  });

  test('P-15: of an untrusted sender the time alone', async () => {
    const seen = await take({ 'time-budget': OURS }, { ...OPTIONS, trusted: false });
    expect(seen).toMatchObject({ remainingMs: 500, caller: 'unknown', priority: 'unset' });
    expect(t.value('retried')).toBe(0);
  });

  test('an edge trusts no message, unless it is said', async () => {
    start({ config: { entry: { role: 'edge' } } });
    expect((await take({ 'time-budget': OURS }, OPTIONS))?.caller).toBe('unknown');
    expect((await take({ 'time-budget': OURS }, { ...OPTIONS, trusted: true }))?.caller).toBe('web');
  });

  test.each([
    ['x-request-timeout-ms', '300'],
    ['X-Request-Timeout-Ms', 300],
    ['grpc-timeout', Buffer.from('300m')],
  ])('another known format, %s', async (name, value) => {
    expect((await take({ [name]: value, 'time-budget': 'remaining=500' }, OPTIONS))?.remainingMs).toBe(300);
  });

  test('the smallest of a key in two spellings', async () => {
    const headers = { 'Time-Budget': 'remaining=500', 'time-budget': [Buffer.from('remaining=200'), 'a=1'] };
    expect((await take(headers, OPTIONS))?.remainingMs).toBe(200);
  });

  const odd: [string, unknown][] = [
    ['no headers', undefined],
    ['null', null],
    ['a text in place of headers', 'time-budget'],
    ['a number', 7],
    ['a table of AMQP as a value', { 'time-budget': { remaining: 5 } }],
    ['true as a value', { 'time-budget': true }],
    ['nothing as a value', { 'time-budget': undefined }],
    ['an empty list', { 'time-budget': [] }],
    ['an own __proto__', JSON.parse('{"__proto__": "remaining=5"}')],
  ];
  test.each(odd)('%s is no budget', async (_, headers) => {
    expect((await take(headers, OPTIONS))?.verdict).toBe('absent');
    expect(t.value('internalErrors')).toBe(0);
  });

  test.each([
    ['garbage', Buffer.from([0xff, 0x00, 0xc3, 0x28])],
    ['an empty text', ''],
    ['megabytes', Buffer.alloc(5_000_000, 'remaining=1, ')],
    ['a huge text', 'x'.repeat(1_000_000)],
    ['no number', 'remaining=soon'],
  ])('%s is invalid, and counted', async (_, value) => {
    const seen = await take({ 'time-budget': value }, OPTIONS);
    expect(seen?.remainingMs).toBeUndefined();
    expect(t.value('internalErrors')).toBe(0);
    expect(t.value('headerInvalid')).toBe(value === '' ? 0 : 1);
  });

  test('headers that throw cost the record and not the message', async () => {
    const headers = {
      get 'time-budget'(): string {
        throw new Error('theirs');
      },
    };
    expect(takeMessage(headers, () => 7, OPTIONS)).toBe(7);
    expect(t.value('internalErrors')).toBe(1);
  });

  test('of 256 headers the next is not looked at', async () => {
    const many = Object.fromEntries(Array.from({ length: 255 }, (_, i) => [`h${i}`, 'x']));
    const own = { 'time-budget': 'remaining=500' };
    expect((await take({ ...many, ...own }, OPTIONS))?.remainingMs).toBe(500);
    expect((await take({ ...many, one: 'x', ...own }, OPTIONS))?.remainingMs).toBeUndefined();
  });
});

describe('R-33: deliveries', () => {
  test.each([
    [1, 0],
    [2, 1],
    [3.9, 1],
    [1e9, 1],
    [Number.NaN, 0],
    ['2' as unknown as number, 0],
  ])('%s', async (deliveries, repeats) => {
    let record: RequestRecord | undefined;
    takeMessage({}, () => void (record = currentScope()?.request), { ...OPTIONS, deliveries });
    expect(t.value('arrivalRepeats', { owner: 'broker' })).toBe(repeats);
    expect(t.value('retried', { operation: 'mails' })).toBe(repeats);
    expect(record?.repeated).toBe(repeats === 1);
    expect(record?.attempt).toBe(repeats === 0 ? 1 : Math.min(Math.floor(deliveries), 9_999));
  });

  test('what its sender said of it stays: the larger of the two counts', () => {
    const headers = { 'time-budget': 'remaining=500, attempt=5, repeated' };
    let record: RequestRecord | undefined;
    takeMessage(headers, () => void (record = currentScope()?.request), { ...OPTIONS, deliveries: 2 });
    expect([record?.attempt, t.value('retried'), t.value('arrivalRepeats')]).toEqual([5, 1, 1]);
  });
});

describe('how it ends', () => {
  const outcomes = (outcome: string) => t.value('outcomes', { operation: 'mails', outcome });

  test('at once, with what the work gave', () => {
    expect(takeMessage({}, () => 7, OPTIONS)).toBe(7);
    expect(outcomes('useful')).toBe(1);
    expect(t.value('inFlight')).toBe(0);
  });

  test('work that throws in the same step', () => {
    const error = new Error('mine');
    expect(() =>
      takeMessage(
        {},
        () => {
          throw error;
        },
        OPTIONS,
      ),
    ).toThrow(error);
    expect(outcomes('failed')).toBe(1);
  });

  test('work that rejects, with the very same reason', async () => {
    const error = new Error('mine');
    await expect(takeMessage({}, () => Promise.reject(error), OPTIONS)).rejects.toBe(error);
    expect(outcomes('failed')).toBe(1);
  });

  test('a signal that fires at the deadline is its expiry', async () => {
    const headers = { 'time-budget': 'remaining=100' };
    const taken = takeMessage(
      headers,
      () =>
        new Promise((_, reject) => {
          const told = signal();
          told?.addEventListener('abort', () => reject(told.reason));
        }),
      OPTIONS,
    );
    const seen = expect(taken).rejects.toThrow('used up');
    await vi.advanceTimersByTimeAsync(100);
    await seen;
    expect([outcomes('expired'), t.value('expiries', { phase: 'local' })]).toEqual([1, 1]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a promise that nobody takes is still an unhandled rejection', async () => {
    vi.useRealTimers();
    const error = new Error('dropped');
    const listeners = process.listeners('unhandledRejection');
    process.removeAllListeners('unhandledRejection');
    try {
      const told = new Promise((resolve) => process.once('unhandledRejection', resolve));
      void takeMessage({}, () => Promise.reject(error), OPTIONS);
      expect(await told).toBe(error);
    } finally {
      for (const listener of listeners) process.on('unhandledRejection', listener);
    }
  });

  test('a promise with methods of its own comes back itself', () => {
    const theirs = Object.assign(Promise.resolve(7), { cancel() {} });
    expect(takeMessage({}, () => theirs, OPTIONS)).toBe(theirs);
  });

  test('without a usable name it is unmatched', () => {
    takeMessage({}, () => 7, { operation: '' });
    takeMessage({}, () => 7, undefined as unknown as MessageOptions);
    expect(t.value('outcomes', { operation: 'unmatched' })).toBe(2);
  });
});

describe('where it is called', () => {
  test('in the context of another request it is a request of its own, and the other goes on', async () => {
    await withBudget(
      1_000,
      async () => {
        expect(
          (await takeMessage({ 'time-budget': 'remaining=50' }, async () => current(), OPTIONS))?.remainingMs,
        ).toBe(50);
        expect(takeMessage({}, () => remainingMs(), OPTIONS)).toBeUndefined();
        expect([remainingMs(), current()?.operation]).toEqual([1_000, 'outer']);
      },
      { operation: 'outer' },
    );
    expect(t.value('outcomes', { operation: 'mails' })).toBe(2);
    expect(t.value('outcomes', { operation: 'outer' })).toBe(1);
  });

  test('one within another', () => {
    takeMessage(
      { 'time-budget': 'remaining=500' },
      () => {
        const inner = takeMessage(messageHeaders(), () => remainingMs(), { operation: 'inner', ageMs: 100 });
        expect([inner, remainingMs()]).toEqual([400, 500]);
      },
      OPTIONS,
    );
    expect(t.value('outcomes')).toBe(2);
  });

  test('where the package was not started, the work runs, and belongs to no request', () => {
    withBudget(100, () => {
      deactivateRecorder(t.recorder);
      expect(takeMessage({ 'time-budget': 'remaining=50' }, () => current(), OPTIONS)).toBeUndefined();
      expect(remainingMs()).toBe(100);
    });
  });
});

describe('messageHeaders', () => {
  const SENT = Date.UTC(2026, 10, 30) + 10;

  test('what is left at that moment, rounded down', async () => {
    const told = withBudget(500, async () => {
      await new Promise((resolve) => setTimeout(resolve, 10));
      return withBudget(100.7, () => messageHeaders());
    });
    await vi.advanceTimersByTimeAsync(10);
    expect(await told).toEqual({
      'time-budget': `remaining=100, attempt=1, caller=test-service, sent=${SENT}`,
    });
  });

  test('0 when it is over, and the reserve stays here', () => {
    expect(withBudget(0, messageHeaders)['time-budget']).toMatch(/^remaining=0,/);
    start({ config: { reserveMs: 30 } });
    expect(withBudget(100, messageHeaders)['time-budget']).toMatch(/^remaining=70,/);
  });

  test('what it is part of goes with it', () => {
    const headers = { 'time-budget': 'attempt=3, repeated, priority=low, workload=replay' };
    expect(takeMessage(headers, messageHeaders, OPTIONS)['time-budget']).toMatch(
      /^attempt=1, repeated, caller=test-service, priority=low, workload=replay, sent=\d+$/,
    );
  });

  test('nothing outside a request, where it is switched off, and where nothing was started', async () => {
    expect(messageHeaders()).toEqual({});
    start({ config: { propagation: { header: false } } });
    expect(withBudget(100, messageHeaders)).toEqual({});
    deactivateRecorder(t.recorder);
    expect(withBudget(100, messageHeaders)).toEqual({});
  });

  test('a message from here to there loses what it waited, and no more', () => {
    const headers = withBudget(500, messageHeaders);
    vi.setSystemTime(Date.now() + 120);
    expect(takeMessage(headers, () => current(), OPTIONS)).toMatchObject({
      remainingMs: 380,
      caller: 'test-service',
    });
  });

  test('a call made for the message is told what is left of it', () => {
    takeMessage({ 'time-budget': 'remaining=500' }, () => recordCall('smtp', () => 1), {
      ...OPTIONS,
      ageMs: 400,
    });
    expect(t.histogram('remaining', { operation: 'mails', point: 'before_call' })).toEqual({
      count: 1,
      sum: 0.1,
    });
  });
});
