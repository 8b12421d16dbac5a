/** Gates on a clock that the test moves. What real servers make of them is in test/e2e/admission.test.ts. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { type Admission, admission } from '../../src/admission/index.ts';
import type { AdmissionOptions } from '../../src/admission/options.ts';
import { currentScope, enterScope, runInScope } from '../../src/current.ts';
import { setPriority } from '../../src/index.ts';
import type { RequestRecord } from '../../src/records.ts';
import type { ConfigOptions } from '../../src/telemetry/config-settings.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';

const OPERATION = 'GET /items';
let t: TestHooks;

class FakeResponse {
  headersSent = false;
  statusCode = 200;
  headers: Record<string, string> = {};
  body: string | undefined;
  setHeader(name: string, value: string): void {
    this.headers[name] = value;
  }
  end(body: string): void {
    this.body = body;
  }
}

/** One request on its way through a gate. */
class Visit {
  readonly record: RequestRecord;
  readonly response = new FakeResponse();
  started = false;

  constructor(headers: Record<string, string>, remoteAddress: string) {
    const now = performance.now();
    this.record = t.recorder.enter({ headers, remoteAddress, method: 'GET', path: '/items' }, now);
    t.recorder.handling(this.record, undefined, now);
  }

  async through(gate: Admission): Promise<this> {
    runInScope(this.record, () => {
      gate.express(undefined, this.response, () => {
        this.started = true;
      });
    });
    await Promise.resolve();
    return this;
  }

  /** Answered, by the handler or the gate. */
  finish(status = this.response.statusCode): this {
    t.recorder.finish(this.record, { completed: true, status }, performance.now());
    return this;
  }

  /** The client has left. */
  leave(): this {
    t.recorder.peerGone(this.record, performance.now());
    t.recorder.finish(this.record, { completed: false, status: undefined }, performance.now());
    return this;
  }

  get answer(): unknown {
    const { statusCode, headers, body } = this.response;
    return body === undefined
      ? undefined
      : { status: statusCode, reason: JSON.parse(body).reason, after: headers['retry-after'] };
  }
}

async function visit(
  gate: Admission,
  budgetMs?: number,
  headers: Record<string, string> = {},
): Promise<Visit> {
  const budget = budgetMs === undefined ? {} : { 'x-request-timeout-ms': String(budgetMs) };
  return new Visit({ ...budget, ...headers }, '127.0.0.1').through(gate);
}

function start(config: ConfigOptions = {}): void {
  if (t !== undefined) deactivateRecorder(t.recorder);
  t = createTestHooks({
    clock: { now: () => performance.now(), waitMs: () => 0, idleMs: () => performance.now() },
    config: { mode: 'enforce', routes: [{ path: '/items', operation: OPERATION }], ...config },
  });
  activateRecorder(t.recorder);
}

/** At every moment, whatever happens. */
function expectIdentities(): void {
  const outcomes = t.value('outcomes');
  // Of those that were not let in.
  const shed = t.value('shed');
  const refused = t.value('outcomes', { outcome: 'refused' });
  expect(t.value('offered')).toBe(
    t.value('admitted') + shed + refused + t.value('inFlight', { state: 'undecided' }),
  );
  expect(t.value('admitted')).toBe(outcomes - shed - refused + t.value('inFlight', { state: 'admitted' }));
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  enterScope(undefined);
  start();
});

afterEach(() => {
  expectIdentities();
  deactivateRecorder(t.recorder);
  vi.useRealTimers();
});

describe('limit and queue', () => {
  test('L-04: as many as the limit work, as many as the size wait, the next is told 503 overloaded', async () => {
    const gate = admission({ limit: 2, queue: { size: 1, maxAgeMs: 1_000 } });
    const [a, b, c, d] = [await visit(gate), await visit(gate), await visit(gate), await visit(gate)];
    expect([a, b, c, d].map(({ started }) => started)).toEqual([true, true, false, false]);
    expect(c.answer).toBeUndefined();
    expect(d.answer).toEqual({ status: 503, reason: 'overloaded', after: undefined });
    expect(d.response.headers['content-type']).toBe('application/problem+json');
    d.finish();
    expectIdentities();
    expect(t.value('shed', { reason: 'concurrency', operation: OPERATION })).toBe(1);
    expect(t.value('inFlight', { state: 'admitted' })).toBe(2);
    expect(t.value('inFlight', { state: 'undecided' })).toBe(1);
    expect(t.value('concurrencyUsed', { dependency: 'requests' })).toBe(2);
    expect(t.value('concurrencyLimit', { dependency: 'requests' })).toBe(2);
    a.finish(200);
    await Promise.resolve();
    expect(c.started).toBe(true);
    expect(c.record.outcome).toBeUndefined();
    b.finish(200);
    c.finish(200);
    expect(t.value('admitted')).toBe(3);
    expect(t.value('concurrencyUsed', { dependency: 'requests' })).toBe(0);
    expect(t.value('queueEntered', { queue: 'requests' })).toBe(1);
    expect(t.value('queueLeft', { queue: 'requests', result: 'started' })).toBe(1);
  });

  test('without a queue nobody waits', async () => {
    const gate = admission({ limit: 1 });
    await visit(gate);
    expect((await visit(gate)).finish().answer).toEqual({
      status: 503,
      reason: 'overloaded',
      after: undefined,
    });
  });

  test('L-04, T-34: who has no time left is dropped at the head, before the handler, and the next one is served', async () => {
    const gate = admission({ limit: 1, queue: { size: 5, maxAgeMs: 1_000 } });
    const a = await visit(gate);
    const b = await visit(gate, 100);
    const c = await visit(gate, 101);
    // The loop was busy past its end: the queue's timer has not fired.
    const at = performance.now();
    vi.spyOn(t.recorder.clock, 'now').mockImplementation(() => at + 100);
    t.recorder.finish(a.record, { completed: true, status: 200 }, at + 100);
    await Promise.resolve();
    expect(b.started).toBe(false);
    expect(b.answer).toEqual({ status: 504, reason: 'deadline_exceeded_before_dispatch', after: undefined });
    expect(c.started).toBe(true);
    expect(t.value('queueLeft', { result: 'expired' })).toBe(1);
    t.recorder.finish(b.record, { completed: true, status: 504 }, at + 100);
    expect(b.record.outcome).toBe('refused');
    expect(t.value('expiries', { phase: 'queue' })).toBe(1);
    expect(t.value('expiryCauses', { operation: OPERATION })).toBe(1);
    expect(t.value('shed')).toBe(0);
  });

  test('who waits is answered at the end of its own time, or of the queue’s, whichever comes first', async () => {
    const gate = admission({ limit: 1, queue: { size: 5, maxAgeMs: 200 } });
    await visit(gate);
    const b = await visit(gate, 100);
    const c = await visit(gate, 5_000);
    await vi.advanceTimersByTimeAsync(99);
    expect(b.answer).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(b.answer).toMatchObject({ status: 504, reason: 'deadline_exceeded_before_dispatch' });
    await vi.advanceTimersByTimeAsync(99);
    expect(c.answer).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(c.answer).toMatchObject({ status: 503, reason: 'overloaded' });
    b.finish();
    c.finish();
    expect(t.value('shed', { reason: 'queue_age' })).toBe(1);
    expect(t.value('gateRefused', { reason: 'queue_age', enforced: 'yes' })).toBe(1);
    expect(t.histogram('queueAge', { queue: 'requests' })).toEqual({ count: 2, sum: expect.closeTo(0.3) });
  });

  test('no time left on arrival: refused before a permit is taken; with a reserve, equality refuses', async () => {
    start({ reserveMs: 50 });
    const gate = admission({ limit: 1 });
    expect((await visit(gate, 50)).finish().answer).toMatchObject({ status: 504 });
    expect(t.value('concurrencyUsed')).toBe(0);
    expect((await visit(gate, 51)).started).toBe(true);
    expect(t.value('outcomes', { outcome: 'refused' })).toBe(1);
  });

  test('the reserve is kept back from the wait as well', async () => {
    start({ reserveMs: 50 });
    const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 1_000 } });
    await visit(gate);
    const b = await visit(gate, 100);
    await vi.advanceTimersByTimeAsync(49);
    expect(b.answer).toBeUndefined();
    await vi.advanceTimersByTimeAsync(1);
    expect(b.finish().answer).toMatchObject({ status: 504 });
  });

  test('below the useful minimum it is not started; at the minimum it is', async () => {
    const gate = admission({ limit: 1, minimumMs: 50 });
    expect((await visit(gate, 49)).finish().answer).toMatchObject({
      status: 504,
      reason: 'below_useful_minimum',
    });
    expect((await visit(gate, 50)).started).toBe(true);
  });

  test('T-33: after the wait a call is given the shorter, later time', async () => {
    const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 1_000 } });
    const a = await visit(gate, 1_000);
    const b = await visit(gate, 1_000);
    await vi.advanceTimersByTimeAsync(300);
    a.finish(200);
    await Promise.resolve();
    const target = t.hooks.calls.target('stock', 80, 'http');
    const call = runInScope(b.record, () => t.hooks.calls.begin(target, performance.now()));
    expect(call.allowanceMs).toBe(700);
    expect(t.hooks.calls.dispatch(call, performance.now())).toBe(700);
    t.hooks.calls.end(call, 'answered', performance.now());
    b.finish(200);
    expect(t.histogram('queue', { operation: OPERATION })).toEqual({ count: 2, sum: 0.3 });
  });

  test('a caller that leaves the queue was never let in, and its place is free', async () => {
    const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 1_000 } });
    const a = await visit(gate);
    const b = await visit(gate);
    b.leave();
    expect(b.record.outcome).toBe('refused');
    expect(t.value('cancellations', { source: 'client_disconnect' })).toBe(1);
    expect(t.value('queueLeft', { result: 'caller_gone' })).toBe(1);
    const c = await visit(gate);
    a.finish(200);
    await Promise.resolve();
    expect([b.started, c.started]).toEqual([false, true]);
    expect(t.value('admitted')).toBe(2);
  });
});

describe('answered by other code while it waits, as by the middleware of a timeout', () => {
  test.each([
    [503, 'shed', 1],
    [504, 'refused', 0],
    [408, 'refused', 0],
    [500, 'refused', 0],
  ] as const)(
    '%i: never let in (%s), nobody has left, and the gate has refused nothing',
    async (status, outcome, shed) => {
      const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 1_000 } });
      const a = await visit(gate);
      const b = await visit(gate);
      await vi.advanceTimersByTimeAsync(80);
      b.finish(status);
      expect(b.record.outcome).toBe(outcome);
      expectIdentities();
      expect([t.value('admitted'), t.value('shed', { reason: 'capacity' })]).toEqual([1, shed]);
      expect(t.value('queueLeft', { result: 'deleted' })).toBe(1);
      expect([t.value('queueLeft'), t.value('gateRefused'), t.value('cancellations')]).toEqual([1, 0, 0]);
      const c = await visit(gate);
      a.finish(200);
      await Promise.resolve();
      expect([b.started, c.started]).toEqual([false, true]);
    },
  );

  test('with an answer that is no error it has what it came for', async () => {
    const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 1_000 } });
    await visit(gate);
    const b = (await visit(gate)).finish(200);
    expect([b.record.outcome, t.value('admitted')]).toEqual(['useful', 2]);
    expect(t.value('queueLeft', { result: 'deleted' })).toBe(1);
  });
});

describe('S-25, C-08: a permit goes back when the work has really ended', () => {
  async function answeredWithAnOpenCall(releaseAt?: 'answer') {
    const gate = admission({ limit: 1, ...(releaseAt && { releaseAt }) });
    const a = await visit(gate);
    const target = t.hooks.calls.target('stock', 80, 'http');
    const call = runInScope(a.record, () => t.hooks.calls.begin(target, performance.now()));
    a.leave();
    return { gate, call };
  }

  function counts(): unknown {
    const dependency = { dependency: 'requests' };
    return { held: t.value('concurrencyUsed', dependency), executing: t.value('executing', dependency) };
  }

  test('the client has left and a call goes on: held until its end', async () => {
    const { gate, call } = await answeredWithAnOpenCall();
    expect(counts()).toEqual({ held: 1, executing: 1 });
    expect((await visit(gate)).finish().answer).toMatchObject({ status: 503 });
    t.hooks.calls.end(call, 'aborted', performance.now());
    expect(counts()).toEqual({ held: 0, executing: 0 });
    expect((await visit(gate)).started).toBe(true);
  });

  test('given back with the answer, the difference is to be seen', async () => {
    const { gate, call } = await answeredWithAnOpenCall('answer');
    expect(counts()).toEqual({ held: 0, executing: 1 });
    const b = await visit(gate);
    expect(b.started).toBe(true);
    expect(counts()).toEqual({ held: 1, executing: 2 });
    t.hooks.calls.end(call, 'answered', performance.now());
    b.finish(200);
    expect(counts()).toEqual({ held: 0, executing: 0 });
  });

  test('a handler of which a framework tells the end is waited for', async () => {
    const gate = admission({ limit: 1 });
    const a = await visit(gate);
    a.record.handlerTracked = true;
    a.leave();
    expect(counts()).toEqual({ held: 1, executing: 1 });
    t.recorder.handlerEnded(a.record, performance.now());
    expect(counts()).toEqual({ held: 0, executing: 0 });
  });
});

describe('P-15, L-12: priority', () => {
  const critical = { 'time-budget': 'remaining=5000, attempt=1, caller=gateway, priority=critical' };

  async function order(sender: string, before: (visit: Visit) => void = () => {}): Promise<boolean[]> {
    start({ entry: { trust: ['10.0.0.0/8'] } });
    const gate = admission({ limit: 1, queue: { size: 2, maxAgeMs: 1_000 } });
    const a = await visit(gate);
    const b = await new Visit({}, '10.0.0.1').through(gate);
    const c = new Visit(critical, sender);
    before(c);
    await c.through(gate);
    a.finish(200);
    await Promise.resolve();
    return [b.started, c.started];
  }

  test('of a trusted sender counts: it is served first', async () => {
    expect(await order('10.0.0.2')).toEqual([false, true]);
    expect(t.value('offered', { priority: 'critical', caller: 'gateway' })).toBe(1);
  });

  test('that a client claims for itself does not', async () => {
    expect(await order('192.0.2.1')).toEqual([true, false]);
    expect(t.value('offered', { priority: 'critical' })).toBe(0);
  });

  test('after setPriority does, whoever sent it', async () => {
    expect(
      await order('192.0.2.1', ({ record }) => runInScope(record, () => setPriority('critical'))),
    ).toEqual([false, true]);
  });

  test('S-19: a full queue gives up the last of a lower class, which is told so', async () => {
    const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 1_000 } });
    await visit(gate);
    const low = new Visit({}, '127.0.0.1');
    low.record.priority = 'low';
    await low.through(gate);
    const normal = await visit(gate);
    expect(low.finish().answer).toMatchObject({ status: 503, reason: 'overloaded' });
    expect(normal.answer).toBeUndefined();
    expect(t.value('queueLeft', { result: 'replaced' })).toBe(1);
    expect(t.value('shed', { priority: 'low', reason: 'concurrency' })).toBe(1);
  });

  test('L-13: how long each class waits, and its oldest, so that starvation is to be seen', async () => {
    const gate = admission({ limit: 1, queue: { size: 3, maxAgeMs: 1_000 } });
    let working = await visit(gate);
    const low = new Visit({}, '127.0.0.1');
    low.record.priority = 'low';
    await low.through(gate);
    for (let i = 0; i < 3; i++) {
      const next = await visit(gate);
      await vi.advanceTimersByTimeAsync(100);
      working.finish(200);
      await Promise.resolve();
      working = next;
    }
    t.recorder.families.queueOldest.refresh?.();
    expect(t.value('queueOldest', { priority: 'low' })).toBe(0.3);
    expect(t.value('queueOldest', { priority: 'unset' })).toBe(0);
    expect(t.histogram('queueAge', { priority: 'unset' })).toEqual({ count: 3, sum: expect.closeTo(0.3) });
    expect(t.histogram('queueAge', { priority: 'low' }).count).toBe(0);
  });
});

describe('answers', () => {
  test('L-09, L-10: over quota 429, with a time to come again where there is one', async () => {
    const waits = [1_500, Infinity, undefined];
    const gate = admission({ limit: 5, overQuotaMs: () => waits.shift() });
    expect((await visit(gate)).finish().answer).toEqual({ status: 429, reason: 'quota', after: '2' });
    expect((await visit(gate)).finish().answer).toEqual({ status: 429, reason: 'quota', after: undefined });
    expect((await visit(gate)).started).toBe(true);
    expect(t.value('shed', { reason: 'quota' })).toBe(2);
    expect(t.value('outcomes', { outcome: 'useful' })).toBe(0);
  });

  test('L-10: for capacity a time within the range, and not the same for all; never where waiting cannot help', async () => {
    const gate = admission({ limit: 1, retryAfterS: [2, 5] });
    await visit(gate);
    const seen = new Set<string>();
    for (let i = 0; i < 200; i++)
      seen.add((await visit(gate)).finish().response.headers['retry-after'] ?? 'none');
    expect([...seen].sort()).toEqual(['2', '3', '4', '5']);
    expect((await visit(gate, 0)).finish().answer).toMatchObject({ status: 504, after: undefined });
  });

  test('a quota that throws lets in, and the fault is counted', async () => {
    const gate = admission({
      limit: 1,
      overQuotaMs: () => {
        throw new Error('no store');
      },
    });
    expect((await visit(gate)).started).toBe(true);
    expect(t.value('internalErrors')).toBe(1);
  });

  test.each([
    ['null', () => null],
    ['NaN', () => Number.NaN],
    ['a text', () => '5'],
    ['an async one', () => Promise.resolve()],
    ['an async one that fails', () => Promise.reject(new Error('no store'))],
  ])('a quota that tells no number (%s) refuses nobody, and the limit holds', async (_, overQuota) => {
    // Plain JavaScript can give anything.
    const gate = admission({ limit: 1, overQuotaMs: overQuota as () => number });
    expect((await visit(gate)).started).toBe(true);
    expect((await visit(gate)).answer).toMatchObject({ status: 503 });
    expect(t.value('internalErrors')).toBe(2);
  });

  test('a time that the header has no digits for is left out', async () => {
    const gate = admission({ limit: 1, overQuotaMs: () => 1e300 });
    expect((await visit(gate)).answer).toEqual({ status: 429, reason: 'quota', after: undefined });
  });

  test('what the handler throws is the service’s', () => {
    const gate = admission({ limit: 1 });
    const { record, response } = new Visit({}, '127.0.0.1');
    const fail = () => {
      throw new Error('handler');
    };
    expect(() => runInScope(record, () => gate.express(undefined, response, fail))).toThrow('handler');
    expect(t.value('internalErrors')).toBe(0);
  });
});

describe('the context and the end of the work', () => {
  test('what comes after the wait runs in its own request, whoever gave the permit back', async () => {
    const gate = admission({ limit: 1, queue: { size: 2, maxAgeMs: 100 } });
    const a = await visit(gate);
    const [b, c] = [new Visit({}, '127.0.0.1'), new Visit({}, '127.0.0.1')];
    const ran: (RequestRecord | undefined)[] = [];
    const note = () => void ran.push(currentScope()?.request);
    runInScope(b.record, () => gate.express(undefined, b.response, note));
    const answer = { ...c.response, setHeader: () => {}, end: note };
    runInScope(c.record, () => gate.express(undefined, answer, () => {}));
    runInScope(a.record, () => a.finish(200));
    await vi.advanceTimersByTimeAsync(100);
    expect(ran).toEqual([b.record, c.record]);
  });

  test('a handler that gives a promise is waited for, beyond its reply', async () => {
    const gate = admission({ limit: 1 });
    const { promise, resolve } = Promise.withResolvers<void>();
    const a = new Visit({}, '127.0.0.1');
    runInScope(a.record, () =>
      gate.handler((_request: undefined, _response: FakeResponse) => promise)(undefined, a.response),
    );
    a.finish(200);
    expect(t.value('concurrencyUsed')).toBe(1);
    resolve();
    await vi.advanceTimersByTimeAsync(0);
    expect(t.value('concurrencyUsed')).toBe(0);
  });

  test('who listens is given what the handler gives, at once and after the wait', async () => {
    const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 1_000 } });
    const first = await visit(gate);
    const handler = gate.handler(async () => {
      throw new Error('of the handler');
    });
    const waits = new Visit({}, '127.0.0.1');
    const later = runInScope(waits.record, () => handler(undefined as never, waits.response as never));
    first.finish();
    await expect(later).rejects.toThrow('of the handler');
    waits.finish(500);
    const atOnce = new Visit({}, '127.0.0.1');
    await expect(
      runInScope(atOnce.record, () => handler(undefined as never, atOnce.response as never)),
    ).rejects.toThrow('of the handler');
  });

  test('with the operation still to be found it is admitted once that is known, and once', async () => {
    start({ routes: [] });
    const gate = admission({ limit: 1 });
    const a = await visit(gate);
    const states = () => ['arriving', 'admitted'].map((state) => t.value('inFlight', { state }));
    expect([t.value('offered'), t.value('admitted'), ...states()]).toEqual([0, 0, 1, 0]);
    t.recorder.handling(a.record, OPERATION, performance.now());
    t.recorder.admit(a.record, performance.now());
    expect([t.value('offered'), t.value('admitted'), ...states()]).toEqual([1, 1, 0, 1]);
    a.finish(200);
    expect(t.value('admitted', { operation: OPERATION })).toBe(1);
  });

  test('what was let in and is refused by another limiter stays admitted', async () => {
    const gate = admission({ limit: 1 });
    (await visit(gate)).finish(429);
    expect([t.value('admitted'), t.value('shed'), t.value('outcomes', { outcome: 'shed' })]).toEqual([
      1, 0, 1,
    ]);
  });
});

describe('S-20: on the span of the request', () => {
  function watchSpan({ record }: Visit) {
    const seen: Record<string, unknown> = {};
    const span = {
      isRecording: () => true,
      setAttribute: (key: string, value: unknown) => {
        seen[key] = value;
        return span;
      },
      addEvent: (name: string, attributes: Record<string, unknown>) => {
        seen[name] = attributes;
        return span;
      },
    };
    // As much of a span as is written to.
    record.span = span as unknown as NonNullable<RequestRecord['span']>;
    return seen;
  }

  test('a refusal with its reason, class, time left and wait', async () => {
    const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 200 } });
    await visit(gate);
    const b = new Visit({ 'x-request-timeout-ms': '1000' }, '127.0.0.1');
    const seen = watchSpan(b);
    await b.through(gate);
    await vi.advanceTimersByTimeAsync(200);
    b.finish();
    expect(seen['time_budget.refused']).toEqual({
      'time_budget.refusal.reason': 'queue_age',
      'time_budget.admission.queue': 'requests',
      'time_budget.admission.waited_ms': 200,
      'time_budget.priority': 'unset',
      'time_budget.mode': 'enforce',
      'time_budget.remaining_ms': 800,
    });
    expect(seen['time_budget.shed.reason']).toBe('queue_age');
    expect(seen['time_budget.outcome']).toBe('shed');
  });

  test('an admission after a wait', async () => {
    const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 200 } });
    const a = await visit(gate);
    const b = new Visit({}, '127.0.0.1');
    const seen = watchSpan(b);
    await b.through(gate);
    await vi.advanceTimersByTimeAsync(150);
    a.finish(200);
    expect(seen).toMatchObject({
      'time_budget.admission.queue': 'requests',
      'time_budget.admission.waited_ms': 150,
    });
    expect('time_budget.refused' in seen).toBe(false);
  });
});

describe('observe', () => {
  test.each(['observe', 'propagate'] as const)(
    '%s: nobody waits and nobody is refused: it is counted',
    async (mode) => {
      start({ mode });
      const gate = admission({ limit: 1, queue: { size: 1, maxAgeMs: 1_000 }, overQuotaMs: () => undefined });
      const visits = [await visit(gate), await visit(gate), await visit(gate), await visit(gate, 0)];
      expect(visits.map(({ started, answer }) => started && answer === undefined)).toEqual([
        true,
        true,
        true,
        true,
      ]);
      expect(t.value('concurrencyUsed')).toBe(4);
      expect(t.value('gateRefused', { reason: 'concurrency', enforced: 'no' })).toBe(1);
      expect(t.value('gateRefused', { reason: 'deadline_exceeded_before_dispatch', enforced: 'no' })).toBe(1);
      expect(t.value('gateRefused', { enforced: 'yes' })).toBe(0);
      for (const each of visits) each.finish(200);
      expect(t.value('shed')).toBe(0);
      expect(t.value('admitted')).toBe(4);
      expect(t.value('concurrencyUsed')).toBe(0);
    },
  );

  test('a limiter behind it decides: the gate has let nothing in', async () => {
    start({ mode: 'observe' });
    (await visit(admission({ limit: 1 }))).finish(429);
    expect([t.value('admitted'), t.value('shed', { reason: 'quota' })]).toEqual([0, 1]);
  });

  test('where the package is not started, and outside a request, everything is let in', async () => {
    const gate = admission({ limit: 1 });
    deactivateRecorder(t.recorder);
    const go = vi.fn();
    gate.express(undefined, new FakeResponse(), go);
    gate.express(undefined, new FakeResponse(), go);
    activateRecorder(t.recorder);
    gate.express(undefined, new FakeResponse(), go);
    gate.express(undefined, new FakeResponse(), go);
    expect(go).toHaveBeenCalledTimes(4);
  });
});

describe('floods', () => {
  test('M-35: callers beyond the cap are shed under other, and the fold is counted', async () => {
    start({ labels: { callers: 2 } });
    const gate = admission({ limit: 1 });
    await visit(gate);
    for (let i = 0; i < 50; i++) {
      const header = { 'time-budget': `remaining=5000, attempt=1, caller=c${i}, priority=critical` };
      (await visit(gate, undefined, header)).finish();
    }
    expect(t.value('shed')).toBe(50);
    expect(t.value('shed', { caller: 'c0' })).toBe(1);
    expect(t.value('shed', { caller: 'other' })).toBe(48);
    expect(t.value('labelOverflow', { label: 'caller' })).toBe(48);
  });

  test('a priority that is no word of the list is none', async () => {
    const gate = admission({ limit: 1 });
    await visit(gate);
    for (let i = 0; i < 50; i++) {
      const header = { 'time-budget': `remaining=5000, attempt=1, priority=p${i}` };
      (await visit(gate, undefined, header)).finish();
    }
    expect(t.value('shed', { priority: 'unset' })).toBe(50);
  });
});

describe('options', () => {
  test.each<[Partial<AdmissionOptions>, string]>([
    [{ limit: 0 }, 'limit must be a whole number in 1..100000, got 0'],
    [{ limit: -1 }, 'limit must be a whole number in 1..100000, got -1'],
    [{ limit: Number.NaN }, 'limit must be a whole number in 1..100000, got NaN'],
    [{ limit: 1.5 }, 'limit must be a whole number in 1..100000, got 1.5'],
    [{ limit: 100_001 }, 'limit must be a whole number in 1..100000, got 100001'],
    [{ queue: { size: 0, maxAgeMs: 1 } }, 'queue.size must be a whole number in 1..100000, got 0'],
    [{ queue: { size: 100_001, maxAgeMs: 1 } }, 'queue.size must be a whole number in 1..100000, got 100001'],
    [{ queue: { size: 1, maxAgeMs: 0 } }, 'queue.maxAgeMs must be a number in 1..3600000, got 0'],
    [{ queue: { size: 1, maxAgeMs: Number.NaN } }, 'queue.maxAgeMs must be a number in 1..3600000, got NaN'],
    [
      { queue: { size: 1, maxAgeMs: 3_600_001 } },
      'queue.maxAgeMs must be a number in 1..3600000, got 3600001',
    ],
    [{ minimumMs: -1 }, 'minimumMs must be a number in 0..3600000, got -1'],
    [{ retryAfterS: [0, 1] }, 'retryAfterS[0] must be a whole number in 1..3600, got 0'],
    [{ retryAfterS: [3, 2] }, 'retryAfterS[1] must be a whole number in 3..3600, got 2'],
  ])('%o is refused', (options, message) => {
    expect(() => admission({ limit: 1, ...options })).toThrow(new RangeError(`admission: ${message}`));
  });

  test.each<[unknown, string]>([
    [undefined, 'options must be an object, got undefined'],
    [null, 'options must be an object, got null'],
    [{ limit: Object.create(null) }, 'limit must be a whole number in 1..100000, got a object'],
    [{ limit: 1, queue: null }, 'queue.size must be a whole number in 1..100000, got undefined'],
    [{ limit: 1, retryAfterS: null }, 'retryAfterS[0] must be a whole number in 1..3600, got undefined'],
  ])('%o of plain JavaScript is refused by name', (options, message) => {
    expect(() => admission(options as AdmissionOptions)).toThrow(new RangeError(`admission: ${message}`));
  });

  test('the last values that are accepted', () => {
    const most = { size: 100_000, maxAgeMs: 3_600_000 };
    expect(() =>
      admission({ name: 'a', limit: 1, queue: { size: 1, maxAgeMs: 1 }, minimumMs: 0 }),
    ).not.toThrow();
    expect(() => admission({ name: 'b', limit: 100_000, queue: most, retryAfterS: [1, 1] })).not.toThrow();
  });

  test('a name is a label, is taken once, and there are at most 20', () => {
    expect(() => admission({ name: 'a b', limit: 1 })).toThrow(/a name must be up to 64 letters.*got a b/);
    expect(() => admission({ name: 'other', limit: 1 })).toThrow(RangeError);
    for (let i = 1; i <= 20; i++) admission({ name: `gate${i}`, limit: 1 });
    expect(() => admission({ name: 'gate20', limit: 1 })).toThrow(
      'admission: there is a queue gate20 already',
    );
    expect(() => admission({ name: 'gate21', limit: 1 })).toThrow(
      'admission: at most 20 names of one kind, gate21 is one too many',
    );
  });
});
