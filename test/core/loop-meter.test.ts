import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { busyBetweenMs, LoopMeter } from '../../src/core/loop-meter.ts';

/** A loop with a clock of its own, in the order of libuv: count, poll (which may sleep), callbacks, timers. */
class VirtualLoop {
  readonly meter = new LoopMeter();
  now = 1000;
  idleMs = 0;
  count = 0;

  /** Starts the next iteration; its poll sleeps for `sleepMs`, 0 when something is already there. */
  poll(sleepMs = 0): this {
    this.count += 1;
    this.now += sleepMs;
    this.idleMs += sleepMs;
    return this;
  }

  work(forMs: number): this {
    this.now += forMs;
    return this;
  }

  byIdleTime(): number {
    return this.meter.sample(this.now, this.idleMs);
  }

  event(isFirst?: boolean): number {
    this.byIdleTime();
    return this.meter.tighten(this.count, isFirst);
  }

  accept(): this {
    this.byIdleTime();
    this.meter.accept(this.count);
    return this;
  }
}

/** A loop that has slept and been seen, so that something is known. */
function running(): VirtualLoop {
  const loop = new VirtualLoop().poll(50);
  loop.event();
  return loop;
}

describe('LoopMeter', () => {
  it('idle: an event that wakes the loop has not waited', () => {
    const loop = running();
    loop.poll(30);
    expect(loop.byIdleTime()).toBe(0);
    expect(loop.event()).toBe(0);
  });

  it('idle: work before the sleep counts, for it may have come after the sleep as well', () => {
    const loop = running().work(7).poll(30).work(2);
    expect(loop.event()).toBe(9);
  });

  it('blocked: an event after a block of 200 ms may have waited for all of it', () => {
    const loop = running().poll(30);
    loop.event();
    loop.work(200).poll();
    expect(loop.event()).toBe(200);
  });

  it('blocked: a sleep of a microsecond ends the wait', () => {
    const loop = running().poll(30);
    loop.event();
    loop.work(200).poll(0.001);
    loop.event();
    loop.poll();
    expect(loop.event()).toBeCloseTo(200, 9);
    loop.work(1).poll(0.001);
    expect(loop.event()).toBeCloseTo(1, 9);
  });

  it('saturated: never idle, 3 ms an iteration: two iterations, not all of them', () => {
    const loop = running();
    for (let iteration = 0; iteration < 1000; iteration += 1) {
      loop.poll();
      for (let request = 0; request < 30; request += 1) {
        loop.event();
        loop.work(0.1);
      }
    }
    loop.poll();
    // By the last request of the iteration before the last one: 0.1 ms of its own and the last iteration.
    expect(loop.event()).toBeCloseTo(3.1, 6);
    expect(loop.byIdleTime()).toBeCloseTo(3000, 6);
  });

  it('saturated: an observation two iterations back is old enough, one iteration back is not', () => {
    const loop = running().poll();
    loop.event();
    loop.work(100).poll();
    expect(loop.event()).toBe(100);
    loop.work(10).poll();
    expect(loop.event()).toBe(110);
    loop.work(1).poll();
    expect(loop.event()).toBe(11);
  });

  it('saturated: iterations without an event leave the older observation in force', () => {
    const loop = running().poll();
    loop.event();
    for (let iteration = 0; iteration < 5; iteration += 1) loop.work(4).poll();
    expect(loop.event()).toBe(20);
  });

  it('saturated: of an unseen iteration between, the two that were seen are two apart', () => {
    const loop = running().poll();
    loop.event();
    loop.work(300).poll();
    loop.event();
    loop.work(10).poll().work(10).poll();
    expect(loop.event()).toBe(20);
  });

  it('F18: of 200 requests readable at once, 20 ms each, the last has waited for all the others', () => {
    const loop = running().poll();
    loop.event();
    loop.poll();
    const bounds = Array.from({ length: 200 }, () => {
      const bound = loop.event();
      loop.work(20);
      return bound;
    });
    expect(bounds.at(0)).toBe(0);
    expect(bounds.at(100)).toBe(2000);
    expect(bounds.at(-1)).toBe(3980);
  });

  it('F18: the same with 200 new connections, of which each iteration accepts one', () => {
    const loop = running().poll(10).accept();
    const bounds = Array.from({ length: 200 }, () => {
      loop.poll().accept();
      const bound = loop.event(true);
      loop.work(20);
      return bound;
    });
    expect(bounds.at(0)).toBe(0);
    expect(bounds.at(-1)).toBe(3980);
  });

  it('new connection: an iteration that accepts nothing ends the run, for the queue was empty', () => {
    const loop = running().poll(10).accept();
    for (let iteration = 0; iteration < 9; iteration += 1) {
      loop.work(20).poll().accept();
    }
    loop.work(20).poll();
    loop.event();
    loop.work(20).poll().accept();
    loop.work(20).poll();
    // Old enough for the accept: the accept before the empty iteration. 20 before it, 20 in it, 20 after.
    expect(loop.event(true)).toBe(60);
    // On a connection that is not new only the last two iterations count.
    expect(loop.event(false)).toBe(40);
  });

  it('new connection: a request two iterations after the accept was not there at the accept', () => {
    const loop = running().poll(10).accept();
    for (let iteration = 0; iteration < 9; iteration += 1) {
      loop.work(20).poll().accept();
    }
    loop.work(1).poll();
    expect(loop.event(true)).toBe(181);
    loop.work(1).poll();
    expect(loop.event(true)).toBe(2);
  });

  it('new connection: a sleep ends the run, whatever the iterations say', () => {
    const loop = running().poll(10).accept();
    for (let iteration = 0; iteration < 9; iteration += 1) {
      loop.work(20).poll().accept();
    }
    loop.work(20).poll(1).accept();
    loop.work(5).poll();
    expect(loop.event(true)).toBe(25);
  });

  it('new connection: when it is not said, an event right after an accept is taken for the first', () => {
    const loop = running().poll(10).accept();
    for (let iteration = 0; iteration < 9; iteration += 1) {
      loop.work(20).poll().accept();
    }
    loop.work(1).poll();
    expect(loop.event(undefined)).toBe(181);
    expect(loop.event(false)).toBe(21);
    loop.work(1).poll();
    expect(loop.event(undefined)).toBe(2);
  });

  it('new connection: without word of accepts only idle time bounds it', () => {
    const loop = running();
    for (let iteration = 0; iteration < 10; iteration += 1) {
      loop.work(20).poll();
      loop.event();
    }
    expect(loop.event(true)).toBe(200);
    expect(loop.event(false)).toBe(40);
  });

  it('new connection: an accept in an iteration that was not counted is taken for part of the run', () => {
    const loop = running().poll(10).work(1);
    loop.byIdleTime();
    loop.meter.accept(undefined);
    for (let iteration = 0; iteration < 4; iteration += 1) loop.work(20).poll();
    loop.accept().work(1).poll();
    expect(loop.event(true)).toBe(82);
  });

  it('new connection: an accept before the loop slept is not part of the run, counted or not', () => {
    const loop = running().poll(10).work(1);
    loop.byIdleTime();
    loop.meter.accept(undefined);
    loop.poll(10);
    for (let iteration = 0; iteration < 10; iteration += 1) {
      loop.event();
      loop.work(20).poll();
    }
    loop.accept().work(1).poll();
    expect(loop.event(true)).toBe(41);
  });

  it('no loop count: the bound by idle time stands', () => {
    const loop = running();
    for (let iteration = 0; iteration < 10; iteration += 1) {
      loop.work(20).poll();
      loop.byIdleTime();
      expect(loop.meter.tighten(undefined, false)).toBe(20 * (iteration + 1));
    }
  });

  it('idle time 0: nothing is known, no wait is claimed', () => {
    const meter = new LoopMeter();
    for (const now of [0, 500, 90_000]) {
      expect(meter.sample(now, 0)).toBe(0);
      expect(meter.tighten(1, true)).toBe(0);
      meter.accept(1);
    }
  });

  it('idle time 0: the first reading above 0 claims nothing, the second counts from it', () => {
    const meter = new LoopMeter();
    meter.sample(500, 0);
    expect(meter.sample(2000, 0.001)).toBe(0);
    expect(meter.tighten(7, true)).toBe(0);
    expect(meter.sample(2040, 0.001)).toBe(40);
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY, -1])('idle time %s: ignored', (idleMs) => {
    const loop = running();
    expect(loop.meter.sample(loop.now + 5, idleMs)).toBe(0);
    loop.work(20).poll();
    expect(loop.event()).toBe(20);
  });

  it('a clock that stands still or runs backwards claims nothing', () => {
    const loop = running();
    expect(loop.event()).toBe(0);
    expect(loop.event()).toBe(0);
    loop.work(-100);
    expect(loop.byIdleTime()).toBe(0);
    expect(loop.event()).toBe(0);
    expect(loop.meter.sample(Number.NaN, loop.idleMs)).toBe(0);
  });

  it('idle time that shrinks is another loop: no wait is claimed across the two', () => {
    const loop = running();
    loop.work(500);
    expect(loop.meter.sample(loop.now, 1)).toBe(0);
  });

  it('looks: 101 at once after a rest, then one in 5 ms', () => {
    const meter = new LoopMeter();
    const taken = Array.from({ length: 200 }, () => meter.tryLook(1000)).filter(Boolean).length;
    expect(taken).toBe(101);
    expect(meter.tryLook(1004.999)).toBe(false);
    expect(meter.tryLook(1005)).toBe(true);
    expect(meter.tryLook(1009.999)).toBe(false);
    expect(meter.tryLook(1010)).toBe(true);
  });

  it('is never below the truth, whatever the loop does', () => {
    fc.assert(fc.property(fc.array(iterationPlan, { minLength: 1, maxLength: 60 }), neverBelowTruth));
  });
});

/** What happens during one iteration: gaps before arrivals are on the time line, work is done in the order listed. */
const iterationPlan = fc.record({
  arrivals: fc.array(
    fc.record({
      afterMs: fc.integer({ min: 0, max: 60 }),
      isNew: fc.boolean(),
      isToldNew: fc.boolean(),
      workMs: fc.integer({ min: 0, max: 30 }),
    }),
    { maxLength: 5 },
  ),
  unseenWorkMs: fc.integer({ min: 0, max: 40 }),
  timerMs: fc.constantFrom(0, 0, 1, 80),
  isLookedAt: fc.boolean(),
});

interface Arrival {
  readonly at: number;
  readonly isNew: boolean;
  readonly isToldNew: boolean;
  readonly workMs: number;
}

function neverBelowTruth(
  plans: readonly (typeof iterationPlan extends fc.Arbitrary<infer P> ? P : never)[],
): void {
  const loop = running();
  let at = loop.now;
  const coming: Arrival[] = plans.flatMap((plan) =>
    plan.arrivals.map(({ afterMs, ...arrival }) => {
      at += afterMs;
      return { at, ...arrival };
    }),
  );
  let backlog: Arrival[] = [];
  let accepted: Arrival[] = [];
  for (let turn = 0; coming.length > 0 || backlog.length > 0 || accepted.length > 0; turn += 1) {
    const plan = plans[turn % plans.length];
    const next = coming[0]?.at ?? loop.now;
    const mustSleep = backlog.length === 0 && accepted.length === 0 && next > loop.now;
    loop.poll(mustSleep ? next - loop.now : 0);

    const here = coming.filter((arrival) => arrival.at <= loop.now);
    coming.splice(0, here.length);
    backlog = backlog.concat(here.filter((arrival) => arrival.isNew));
    const readable = accepted.concat(here.filter((arrival) => !arrival.isNew));

    loop.work(plan?.unseenWorkMs ?? 0);
    // One accept in an iteration; what the connection already holds is read in the next.
    const connection = backlog.shift();
    accepted = connection === undefined ? [] : [connection];
    if (connection !== undefined) loop.accept();
    for (const request of readable) {
      const isFirst = request.isToldNew ? request.isNew : undefined;
      expect(loop.event(isFirst)).toBeGreaterThanOrEqual(loop.now - request.at - 1e-6);
      loop.work(request.workMs);
    }
    if (plan?.isLookedAt) loop.event();
    loop.work(plan?.timerMs ?? 0);
  }
}

describe('busyBetweenMs', () => {
  it('is the time between less the time asleep', () => {
    expect(busyBetweenMs(1000, 200, 1100, 230)).toBe(70);
    expect(busyBetweenMs(1000, 200, 1100, 200)).toBe(100);
    expect(busyBetweenMs(1000, 200, 1100, 300)).toBe(0);
  });

  it('stays between 0 and the time between, whatever the readings', () => {
    expect(busyBetweenMs(1000, 200, 1100, 301)).toBe(0);
    expect(busyBetweenMs(1000, 200, 1100, 199)).toBe(100);
    expect(busyBetweenMs(1000, 200, 1000, 200)).toBe(0);
    expect(busyBetweenMs(1000, 200, 999, 200)).toBe(0);
  });

  it('claims nothing while idle time is 0 or unknown', () => {
    expect(busyBetweenMs(1000, 0, 1100, 0)).toBe(0);
    expect(busyBetweenMs(1000, 0, 1100, 0.001)).toBeCloseTo(99.999, 9);
    expect(busyBetweenMs(1000, 0, 1100, Number.NaN)).toBe(0);
  });
});
