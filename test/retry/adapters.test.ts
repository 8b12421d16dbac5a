import { DiagLogLevel, diag } from '@opentelemetry/api';
import { ConstantBackoff, handleType, handleWhenResult, retry } from 'cockatiel';
import pRetry, { AbortError } from 'p-retry';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { enterScope } from '../../src/current.ts';
import { hasIdempotencyKey, hostOf, isSafeRequest } from '../../src/retry/adapter.ts';
import { readFailure } from '../../src/retry/failure.ts';
import {
  guardAxiosRetry,
  guardBackoff,
  guardGotDelay,
  guardPRetry,
  guardUndici,
} from '../../src/retry/index.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';

const policy = { dependency: 'stock' };
const FAILED = new Error('connect ECONNREFUSED', { cause: { code: 'ECONNREFUSED' } });

let t: TestHooks;
let warnings: string[];

beforeEach(() => {
  enterScope(undefined);
  warnings = [];
  const note = (message: string) => warnings.push(message);
  diag.setLogger(
    { warn: note, error: note, info: () => {}, debug: () => {}, verbose: () => {} },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
  t = createTestHooks({ config: { mode: 'enforce' } });
  activateRecorder(t.recorder);
});

afterEach(() => {
  diag.disable();
  deactivateRecorder(t.recorder);
});

describe('a version that is not known', () => {
  // Each library complains once in a process, so there is one test.
  test('is said once for each library, and its repeats go on as they would', async () => {
    const callback = vi.fn();
    const unknown = (): Promise<unknown>[] => {
      // What a future version might hand over.
      const strange = { try: 1 } as never;
      const backoff = guardBackoff(
        { ...policy, maxAttempts: 3 },
        { next: () => new ConstantBackoff(7).next() },
      );
      const axios = guardAxiosRetry(policy, { retryCondition: () => true });
      guardUndici(policy).retry(FAILED, strange, callback);
      return [
        guardPRetry(policy).shouldRetry(strange),
        Promise.resolve(backoff.next(strange).duration),
        Promise.resolve(guardGotDelay(policy, () => 9)(strange)),
        axios.retryCondition(strange),
      ];
    };
    expect(await Promise.all(unknown())).toEqual([true, 7, 9, true]);
    expect(await Promise.all(unknown())).toEqual([true, 7, 9, true]);
    expect(callback.mock.calls).toEqual([[FAILED], [FAILED]]);
    expect(warnings.map((text) => /this version of (\S+) is not known/.exec(text)?.[1]).sort()).toEqual([
      'axios-retry',
      'cockatiel',
      'got',
      'p-retry',
      'undici',
    ]);
  });
});

describe('p-retry', () => {
  test('the service’s own shouldRetry is asked first, and other options stay', async () => {
    const shouldRetry = vi.fn(() => false);
    const options = guardPRetry(policy, { retries: 4, minTimeout: 1, shouldRetry });
    expect(options).toMatchObject({ retries: 4, minTimeout: 1 });
    await expect(pRetry(() => Promise.reject(FAILED), options)).rejects.toBe(FAILED);
    expect(shouldRetry).toHaveBeenCalledTimes(1);
    expect(t.value('refused', { attempt: 'repeat' })).toBe(0);
  });

  test('R-12: what cannot pass is not repeated', async () => {
    const work = vi.fn(() => Promise.reject(Object.assign(new Error('invalid'), { status: 422 })));
    await expect(pRetry(work, guardPRetry(policy, { retries: 4, minTimeout: 1 }))).rejects.toThrow('invalid');
    expect(work).toHaveBeenCalledTimes(1);
    expect(t.value('refused', { attempt: 'repeat', reason: 'not_retryable' })).toBe(1);
  });

  test('AbortError stays p-retry’s own', async () => {
    const error = new AbortError(FAILED);
    await expect(pRetry(() => Promise.reject(error), guardPRetry(policy))).rejects.toBe(FAILED);
  });
});

describe('cockatiel', () => {
  test('the attempts of the guard are counted with the original', async () => {
    const work = vi.fn(() => Promise.reject(FAILED));
    const options = {
      maxAttempts: 9,
      backoff: guardBackoff({ ...policy, maxAttempts: 3 }, new ConstantBackoff(1)),
    };
    await expect(retry(handleType(Error), options).execute(work)).rejects.toBe(FAILED);
    expect(work).toHaveBeenCalledTimes(3);
    expect(t.value('refused', { attempt: 'repeat', reason: 'per_request_limit' })).toBe(1);
  });

  test('a result that counts as a failure is recorded, and never refused', async () => {
    const work = vi.fn(() => ({ status: 400 }));
    const options = {
      maxAttempts: 2,
      backoff: guardBackoff({ ...policy, maxAttempts: 3 }, new ConstantBackoff(1)),
    };
    const result = await retry(
      handleWhenResult(() => true),
      options,
    ).execute(work);
    expect(result).toEqual({ status: 400 });
    expect(work).toHaveBeenCalledTimes(3);
    expect(t.value('refused', { attempt: 'repeat', reason: 'not_retryable' })).toBe(2);
  });
});

describe('axios-retry', () => {
  test('a delay with jitter is drawn once, so that what is waited is what was asked about', async () => {
    const retryDelay = vi.fn((count: number, _error: object) => 39 + count + retryDelay.mock.calls.length);
    const options = guardAxiosRetry(policy, { retryCondition: () => true, retryDelay });
    const error = {
      config: { method: 'get', url: 'http://stock/', 'axios-retry': { retryCount: 0, retries: 2 } },
    };
    expect(await options.retryCondition(error)).toBe(true);
    expect(options.retryDelay(1, error)).toBe(41);
    expect(retryDelay).toHaveBeenCalledTimes(1);
    // One that the guard was not asked about.
    expect(options.retryDelay(1, { config: error.config })).toBe(42);
  });
});

describe('got and undici', () => {
  test('a delay of 0 stays: got does not repeat', async () => {
    const retryOf = (computedValue: number) => ({
      attemptCount: 1,
      retryOptions: { limit: 2 },
      error: Object.assign(new Error('x'), { options: { method: 'POST', url: new URL('http://stock:81/') } }),
      computedValue,
    });
    expect(await guardGotDelay()(retryOf(0))).toBe(0);
    expect(t.value('refused', { attempt: 'repeat' })).toBe(0);
    // A POST without a key, of which nobody knows whether it was done.
    expect(await guardGotDelay()(retryOf(50))).toBe(0);
    expect(t.value('refused', { dependency: 'stock', attempt: 'repeat', reason: 'not_retryable' })).toBe(1);
    expect(await guardGotDelay({ isSafe: true })(retryOf(50))).toBe(50);
  });

  test.each([
    ['a status that is not listed', { statusCode: 418 }, { counter: 1 }],
    ['an error code that is not listed', { code: 'ECONNABORTED' }, { counter: 1 }],
    ['more than the repeats allowed', { statusCode: 503 }, { counter: 6 }],
  ])('undici repeats by its own rules: not %s', (_, fields, state) => {
    const error = Object.assign(new Error('x'), fields);
    const callback = vi.fn();
    const opts = { method: 'GET', origin: 'http://stock', retryOptions: {} };
    expect(guardUndici(policy).retry(error, { state, opts }, callback)).toBeUndefined();
    expect(callback.mock.calls).toEqual([[error]]);
    expect(t.value('refused', { attempt: 'repeat' })).toBe(0);
  });
});

describe('what a failure tells', () => {
  test.each([
    [{ status: 400 }, 'validation', undefined],
    [{ response: { status: 401 } }, 'auth', undefined],
    [{ statusCode: 412 }, 'precondition', undefined],
    [{ statusCode: 503, headers: { 'retry-after': '2' } }, 'transient', 2_000],
    [{ response: { statusCode: 429, headers: { 'retry-after': 'soon' } } }, 'throttled', undefined],
    [{ response: { status: 500 } }, 'unknown_outcome', undefined],
    [{ code: 'ECONNREFUSED' }, 'transient', undefined],
    [{ cause: { code: 'UND_ERR_CONNECT_TIMEOUT' } }, 'transient', undefined],
    [{ code: 'ECONNRESET' }, 'unknown_outcome', undefined],
    [new DOMException('late', 'TimeoutError'), 'unknown_outcome', undefined],
    ['text', 'unknown_outcome', undefined],
    [null, 'unknown_outcome', undefined],
  ])('%o', (error, errorClass, retryAfterMs) => {
    const failure = readFailure(error);
    expect([failure.errorClass, failure.retryAfterMs]).toEqual([errorClass, retryAfterMs]);
  });

  test.each([
    [{ response: { status: 503 } }, 'reexecute'],
    [{ severity: 'ERROR', code: '40001' }, 'reexecute'],
    [{ cause: { code: 'ECONNREFUSED' } }, 'reconnect'],
    [{ code: 'EOPENBREAKER' }, 'reconnect'],
    [{ isBrokenCircuitError: true }, 'reconnect'],
    [{ code: 'ECONNRESET' }, 'resend'],
    [null, 'resend'],
  ])('what a repeat is after %o: %s', (error, next) => {
    expect(readFailure(error).next).toBe(next);
  });

  test('a date is measured from the answer’s own, not from our clock', () => {
    const headers = { date: 'Mon, 30 Nov 2026 23:59:50 GMT', 'retry-after': 'Tue, 01 Dec 2026 00:00:20 GMT' };
    expect(readFailure({ status: 503, headers }).retryAfterMs).toBe(30_000);
    expect(
      readFailure({ status: 503, headers: { ...headers, date: undefined } }).retryAfterMs,
    ).toBeUndefined();
    const past = { ...headers, 'retry-after': 'Mon, 30 Nov 2026 23:59:40 GMT' };
    expect(readFailure({ status: 503, headers: past }).retryAfterMs).toBe(0);
  });

  test('hosts, methods and keys', () => {
    expect(['http://stock:81/a?b', 'https://stock/', '/a', undefined].map((url) => hostOf(url))).toEqual([
      'stock:81',
      'stock',
      undefined,
      undefined,
    ]);
    expect(hostOf('/a', 'http://stock')).toBe('stock');
    expect([isSafeRequest('put', false), isSafeRequest('POST', false), isSafeRequest('POST', true)]).toEqual([
      true,
      false,
      true,
    ]);
    expect(hasIdempotencyKey({ 'Idempotency-Key': '1' })).toBe(true);
    expect(hasIdempotencyKey(['a', 'idempotency-key'])).toBe(false);
    expect(hasIdempotencyKey(['idempotency-key', 'a'])).toBe(true);
  });
});
