import { describe, expect, test } from 'vitest';
import {
  isLookedFor,
  limitOf,
  SendTimeValue,
  smallerLimit,
} from '../../instrumentation/shared/budget-header.ts';
import { endingOf } from '../../src/call-ending.ts';
import { HEADER_TIME_BUDGET } from '../../src/core/wire-time-budget.ts';
import { BudgetError } from '../../src/records.ts';

function coded(code: string, extra: object = {}): Error {
  return Object.assign(new Error(code), { code, ...extra });
}

describe('endingOf', () => {
  const timeouts: Record<string, unknown> = {
    'AbortSignal.timeout, as fetch gives it':
      AbortSignal.timeout(0).reason ?? new DOMException('', 'TimeoutError'),
    'AbortSignal.timeout, as node:http gives it': new DOMException('aborted', {
      name: 'AbortError',
      cause: new DOMException('', 'TimeoutError'),
    } as never),
    'the system, after a connect that nobody answered': coded('ETIMEDOUT', {
      errno: -110,
      syscall: 'connect',
    }),
    'headersTimeout of undici': coded('UND_ERR_HEADERS_TIMEOUT'),
    'bodyTimeout of undici': coded('UND_ERR_BODY_TIMEOUT'),
    'the connect timeout of undici': coded('UND_ERR_CONNECT_TIMEOUT'),
    'fetch failed, because of it': new TypeError('fetch failed', { cause: coded('UND_ERR_CONNECT_TIMEOUT') }),
    'D17: axios': coded('ECONNABORTED'),
    got: Object.assign(coded('ETIMEDOUT'), { name: 'TimeoutError' }),
  };
  test.each(Object.entries(timeouts))('timed_out: %s', (_name, error) => {
    expect(endingOf(error)).toBe('timed_out');
  });

  const aborts: Record<string, unknown> = {
    'abort()': new DOMException('This operation was aborted', 'AbortError'),
    'abort() with a reason, as node:http gives it': Object.assign(
      new Error('x', { cause: new Error('mine') }),
      {
        name: 'AbortError',
        code: 'ABORT_ERR',
      },
    ),
    'undici.request': coded('UND_ERR_ABORTED'),
    'D17: axios': Object.assign(coded('ERR_CANCELED'), { name: 'CanceledError' }),
    "a budget's signal": new BudgetError('deadline_exceeded'),
  };
  test.each(Object.entries(aborts))('aborted: %s', (_name, error) => {
    expect(endingOf(error)).toBe('aborted');
  });

  const failures: Record<string, unknown> = {
    'D21: reset': coded('ECONNRESET', { errno: -104 }),
    'the system gave the connection up, which axios has the same code for': coded('ECONNABORTED', {
      errno: -103,
    }),
    refused: new TypeError('fetch failed', { cause: coded('ECONNREFUSED', { errno: -111 }) }),
    'the other side closed': coded('UND_ERR_SOCKET'),
    'no HTTP': coded('HPE_INVALID_CONSTANT'),
  };
  test.each(Object.entries(failures))('failed: %s', (_name, error) => {
    expect(endingOf(error)).toBe('failed');
  });

  test('a reason of the application without a code, and what is no error, do not tell', () => {
    const circle: Error & { cause?: unknown } = new Error('around');
    circle.cause = circle;
    for (const error of [new Error('mine'), 'enough', undefined, null, 7, circle]) {
      expect(endingOf(error)).toBeUndefined();
    }
  });
});

describe('budget headers that the application set', () => {
  test('a limit is read in any case and from any form of value', () => {
    expect(limitOf('x-request-timeout-ms', '300')).toBe(300);
    expect(limitOf('X-Request-Timeout-Ms', 300)).toBe(300);
    expect(limitOf('grpc-timeout', ['2S', '1500m'])).toBe(1500);
    expect(limitOf('x-envoy-expected-rq-timeout-ms', '0')).toBeUndefined();
    expect(limitOf('x-request-timeout-ms', 'soon')).toBeUndefined();
    // Ours is replaced, whatever it says.
    expect(limitOf('time-budget', 'remaining=300')).toBeUndefined();
    expect(limitOf('accept', '300')).toBeUndefined();
  });

  test('what is looked for is known by its name in any case; a name of its length and end is another', () => {
    const names = [
      'x-request-timeout-ms',
      'Grpc-Timeout',
      'TIME-BUDGET',
      'Idempotency-Key',
      'content-length',
    ];
    expect(names.filter((name) => !isLookedFor(name))).toEqual([]);
    const others = [
      '',
      't',
      'traceparent',
      'accept-language',
      'sec-fetch-mode',
      'amz-sdk-reques',
      'time-budgets',
    ];
    expect(others.filter((name) => isLookedFor(name))).toEqual([]);
  });

  test('an absent limit is no limit of 0', () => {
    expect(smallerLimit(undefined, 5)).toBe(5);
    expect(smallerLimit(0, undefined)).toBe(0);
    expect(smallerLimit(7, 5)).toBe(5);
    expect(smallerLimit(undefined, undefined)).toBeUndefined();
  });
});

test('a value of the moment of the send is a list of one, read each time it is taken apart', () => {
  let left = 10;
  const value = new SendTimeValue(
    (subject, name) => `${subject} ${name} ${left--}`,
    'call',
    HEADER_TIME_BUDGET,
  );
  expect(Array.isArray(value)).toBe(true);
  expect(value.length).toBe(1);
  expect(value[0]).toBe('call time-budget 10');
  expect(`${value}`).toBe('call time-budget 9');
  expect(value.map((text) => text)).toEqual(['call time-budget 8']);
});
