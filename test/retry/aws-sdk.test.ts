import http from 'node:http';
import { ListQueuesCommand, SQSClient, type SQSClientConfig } from '@aws-sdk/client-sqs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { httpClient } from '../../instrumentation/http-client/http-client.ts';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { enterScope } from '../../src/current.ts';
import { AWS_QUOTA, mayRetry, watchAwsRetries } from '../../src/retry/index.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { close, listen, until } from '../support/loopback.ts';

let server: http.Server;
let url: string;
let status: number;
let arrivals: number;
let t: TestHooks;
let clients: SQSClient[];

beforeEach(async () => {
  enterScope(undefined);
  status = 500;
  arrivals = 0;
  clients = [];
  server = http.createServer((request, response) => {
    request.resume();
    arrivals++;
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.0' }).end('{}');
  });
  url = `http://127.0.0.1:${await listen(server)}`;
  t = createTestHooks({ adapters: [httpClient] });
  activateRecorder(t.recorder);
});

afterEach(async () => {
  for (const client of clients) client.destroy();
  t.stop();
  deactivateRecorder(t.recorder);
  await close(server);
});

function createClient(config: Partial<SQSClientConfig> = {}): SQSClient {
  const client = new SQSClient({
    region: 'eu-central-1',
    endpoint: url,
    credentials: { accessKeyId: 'key', secretAccessKey: 'secret' },
    ...config,
  });
  clients.push(client);
  return client;
}

const ask = (client: SQSClient) =>
  client.send(new ListQueuesCommand({})).then(
    () => 200,
    (error) => error.$metadata?.httpStatusCode ?? error,
  );

/** What the SDK itself has left. */
async function capacityOf(client: SQSClient): Promise<number> {
  const strategy: unknown = await client.config.retryStrategy();
  if (typeof strategy !== 'object' || strategy === null || !('getCapacity' in strategy)) return Number.NaN;
  return typeof strategy.getCapacity === 'function' ? strategy.getCapacity() : Number.NaN;
}

function balance(name = 'sqs'): number {
  t.recorder.families.retryBalance.refresh?.();
  return t.value('retryBalance', { dependency: name });
}

const withdrawals = (result: string) => t.value('retryWithdrawals', { dependency: 'sqs', result });
const refusals = (reason: string) => t.value('refused', { dependency: 'sqs', attempt: 'repeat', reason });
const source = (name = 'sqs') =>
  t.recorder.families.retryBalanceInfo.cells
    .filter(({ attributes }) => attributes.dependency === name)
    .map(({ attributes }) => attributes.source);

/** The capacity is known a few microtasks after the client was made. */
const watched = (name = 'sqs') => until(() => source(name).length > 0, 'the budget');

describe('I12: the quota of a real client, whose server always fails', () => {
  test('500 tokens at 14: 35 repeats, then suppressed with 10 left', async () => {
    const sqs = watchAwsRetries('sqs', createClient());
    await watched();
    expect(balance()).toBe(500);
    const answers = await Promise.all(Array.from({ length: 30 }, () => ask(sqs)));
    expect(answers).toEqual(Array(30).fill(500));
    expect(arrivals).toBe(30 + 35);
    expect([withdrawals('granted'), balance(), await capacityOf(sqs)]).toEqual([35, 10, 10]);
    expect(source()).toEqual(['read']);
    // Each of the thirty ended by one limit or the other.
    expect(refusals('retry_budget_empty')).toBe(withdrawals('refused'));
    expect(refusals('retry_budget_empty') + refusals('per_request_limit')).toBe(30);
    // From then on no repeat at all, and that is seen, while the callers get their 500 as ever.
    const before = arrivals;
    expect(await ask(sqs)).toBe(500);
    expect(arrivals).toBe(before + 1);
    expect(t.value('attempts', { owner: 'aws_sdk' })).toBe(35);
    // by its header.
    expect(t.value('permittedAttempts', { owner: 'aws_sdk' })).toBe(3);
    t.recorder.families.retryExhausted.refresh?.();
    expect(t.value('retryExhausted', { dependency: 'sqs' })).toBeGreaterThan(0);
  });

  test('what is replayed is what the SDK has, step by step: failures and successes', async () => {
    const real = await createClient().config.retryStrategy();
    if (!('refreshRetryTokenForRetry' in real)) throw new Error('this SDK has no retry tokens');
    // The SDK's own strategy, without the way to read it.
    const retryStrategy: typeof real = {
      acquireInitialRetryToken: (scope) => real.acquireInitialRetryToken(scope),
      refreshRetryTokenForRetry: (token, info) => real.refreshRetryTokenForRetry(token, info),
      recordSuccess: (token) => real.recordSuccess(token),
    };
    const capacity = () =>
      Number('getCapacity' in real && typeof real.getCapacity === 'function' && real.getCapacity());
    const sqs = watchAwsRetries('sqs', createClient({ retryStrategy, maxAttempts: 3 }));
    await watched();
    expect(source()).toEqual(['derived']);
    for (const next of [500, 503, 200, 502, 200, 400, 504]) {
      status = next;
      await ask(sqs);
      expect(balance()).toBe(capacity());
    }
    expect(capacity()).toBe(500 - 4 * 2 * 14 + 2);
    expect(t.value('retryDeposits', { dependency: 'sqs', source: 'success' })).toBe(2);
  });

  test('a repeat that succeeds brings back what it cost', async () => {
    const sqs = watchAwsRetries('sqs', createClient());
    await watched();
    const answer = ask(sqs);
    await until(() => arrivals === 1, 'the first attempt');
    status = 200;
    expect(await answer).toBe(200);
    expect([arrivals, balance(), await capacityOf(sqs)]).toEqual([2, 500, 500]);
    expect(t.value('retryDeposits', { source: 'refund' })).toBe(1);
  });

  test('throttling costs 5', async () => {
    status = 429;
    const sqs = watchAwsRetries('sqs', createClient({ maxAttempts: 2 }));
    await watched();
    expect(await ask(sqs)).toBe(429);
    expect([balance(), await capacityOf(sqs)]).toEqual([495, 495]);
  });

  test('an error that cannot pass asks for no token', async () => {
    status = 400;
    const sqs = watchAwsRetries('sqs', createClient());
    await watched();
    expect(await ask(sqs)).toBe(400);
    expect([arrivals, withdrawals('granted'), refusals('per_request_limit'), balance()]).toEqual([
      1, 0, 0, 500,
    ]);
  });

  test('the adaptive mode has the same quota inside', async () => {
    const sqs = watchAwsRetries('sqs', createClient({ retryMode: 'adaptive', maxAttempts: 2 }));
    await watched();
    expect(await ask(sqs)).toBe(500);
    expect([balance(), source()]).toEqual([486, ['read']]);
  });
});

/** As clients kept it before: 10 for a transient failure, and no way to read it. */
class OldStrategy {
  #capacity: number;

  constructor(capacity = 500) {
    this.#capacity = capacity;
  }

  async acquireInitialRetryToken() {
    return { getRetryCount: () => 0, getRetryDelay: () => 0 };
  }

  async refreshRetryTokenForRetry(token: { getRetryCount(): number }) {
    const count = token.getRetryCount() + 1;
    if (count >= 3 || this.#capacity < 10) throw new Error('No retry token available');
    this.#capacity -= 10;
    return { getRetryCount: () => count, getRetryDelay: () => 0, getRetryCost: () => 10 };
  }

  recordSuccess(): void {}
}

describe('I12: a quota that cannot be read', () => {
  test('500 tokens at 10, replayed: 50 repeats, then suppressed with none left; told as derived', async () => {
    const retryStrategy = new OldStrategy();
    const sqs = watchAwsRetries('sqs', createClient({ retryStrategy }), { quota: AWS_QUOTA });
    await watched();
    await Promise.all(Array.from({ length: 40 }, () => ask(sqs)));
    expect(arrivals).toBe(40 + 50);
    expect([withdrawals('granted'), balance(), source()]).toEqual([50, 0, ['derived']]);
  });
});

describe('a replay that is not what the SDK has', () => {
  test('a client that had used its quota before: what it refuses is refused, and no token is charged', async () => {
    const sqs = watchAwsRetries('sqs', createClient({ retryStrategy: new OldStrategy(5) }), {
      quota: AWS_QUOTA,
    });
    await watched();
    expect(await ask(sqs)).toBe(500);
    expect([arrivals, refusals('retry_budget_empty'), balance()]).toEqual([1, 1, 500]);
  });
});

describe('the budget of a client', () => {
  test('is shown and asked by nobody else, and calls to its host do not feed it', async () => {
    const sqs = watchAwsRetries('sqs', createClient({ maxAttempts: 1 }));
    await watched();
    status = 200;
    await ask(sqs);
    expect(t.value('retryDeposits', { dependency: 'sqs' })).toBe(1);
    const error = Object.assign(new Error('busy'), { status: 503 });
    const answer = mayRetry({ dependency: 'sqs', error, attempt: 1, maxAttempts: 2 });
    expect([answer.paidBy, withdrawals('granted')]).toEqual(['request_limit', 0]);
  });

  test('a second client of the same name is left alone', async () => {
    const first = watchAwsRetries('sqs', createClient({ maxAttempts: 2 }));
    const second = watchAwsRetries('sqs', createClient({ maxAttempts: 2 }));
    await watched();
    await Promise.all([ask(first), ask(second)]);
    expect([withdrawals('granted'), balance()]).toEqual([1, 486]);
  });

  test('what is no client of the SDK is given back as it is', () => {
    const odd = { config: { retryStrategy: 'none', maxAttempts: 3 } };
    // A caller in plain JavaScript.
    expect(watchAwsRetries('sqs', odd as unknown as SQSClient)).toBe(odd);
    expect(watchAwsRetries('sqs', undefined as unknown as SQSClient)).toBeUndefined();
  });

  test.each([
    [{ capacity: 0 }, 'capacity must be in 10..1000000, got 0'],
    [{ throttledCost: Number.NaN }, 'throttledCost must be in 0.000001..1000000, got NaN'],
  ])('a quota that cannot be is refused with its bound: %o', (wrong, message) => {
    const quota = { ...AWS_QUOTA, ...wrong };
    expect(() => watchAwsRetries('sqs', createClient({}), { quota })).toThrow(
      new RangeError(`watchAwsRetries: quota: ${message}`),
    );
  });

  /** A strategy of plain JavaScript, followed as the budget of a client. */
  async function followed(refresh: () => unknown) {
    const keeper = {
      refreshRetryTokenForRetry: (..._given: unknown[]) => refresh(),
      recordSuccess: (..._given: unknown[]) => 'done',
    };
    watchAwsRetries('sqs', {
      config: { retryStrategy: async () => keeper, maxAttempts: async () => 3 },
    });
    await watched();
    return keeper;
  }
  const token = { getRetryCount: () => 0 };
  const transient = { errorType: 'TRANSIENT' };

  test('a foreign strategy whose refresh gives no promise, and is given no info', async () => {
    const keeper = await followed(() => 'token');
    expect(keeper.refreshRetryTokenForRetry(token)).toBe('token');
    expect(balance()).toBe(500);
    expect(keeper.refreshRetryTokenForRetry(token, transient)).toBe('token');
    expect([balance(), t.value('internalErrors')]).toEqual([486, 0]);
  });

  test('a foreign strategy that has no tokens: the fault is counted, and the SDK does not see it', async () => {
    const keeper = await followed(() => 'token');
    expect(keeper.refreshRetryTokenForRetry(undefined, transient)).toBe('token');
    expect(keeper.recordSuccess(undefined)).toBe('done');
    expect([balance(), t.value('internalErrors')]).toEqual([500, 2]);
  });
});
