import { describe, expect, test } from 'vitest';
import { type Headers, NOTHING_RECEIVED, readBudget } from '../../src/core/received.ts';

const TRUSTED = { trusted: true };
const UNTRUSTED = { trusted: false };
const WALL_NOW_MS = 1_764_410_400_000;

describe('without a budget', () => {
  test('no header gives the one shared object', () => {
    expect(readBudget({}, TRUSTED)).toBe(NOTHING_RECEIVED);
    expect(readBudget({ host: 'a', 'time-budget': undefined }, TRUSTED)).toBe(NOTHING_RECEIVED);
  });

  test("rule 9: Envoy's 0 is no limit and leaves no finding", () => {
    expect(readBudget({ 'x-envoy-expected-rq-timeout-ms': '0' }, TRUSTED)).toEqual(NOTHING_RECEIVED);
  });

  test('our header without remaining still tells attempt and caller', () => {
    expect(readBudget({ 'time-budget': 'attempt=2, repeated, caller=web' }, TRUSTED)).toEqual({
      ...NOTHING_RECEIVED,
      fromInstrumented: true,
      attempt: 2,
      repeated: true,
      caller: 'web',
    });
  });
});

describe('one format', () => {
  test.each<[string, Headers, string, number]>([
    ['ours', { 'time-budget': 'remaining=500' }, 'time_budget', 500],
    ['x-request-timeout-ms', { 'x-request-timeout-ms': '500' }, 'x_request_timeout_ms', 500],
    ['grpc-timeout', { 'grpc-timeout': '500m' }, 'grpc_timeout', 500],
    ['connect-timeout-ms', { 'connect-timeout-ms': '500' }, 'connect_timeout_ms', 500],
    ['Envoy, expected', { 'x-envoy-expected-rq-timeout-ms': '500' }, 'envoy_expected', 500],
    ['Envoy, upstream', { 'x-envoy-upstream-rq-timeout-ms': '500' }, 'envoy_upstream', 500],
    ['Pulse', { 'pulse-timeout-ms': '500' }, 'pulse_timeout', 500],
    ['Misk', { 'x-request-deadline': 'PT0.5S' }, 'misk', 500],
    ['userver', { 'x-yataxi-client-timeoutms': '500' }, 'userver', 500],
    ['YARPC', { 'context-ttl-ms': '500' }, 'yarpc', 500],
    ['A14: less than 1 ms', { 'grpc-timeout': '999u' }, 'grpc_timeout', 0.999],
    ['an array of one', { 'x-request-timeout-ms': ['500'] }, 'x_request_timeout_ms', 500],
  ])('%s', (_name, headers, source, remainingMs) => {
    const { fromInstrumented, ...received } = readBudget(headers, TRUSTED);
    expect({ ...received, fromInstrumented: false }).toEqual({ ...NOTHING_RECEIVED, source, remainingMs });
    expect(fromInstrumented).toBe(source === 'time_budget');
  });

  test('A2, A12: faults are told per format', () => {
    expect(readBudget({ 'grpc-timeout': '100000000S' }, TRUSTED)).toEqual({
      ...NOTHING_RECEIVED,
      findings: [{ source: 'grpc_timeout', fault: 'malformed' }],
    });
    expect(readBudget({ 'x-request-timeout-ms': '500, 200' }, TRUSTED)).toEqual({
      ...NOTHING_RECEIVED,
      remainingMs: 200,
      source: 'x_request_timeout_ms',
      findings: [{ source: 'x_request_timeout_ms', fault: 'repeated' }],
    });
  });

  test('A12: an array is a repeated header', () => {
    const received = readBudget({ 'x-request-timeout-ms': ['500', '200'] }, TRUSTED);
    expect(received.remainingMs).toBe(200);
    expect(received.findings).toEqual([{ source: 'x_request_timeout_ms', fault: 'repeated' }]);
  });
});

describe('several formats', () => {
  test('A9: a bad Envoy header is counted once and the next format counts', () => {
    const headers = { 'x-envoy-expected-rq-timeout-ms': '-1', 'x-request-timeout-ms': '20000' };
    expect(readBudget(headers, TRUSTED)).toEqual({
      ...NOTHING_RECEIVED,
      remainingMs: 20_000,
      source: 'x_request_timeout_ms',
      findings: [{ source: 'envoy_expected', fault: 'malformed' }],
    });
  });

  test('the smallest wins, and each that names more is a conflict', () => {
    const headers = { 'x-request-timeout-ms': '800', 'grpc-timeout': '300m', 'context-ttl-ms': '5000' };
    expect(readBudget(headers, TRUSTED)).toEqual({
      ...NOTHING_RECEIVED,
      remainingMs: 300,
      source: 'grpc_timeout',
      conflict: true,
      findings: [
        { source: 'x_request_timeout_ms', fault: 'conflict' },
        { source: 'yarpc', fault: 'conflict' },
      ],
    });
  });

  test('expired is the smallest of all', () => {
    const received = readBudget({ 'x-request-timeout-ms': '800', 'grpc-timeout': '0m' }, TRUSTED);
    expect([received.remainingMs, received.source]).toEqual([0, 'grpc_timeout']);
  });

  test('of equal values the first in BUDGET_SOURCES is the source', () => {
    const all = {
      'context-ttl-ms': '500',
      'x-yataxi-client-timeoutms': '500',
      'pulse-timeout-ms': '500',
      'connect-timeout-ms': '500',
      'grpc-timeout': '500m',
      'x-request-timeout-ms': '500',
    };
    expect(readBudget(all, TRUSTED).source).toBe('x_request_timeout_ms');
    expect(readBudget({ ...all, 'time-budget': 'remaining=500' }, TRUSTED).source).toBe('time_budget');
  });

  test('1 ms apart is rounding, 2 ms apart is a conflict', () => {
    const apart = (ms: number) =>
      readBudget({ 'time-budget': 'remaining=500', 'grpc-timeout': `${500 + ms}m` }, TRUSTED).conflict;
    expect([0, 1, 2].map(apart)).toEqual([false, false, true]);
  });
});

describe('B-26: more than our own header says', () => {
  const beside = (header: string, value: string, options = TRUSTED) =>
    readBudget({ 'time-budget': 'remaining=700', [header]: value }, options).exceedsOwn;

  test('a fresh timeout beside what was left exceeds it; one rounded up by 1 ms does not', () => {
    expect(beside('grpc-timeout', '5S')).toBe(true);
    expect(beside('grpc-timeout', '702m')).toBe(true);
    expect(beside('grpc-timeout', '701m')).toBe(false);
    expect(beside('x-request-timeout-ms', '200')).toBe(false);
  });

  test("an Envoy route's own limit does not", () => {
    expect(beside('x-envoy-expected-rq-timeout-ms', '15000')).toBe(false);
    expect(beside('x-envoy-upstream-rq-timeout-ms', '15000')).toBe(false);
  });

  test('nor does anything that an untrusted sender writes', () => {
    expect(beside('grpc-timeout', '5S', UNTRUSTED)).toBe(false);
  });

  test('nor does one rounded up by 1 ms, while a third format is in conflict', () => {
    const headers = { 'time-budget': 'remaining=700', 'grpc-timeout': '701m', 'x-request-timeout-ms': '200' };
    const received = readBudget(headers, TRUSTED);
    expect([received.conflict, received.exceedsOwn]).toEqual([true, false]);
  });

  test('nor does a conflict of two others', () => {
    const headers = { 'time-budget': 'attempt=1', 'grpc-timeout': '5S', 'x-request-timeout-ms': '200' };
    expect(readBudget(headers, TRUSTED).exceedsOwn).toBe(false);
  });
});

describe('trust', () => {
  const headers = {
    'time-budget':
      'remaining=500, attempt=2, repeated, caller=web, priority=critical, workload=replay, sent=5',
  };

  test('P-15: of an untrusted sender only the time is looked at', () => {
    expect(readBudget(headers, UNTRUSTED)).toEqual({
      ...NOTHING_RECEIVED,
      remainingMs: 500,
      source: 'time_budget',
      sentWallMs: 5,
    });
  });

  test('nor does an untrusted sender become one of ours by its attempt', () => {
    expect(readBudget({ 'time-budget': 'attempt=2, repeated, caller=web' }, UNTRUSTED)).toEqual(
      NOTHING_RECEIVED,
    );
  });

  test('a header that cannot be read makes nobody one of ours', () => {
    expect(readBudget({ 'time-budget': 'remaining=' }, TRUSTED)).toEqual({
      ...NOTHING_RECEIVED,
      findings: [{ source: 'time_budget', fault: 'malformed' }],
    });
  });

  test('of a trusted one all members are', () => {
    expect(readBudget(headers, TRUSTED)).toEqual({
      ...NOTHING_RECEIVED,
      remainingMs: 500,
      source: 'time_budget',
      fromInstrumented: true,
      attempt: 2,
      repeated: true,
      caller: 'web',
      priority: 'critical',
      workload: 'replay',
      sentWallMs: 5,
    });
  });
});

describe('clocks', () => {
  const deadline = { 'pulse-timeout-deadline-ms': String(WALL_NOW_MS + 500) };

  test('P-09: an absolute time counts only within a clock domain and from a trusted sender', () => {
    expect(readBudget(deadline, { trusted: true, wallNowMs: WALL_NOW_MS })).toEqual({
      ...NOTHING_RECEIVED,
      remainingMs: 500,
      source: 'pulse_deadline',
    });
    const notUsed = {
      ...NOTHING_RECEIVED,
      findings: [{ source: 'pulse_deadline', fault: 'untrusted' }],
    };
    expect(readBudget(deadline, TRUSTED)).toEqual(notUsed);
    expect(readBudget(deadline, { trusted: false, wallNowMs: WALL_NOW_MS })).toEqual(notUsed);
  });

  test.each([3_000, -3_000, 3_600_000, -3_600_000])(
    'A19, T-09: with the wall clock off by %d ms a relative budget is what was sent',
    (skewMs) => {
      const options = { trusted: true, wallNowMs: WALL_NOW_MS + skewMs };
      expect(readBudget({ 'x-request-timeout-ms': '500' }, options).remainingMs).toBe(500);
      expect(readBudget({ 'time-budget': 'remaining=500' }, options).remainingMs).toBe(500);
    },
  );

  test('T-09: beside a relative value a clock that is behind cannot lengthen it', () => {
    const headers = { ...deadline, 'pulse-timeout-ms': '500' };
    const received = readBudget(headers, { trusted: true, wallNowMs: WALL_NOW_MS - 180_000 });
    expect([received.remainingMs, received.source]).toEqual([500, 'pulse_timeout']);
  });
});
