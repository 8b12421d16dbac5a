import net from 'node:net';
import { beforeEach, describe, expect, test } from 'vitest';
import { UndiciConnects, type Waiter } from '../../instrumentation/undici/undici-connect.ts';
import { phaseIndex } from '../../src/core/call.ts';
import type { CallRecord } from '../../src/records.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { phases } from '../support/outgoing.ts';
import { phaseSums } from '../support/phase-sums.ts';

const ORIGIN = 'http://orders.test';

let now: number;
let t: TestHooks;
let connects: UndiciConnects;

beforeEach(() => {
  now = 1000;
  t = createTestHooks({ clock: { now: () => now, waitMs: () => 0, idleMs: () => 0 } });
  connects = new UndiciConnects(t.hooks);
});

/** A request that undici has made, which waits from now on. */
function create({ isDeferred = false, wasPooled = false, origin = ORIGIN } = {}): Waiter {
  const call = t.hooks.calls.begin(t.hooks.calls.target('orders.test', 80, 'http'), now);
  call.enter('pool_wait', now);
  const waiter = { call, origin, isDeferred, wasPooled, attempt: undefined };
  connects.add(waiter);
  return waiter;
}

/** A client begins to connect; its socket looks its name up. */
async function connect(connector: object, origin = ORIGIN): Promise<net.Socket> {
  const socket = new net.Socket();
  connects.beforeConnect(origin, connector);
  connects.socketMade(socket);
  Object.assign(socket, { connecting: true, _host: 'orders.test' });
  await Promise.resolve();
  return socket;
}

function send(waiter: Waiter, socket: net.Socket): void {
  connects.sent(waiter, socket, now);
}

function end({ call }: Waiter): CallRecord {
  t.hooks.calls.end(call, 'answered', now);
  return call;
}

function sums({ call }: Waiter) {
  const all: Record<string, number> = {};
  for (const [phase, ms] of phaseSums(call, now).entries()) if (ms !== undefined) all[phase] = ms;
  return all;
}

describe('whom a client connects for', () => {
  test('the request it was just given, and not an older one', async () => {
    const older = create();
    now += 100;
    const newer = create();
    await connect({});
    expect([older.call.phase, newer.call.phase]).toEqual(['pool_wait', 'dns']);
  });

  test('requests with a body are connected for a moment later, in their order', async () => {
    const first = create({ isDeferred: true });
    const second = create({ isDeferred: true });
    const plain = create();
    const connector = {};
    await connect(connector);
    expect([first.call.phase, second.call.phase, plain.call.phase]).toEqual([
      'pool_wait',
      'pool_wait',
      'dns',
    ]);
    await connect(connector);
    expect([first.call.phase, second.call.phase]).toEqual(['dns', 'pool_wait']);
    await connect(connector);
    expect(second.call.phase).toBe('dns');
  });

  test('one with a body, before a plain one that has waited longer for something else', async () => {
    const waitsForIdle = create();
    const posted = create({ isDeferred: true });
    const sentAtOnce = create();
    connects.remove(sentAtOnce);
    await connect({});
    expect([waitsForIdle.call.phase, posted.call.phase]).toEqual(['pool_wait', 'dns']);
  });

  test('the one that waits longest, when a connection is lost', async () => {
    const first = create();
    const second = create();
    connects.remove(second);
    now += 500;
    await connect({});
    expect(first.call.phase).toBe('dns');
    expect(sums(first)).toMatchObject({ 0: 500 });
  });

  test('nobody of another origin', async () => {
    const waiter = create();
    await connect({}, 'http://other.test');
    expect(waiter.call.phase).toBe('pool_wait');
  });

  test('the one whose attempt failed may be connected for again', async () => {
    const waiter = create();
    const connector = {};
    const socket = await connect(connector);
    socket.destroy();
    const error = new Error('no way');
    connects.connectFailed(connector, error);
    expect(connects.hasFailedWith(error)).toBe(true);
    expect(connects.hasFailedWith(new Error('no way'))).toBe(false);
    expect(waiter.attempt).toBeUndefined();
    await connect(connector);
    expect(waiter.attempt).toBeDefined();
  });
});

describe('what a request has waited for, once it is sent', () => {
  test('the connection that it was taken to wait for', async () => {
    const waiter = create();
    const connector = {};
    const socket = await connect(connector);
    now += 30;
    socket.emit('lookup', null, '127.0.0.1', 4, 'orders.test');
    now += 20;
    socket.emit('connect');
    connects.connected(connector, socket);
    send(waiter, socket);
    now += 10;
    expect(phases(end(waiter))).toEqual(['connect', 'request', 'dns']);
    expect(Object.values(sums(waiter)).sort()).toEqual([10, 20, 30]);
  });

  test('another connection than was thought: what happened there is told instead', async () => {
    const connector = {};
    const mine = create({ isDeferred: true });
    // A request that waits for a free connection, and is taken for the one that this client connects for.
    const other = create();
    const socket = await connect(connector);
    expect([mine.call.phase, other.call.phase]).toEqual(['pool_wait', 'dns']);
    now += 30;
    socket.emit('lookup', null, '127.0.0.1', 4, 'orders.test');
    now += 20;
    socket.emit('connect');
    connects.connected(connector, socket);
    send(mine, socket);
    now += 10;
    expect(phases(end(mine))).toEqual(['connect', 'request', 'dns']);
    expect(Object.values(sums(mine)).sort()).toEqual([10, 20, 30]);

    // A connection that was there all along, and busy with another request until now.
    const old = new net.Socket();
    connects.connected(connector, old);
    connects.freed(old, now);
    send(other, old);
    now += 5;
    expect(phases(end(other))).toEqual(['pool_wait', 'request']);
    expect(Object.values(sums(other)).sort()).toEqual([5, 60]);
  });

  test('nothing, on a connection that was idle', () => {
    const socket = new net.Socket();
    connects.connected({}, socket);
    now += 100;
    connects.freed(socket, now);
    now += 100;
    const waiter = create();
    now += 2;
    send(waiter, socket);
    now += 10;
    expect(phases(end(waiter))).toEqual(['request']);
    expect(sums(waiter)).toEqual({ 3: 12 });
  });

  test('an idle connection that was looked at late was waiting for the loop, from 5 ms on', () => {
    const socket = new net.Socket();
    connects.connected({}, socket);
    now += 100;
    for (const [delayMs, phase] of [
      [4, 'request'],
      [5, 'event_loop'],
    ] as const) {
      connects.freed(socket, now - 1);
      const waiter = create();
      now += delayMs;
      send(waiter, socket);
      expect(sums(waiter)).toEqual({ [phaseIndex(phase)]: delayMs });
    }
  });

  test("a pool's slot, even if the client then connects", async () => {
    const connector = {};
    now += 100;
    const waiter = create({ wasPooled: true });
    now += 40;
    const socket = await connect(connector);
    now += 20;
    socket.emit('lookup', null, '127.0.0.1', 4, 'orders.test');
    socket.emit('connect');
    connects.connected(connector, socket);
    send(waiter, socket);
    now += 10;
    expect(phases(end(waiter))).toEqual(['pool_wait', 'request', 'dns']);
    expect(sums(waiter)).toMatchObject({ 0: 40, 3: 10 });
  });
});

test('attempts that never say how they ended are forgotten in the end', async () => {
  const connector = {};
  const first = create();
  const socket = await connect(connector);
  for (let i = 0; i < 300; i++) await connect({});
  now += 10;
  socket.emit('connect');
  connects.connected(connector, socket);
  send(first, socket);
  expect(first.call.phase).toBe('request');
});
