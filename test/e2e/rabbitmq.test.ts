/** H4, H5 and R-33 with amqplib and a real RabbitMQ: what a service says by hand until amqplib has an adapter. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { currentScope, enterScope, runInScope } from '../../src/current.ts';
import { current, remainingMs, withBudget } from '../../src/index.ts';
import { messageHeaders, recordCall, takeMessage } from '../../src/manual/index.ts';
import type { RequestRecord } from '../../src/records.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { until } from '../support/loopback.ts';
import { hasRabbitMq, RabbitMq } from '../support/rabbitmq.ts';

/** Two clocks are read one after the other, where a message is sent and where it is taken; a busy machine may stop between. */
const CLOCKS_MS = 50;
const EARLY_TIMER_MS = 2;

let rabbit: RabbitMq;
let connection: ChannelModel;
let channel: Channel;
let t: TestHooks;
let queues = 0;

/** One message that was handled, by the clock of the test. */
interface Handled {
  readonly record: RequestRecord | undefined;
  readonly startedAt: number;
  readonly endedAt: number;
}

beforeAll(async () => {
  if (!hasRabbitMq) return;
  rabbit = await RabbitMq.start();
}, 120_000);

afterAll(async () => {
  if (hasRabbitMq) await rabbit.stop();
}, 60_000);

beforeEach(async () => {
  if (!hasRabbitMq) return;
  t = createTestHooks();
  activateRecorder(t.recorder);
  // A request that opens the connection: amqplib calls every consumer in its context from then on.
  await withBudget(
    60_000,
    async () => {
      connection = await rabbit.connect();
      channel = await connection.createChannel();
    },
    { operation: 'opener' },
  );
  enterScope(undefined);
});

afterEach(async () => {
  if (!hasRabbitMq) return;
  await connection.close();
  deactivateRecorder(t.recorder);
});

async function newQueue(options = {}): Promise<string> {
  const name = `queue-${++queues}`;
  await channel.assertQueue(name, { exclusive: true, ...options });
  return name;
}

/** Sends one with a budget; gives the instant before it, from which on it is spent. */
function send(queue: string, budgetMs: number, options = {}): number {
  const at = performance.now();
  withBudget(
    budgetMs,
    () => channel.sendToQueue(queue, Buffer.from('mail'), { headers: messageHeaders(), ...options }),
    { operation: 'send' },
  );
  return at;
}

/** Handles a message for so long, as a consumer would. */
async function handle(message: ConsumeMessage, workMs: number, operation = 'mails'): Promise<Handled> {
  const { headers } = message.properties;
  const deliveries = message.fields.redelivered ? 2 : 1;
  return takeMessage(
    headers,
    async () => {
      const startedAt = performance.now();
      const record = currentScope()?.request;
      await sleep(workMs);
      return { record, startedAt, endedAt: performance.now() };
    },
    { operation, deliveries },
  );
}

/** What was late, of one piece of work that began after its deadline: what the work took, and nothing of the wait. */
function expectLateWork(handled: Handled, wallMs: number): void {
  const lateMs = t.value('postCancelSeconds', { kind: 'handler' }) * 1_000;
  expect(lateMs).toBeGreaterThanOrEqual(handled.endedAt - handled.startedAt);
  expect(lateMs).toBeLessThanOrEqual(wallMs);
  expect(t.value('postCancelItems', { kind: 'handler', result: 'started_after' })).toBe(1);
}

describe.skipIf(!hasRabbitMq)('H4: TTL 100, consumed at 250, handler 40 ms', () => {
  test('delivered to a consumer that is busy: its TTL is over when it is taken up, and it is still delivered', async () => {
    const queue = await newQueue();
    await channel.prefetch(2);
    const arrived: ConsumeMessage[] = [];
    await channel.consume(queue, (message) => void (message !== null && arrived.push(message)));
    const sentAt = send(queue, 100, { expiration: '100' });
    await until(() => arrived.length === 1);
    await sleep(sentAt + 250 - performance.now());
    await takeUp(arrived[0], sentAt);
  });

  test('dead-lettered, so by the word of the broker itself: expired, and delivered', async () => {
    const work = await newQueue();
    const waiting = await newQueue({ deadLetterExchange: '', deadLetterRoutingKey: work });
    const sentAt = send(waiting, 100, { expiration: '100' });
    await sleep(250);
    let message: ConsumeMessage | false = false;
    // Asked for until it is there: the broker's own timers are its own.
    while ((message = (await channel.get(work)) as ConsumeMessage | false) === false) await sleep(10);
    expect(message.properties.headers?.['x-death']?.[0]?.reason).toBe('expired');
    await takeUp(message, sentAt);
  });

  async function takeUp(message: ConsumeMessage | undefined, sentAt: number): Promise<void> {
    if (message === undefined) throw new Error('no message');
    const takenAt = performance.now();
    const handled = await handle(message, 40);
    const doneAt = performance.now();
    const { record } = handled;
    expect(record?.ledger.expiry).toEqual({ phase: 'queue', call: undefined });
    expect([record?.operation, record?.caller]).toEqual(['mails', 'test-service']);
    expect(record?.receivedMs).toBeLessThanOrEqual(100);
    expect(record?.ledger.queueMs).toBeGreaterThanOrEqual(250 - CLOCKS_MS);
    expect(record?.ledger.queueMs).toBeLessThanOrEqual(doneAt - sentAt + CLOCKS_MS);
    expect(t.value('expiries', { phase: 'queue' })).toBe(1);
    expect(t.value('outcomes', { operation: 'mails', outcome: 'late' })).toBe(1);
    expect(t.value('expiryCauses', { operation: 'mails', cause: 'spent_before_call' })).toBe(1);
    expectLateWork(handled, doneAt - takenAt);
  }
});

describe.skipIf(!hasRabbitMq)('H5: RPC, the caller waits for 500, the consumer takes 900', () => {
  test('caller: local timeout; consumer: 400 ms past the deadline', async () => {
    const queue = await newQueue();
    let handled: Promise<Handled> | undefined;
    await channel.consume(
      queue,
      (message) => {
        if (message !== null) handled = handle(message, 900, 'price');
      },
      { noAck: true },
    );
    const begun = vi.spyOn(t.recorder.calls, 'begin');
    const askedAt = performance.now();
    const answer = withBudget(
      500,
      () =>
        recordCall('prices', async (call) => {
          channel.sendToQueue(queue, Buffer.from('?'), { headers: messageHeaders(), replyTo: 'nobody' });
          call.sent();
          // As an RPC client whose answer has not come.
          for (let leftMs = 500; leftMs > 0; leftMs = remainingMs() ?? 0) await sleep(leftMs);
          throw Object.assign(new Error('RPC timeout'), { name: 'TimeoutError' });
        }),
      { operation: 'basket' },
    );
    await expect(answer).rejects.toThrow('RPC timeout');
    expect(begun.mock.results.map(({ value }) => value.cancelSource)).toEqual(['local_timeout']);
    expect(t.value('cutOff', { dependency: 'prices' })).toBe(1);
    expect(t.value('expiries', { dependency: 'prices', phase: 'request' })).toBe(1);
    expect(t.value('outcomes', { operation: 'basket', outcome: 'expired' })).toBe(1);

    // The caller itself was a moment late.
    const callerS = t.value('postCancelSeconds', { kind: 'handler' });
    const { startedAt, endedAt, record } = (await handled) ?? fail();
    const lateMs = (t.value('postCancelSeconds', { kind: 'handler' }) - callerS) * 1_000;
    expect(t.value('outcomes', { operation: 'price', outcome: 'late' })).toBe(1);
    expect(record?.ledger.expiry?.phase).toBe('local');
    expect(endedAt - startedAt).toBeGreaterThanOrEqual(900 - EARLY_TIMER_MS);
    expect(lateMs).toBeGreaterThanOrEqual(400 - CLOCKS_MS);
    expect(lateMs).toBeLessThanOrEqual(performance.now() - askedAt - 500 + CLOCKS_MS);
    expect(t.value('postCancelItems', { kind: 'handler', result: 'completed' })).toBe(2);
  });
});

describe.skipIf(!hasRabbitMq)('a consumer of amqplib', () => {
  test('is called in the context of the connection, and takeMessage sets its own', async () => {
    const queue = await newQueue();
    const seen: (string | undefined)[] = [];
    await runInScope(undefined, () =>
      channel.consume(
        queue,
        (message) => {
          seen.push(current()?.operation);
          takeMessage(message?.properties.headers, () => seen.push(current()?.operation), {
            operation: 'mails',
          });
          seen.push(current()?.operation);
        },
        { noAck: true },
      ),
    );
    send(queue, 5_000);
    await until(() => seen.length === 3);
    expect(seen).toEqual(['opener', 'mails', 'opener']);
  });

  test('R-33: what comes back after a nack is an attempt of the broker', async () => {
    const queue = await newQueue();
    let count = 0;
    const second = new Promise<Handled>((resolve) => {
      const onMessage = async (message: ConsumeMessage) => {
        const handled = await handle(message, 0);
        if (++count === 1) return channel.nack(message);
        channel.ack(message);
        resolve(handled);
      };
      void channel.consume(queue, (message) => void (message !== null && onMessage(message)));
    });
    send(queue, 5_000);
    const { record } = await second;
    expect([record?.repeated, record?.attempt, record?.repeatOwner]).toEqual([true, 2, 'broker']);
    expect(t.value('arrivalRepeats', { owner: 'broker' })).toBe(1);
    expect([t.value('offered', { operation: 'mails' }), t.value('retried', { operation: 'mails' })]).toEqual([
      2, 1,
    ]);
  });
});

function fail(): never {
  throw new Error('the consumer was not called');
}
