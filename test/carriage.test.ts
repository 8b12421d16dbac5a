import { describe, expect, test } from 'vitest';
import { enterScope, runInScope } from '../src/current.ts';
import { detach } from '../src/index.ts';
import type { CallRecord } from '../src/records.ts';
import { createTestHooks } from './support/hooks.ts';
import { createVirtualClock } from './support/virtual-clock.ts';

const DEPENDENCIES = {
  quiet: { match: ['quiet'], header: 'off' },
  spoken: {
    match: ['spoken'],
    mode: 'propagate',
    headers: ['x-request-timeout-ms', 'x-envoy-expected-rq-timeout-ms'],
  },
} as const;

function setUp(remainingMs: number | undefined) {
  const t = createTestHooks({
    clock: createVirtualClock(),
    serviceName: 'gateway',
    config: { dependencies: DEPENDENCIES },
  });
  enterScope(undefined);
  const headers = remainingMs === undefined ? {} : { 'x-request-timeout-ms': String(remainingMs) };
  const record = t.recorder.enter({ headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' }, 0);
  const begin = (host: string): CallRecord => t.hooks.calls.begin(t.hooks.calls.target(host, 80, 'http'), 0);
  const sent = (call: CallRecord, host: string, at: number): Record<string, string | undefined> => {
    const handedDown = t.hooks.calls.dispatch(call, at);
    const names = t.hooks.carriage.headersFor(call, host, 80);
    return Object.fromEntries(names.map((name) => [name, t.hooks.carriage.render(name, call, handedDown)]));
  };
  return { t, record, begin, sent };
}

describe('headers that leave', () => {
  test('B2: a call without any limit of its own carries what is left (observe: only our own header), with what is left at the send, rounded down', () => {
    const { record, begin, sent } = setUp(1000);
    const call = runInScope(record, () => begin('inventory'));
    expect(sent(call, 'inventory', 300.4)).toEqual({
      'time-budget': 'remaining=699, attempt=1, caller=gateway',
    });
  });

  test('what is to be told of the request or the attempt is told, and only then', () => {
    const { record, begin, sent } = setUp(1000);
    const call = runInScope(record, () => begin('inventory'));
    const told = (): string | undefined => sent(call, 'inventory', 300)['time-budget'];
    record.priority = 'critical';
    expect(told()).toBe('remaining=700, attempt=1, caller=gateway, priority=critical');
    record.priority = 'unset';
    record.workload = 'replay';
    expect(told()).toBe('remaining=700, attempt=1, caller=gateway, workload=replay');
    record.workload = 'live';
    expect(told()).toBe('remaining=700, attempt=1, caller=gateway');
    call.attempt = 2;
    expect(told()).toBe('remaining=700, attempt=2, repeated, caller=gateway');
    call.attempt = 1;
    record.repeated = true;
    expect(told()).toBe('remaining=700, attempt=1, repeated, caller=gateway');
  });

  test('without a budget: who calls, and no time', () => {
    const { record, begin, sent } = setUp(undefined);
    const call = runInScope(record, () => begin('inventory'));
    expect(sent(call, 'inventory', 1)).toEqual({ 'time-budget': 'attempt=1, caller=gateway' });
  });

  test('B2, B11: none to a host that it is switched off for', () => {
    const { record, begin, sent } = setUp(1000);
    expect(
      sent(
        runInScope(record, () => begin('quiet')),
        'quiet',
        1,
      ),
    ).toEqual({});
  });

  test('B10: none for detached work', () => {
    const { record, begin, sent } = setUp(1000);
    const call = runInScope(record, () => detach(() => begin('inventory')));
    expect(call.detached).toBe(true);
    expect(sent(call, 'inventory', 1)).toEqual({});
  });

  test('propagate: also those that the dependency acts upon; an exhausted budget is not "no limit" to Envoy', () => {
    const { record, begin, sent } = setUp(1000);
    const call = runInScope(record, () => begin('spoken'));
    expect(sent(call, 'spoken', 250)).toEqual({
      'time-budget': 'remaining=750, attempt=1, caller=gateway',
      'x-request-timeout-ms': '750',
      'x-envoy-expected-rq-timeout-ms': '750',
    });
    expect(sent(call, 'spoken', 1000.5)).toEqual({
      'time-budget': 'remaining=0, attempt=1, caller=gateway',
      'x-request-timeout-ms': '0',
      'x-envoy-expected-rq-timeout-ms': undefined,
    });
  });
});
