import type { Attributes, Span } from '@opentelemetry/api';
import { describe, expect, test } from 'vitest';
import type { Attempt } from '../../src/core/operations.ts';
import { CallRecord, type Mark, RequestRecord } from '../../src/records.ts';
import { describeAttempt } from '../../src/telemetry/attempt-span.ts';
import { createTestHooks } from '../support/hooks.ts';

const REQUEST = new RequestRecord({
  arrivedAt: 0,
  startedAt: 0,
  idleMs: 0,
  receivedMs: undefined,
  effectiveMs: undefined,
  source: undefined,
  verdict: 'absent',
  caller: 'unknown',
  priority: 'unset',
  fromInstrumented: false,
});

function described(tried: Attempt | undefined, repeatPaid?: number, mark?: Mark): Attributes {
  const { series } = createTestHooks().recorder;
  const call = new CallRecord(
    { dependency: 'stock', workKind: 'http' },
    mark === undefined ? undefined : { request: REQUEST, deadlineAt: Infinity, detached: false, mark },
    series.dependency('stock'),
    undefined,
    0,
  );
  call.tried = tried;
  call.repeatPaid = repeatPaid;
  call.endedAt = 250;
  const attributes: Attributes = {};
  const span = {
    setAttributes: (given: Attributes) => Object.assign(attributes, given),
    setAttribute: (key: string, value: string | number | boolean) =>
      Object.assign(attributes, { [key]: value }),
  };
  // Only the methods that are used.
  describeAttempt(span as unknown as Span, call, 'v7');
  return attributes;
}

const ORIGINAL: Attempt = {
  kind: 'original',
  owner: 'none',
  source: undefined,
  ordinal: 1,
  triesBefore: 0,
  reason: undefined,
  waitMs: undefined,
  permitted: undefined,
  operation: undefined,
};

describe('S-15: why a repeat ran, on its span', () => {
  test('nothing on a call that is not looked at as an attempt', () => {
    expect(described(undefined)).toEqual({});
  });

  test('an original says so and no more', () => {
    expect(described(ORIGINAL)).toEqual({
      'time_budget.attempt.ordinal': 1,
      'time_budget.attempt.kind': 'original',
    });
  });

  test('S-14: ordinal, permitted total and owner, the original included', () => {
    const second = {
      ...ORIGINAL,
      kind: 'resend',
      owner: 'got',
      source: 'declared',
      ordinal: 2,
      permitted: 3,
    } as const;
    expect(described(second)).toMatchObject({
      'time_budget.attempt.ordinal': 2,
      'time_budget.attempt.permitted': 3,
      'time_budget.attempt.owner': 'got',
    });
  });

  test('S-16: a detected repeat; what paid for it is not known and left out', () => {
    const repeat: Attempt = {
      ...ORIGINAL,
      kind: 'reexecute',
      owner: 'unknown',
      source: 'detected',
      ordinal: 2,
      triesBefore: 3,
      reason: 'throttled',
      waitMs: 12.34567,
    };
    expect(described(repeat)).toEqual({
      'time_budget.attempt.ordinal': 2,
      'time_budget.attempt.kind': 'reexecute',
      'time_budget.attempt.source': 'detected',
      'time_budget.attempt.owner': 'unknown',
      'time_budget.attempt.reason': 'throttled',
      'time_budget.attempt.wait_ms': 12.346,
      'time_budget.policy_version': 'v7',
      'http.request.resend_count': 3,
    });
  });

  test('a declared repeat whose attempt before was not seen', () => {
    const repeat: Attempt = {
      ...ORIGINAL,
      kind: 'resend',
      owner: 'got',
      source: 'declared',
      ordinal: 2,
      triesBefore: 1,
    };
    expect(described(repeat)).toEqual({
      'time_budget.attempt.ordinal': 2,
      'time_budget.attempt.kind': 'resend',
      'time_budget.attempt.source': 'declared',
      'time_budget.attempt.owner': 'got',
      'time_budget.attempt.paid_by': 'request_limit',
      'time_budget.attempt.stop_condition': 'per_request_limit',
      'time_budget.policy_version': 'v7',
      'http.request.resend_count': 1,
    });
  });

  test('what the guard took from a retry budget paid for it; 0 was taken where there is none', () => {
    const repeat: Attempt = {
      ...ORIGINAL,
      kind: 'reexecute',
      owner: 'unknown',
      source: 'detected',
      ordinal: 2,
    };
    expect(described(repeat, 1)).toMatchObject({
      'time_budget.attempt.paid_by': 'retry_budget',
      'time_budget.attempt.stop_condition': 'retry_budget_empty',
    });
    expect(described(repeat, 0)).not.toHaveProperty(['time_budget.attempt.paid_by']);
  });
});

describe('S-22, S-24: what is said of the calls inside a breaker, a fallback or a race', () => {
  const repeat: Attempt = { ...ORIGINAL, kind: 'resend', owner: 'service', source: 'declared', ordinal: 2 };

  test('the state of its own breaker; a probe that nobody paid for is paid by being one', () => {
    const breaker = { dependency: 'stock', state: 'half_open', isProbe: true } as const;
    expect(described(undefined, 0, { breaker })).toEqual({
      'time_budget.breaker.state': 'half_open',
      'time_budget.breaker.probe': true,
    });
    expect(described(repeat, 0, { breaker })['time_budget.attempt.paid_by']).toBe('probe');
    expect(described(repeat, 1, { breaker })['time_budget.attempt.paid_by']).toBe('retry_budget');
    expect(described(undefined, 0, { breaker: { ...breaker, state: 'closed', isProbe: false } })).toEqual({
      'time_budget.breaker.state': 'closed',
    });
  });

  test('the breaker of another dependency says nothing of it', () => {
    const breaker = { dependency: 'price', state: 'half_open', isProbe: true } as const;
    expect(described(undefined, 0, { breaker })).toEqual({});
    expect(described(repeat, 0, { breaker })['time_budget.attempt.paid_by']).toBe('request_limit');
  });

  test.each([
    ['stock', true],
    ['price', false],
  ])('the fallback of %s', (dependency, shares) => {
    const fallback = { name: 'cache', dependency, sharesDependency: true };
    expect(described(undefined, 0, { fallback })).toEqual({
      'time_budget.fallback.name': 'cache',
      'time_budget.fallback.shares_dependency': shares,
    });
  });

  test('the loser of a race says when it was really stopped; nobody else does', () => {
    const race = { dependency: 'stock', ordinal: 1, lostAt: 200.5 };
    expect(described(undefined, 0, { race })).toEqual({ 'time_budget.hedge.stopped_after_ms': 49.5 });
    expect(described(undefined, 0, { race: { ...race, lostAt: undefined } })).toEqual({});
  });
});
