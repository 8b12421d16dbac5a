import { diag } from '@opentelemetry/api';
import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { MAX_OPEN } from '../../src/core/open-unknowns.ts';
import { enterScope, runInScope } from '../../src/current.ts';
import type { RequestRecord } from '../../src/records.ts';
import { reconcile, recordUnknown } from '../../src/recovery/index.ts';
import { METRICS } from '../../src/telemetry/names.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts';

const PAY = 'POST /payments';

let clock: VirtualClock;
let t: TestHooks;

beforeEach(() => {
  enterScope(undefined);
  clock = createVirtualClock();
  t = createTestHooks({ clock });
  activateRecorder(t.recorder);
});

afterEach(() => {
  deactivateRecorder(t.recorder);
  vi.restoreAllMocks();
});

function enter(operation = PAY, budgetMs = 1_000): RequestRecord {
  const headers = { 'x-request-timeout-ms': String(budgetMs) };
  const facts = { headers, remoteAddress: '127.0.0.1', method: 'POST', path: '/' };
  const record = t.recorder.enter(facts, clock.at);
  t.recorder.handling(record, operation, clock.at);
  return record;
}

function pay(key: string, status = 202): RequestRecord {
  const record = enter();
  runInScope(record, () => recordUnknown(key));
  t.recorder.finish(record, { completed: true, status }, clock.at);
  return record;
}

/** [open, seconds of the oldest], as they are read when they are collected. */
function open(): [number, number] {
  t.recorder.families.unknownOpen.refresh?.();
  return [t.value('unknownOpen', { operation: PAY }), t.value('unknownOldest', { operation: PAY })];
}

describe('S-17, C-09: unknown is not failed', () => {
  test.each([
    ['an answer', { completed: true, status: 202 }],
    ['an error answer', { completed: true, status: 504 }],
    ['a caller that has left', { completed: false, status: undefined }],
  ])('%s: the outcome is unknown', (_, ending) => {
    const record = enter();
    runInScope(record, () => recordUnknown('k'));
    t.recorder.finish(record, ending, clock.at);
    expect(record.outcome).toBe('unknown');
    expect(t.value('outcomes', { outcome: 'unknown' })).toBe(1);
    expect(t.value('outcomes')).toBe(1);
  });

  test('after the deadline as well: that ends usefulness, and undoes nothing', () => {
    const record = enter(PAY, 100);
    runInScope(record, () => recordUnknown('k'));
    clock.at = 200;
    t.recorder.finish(record, { completed: true, status: 504 }, clock.at);
    expect(record.outcome).toBe('unknown');
  });

  test('found out before the answer, the outcome is what the answer says', () => {
    const record = enter();
    runInScope(record, () => {
      recordUnknown('k');
      expect(reconcile('k', 'done')).toBe(true);
    });
    t.recorder.finish(record, { completed: true, status: 200 }, clock.at);
    expect(record.outcome).toBe('useful');
    expect(open()).toEqual([0, 0]);
  });

  test('finding out about another one leaves this one unknown', () => {
    pay('other');
    const record = enter();
    runInScope(record, () => {
      recordUnknown('k');
      reconcile('other', 'done');
    });
    t.recorder.finish(record, { completed: true, status: 200 }, clock.at);
    expect(record.outcome).toBe('unknown');
  });
});

describe('A-12: how many are unknown, and how old they are', () => {
  test('they age until they are reconciled, and go back to 0', () => {
    pay('a');
    clock.at = 30_000;
    pay('b');
    clock.at = 60_000;
    expect(open()).toEqual([2, 60]);
    expect(reconcile('a', 'done')).toBe(true);
    expect(open()).toEqual([1, 30]);
    expect(reconcile('b', 'not_done')).toBe(true);
    expect(open()).toEqual([0, 0]);
  });

  test('each is counted once, with its true result once', () => {
    pay('a');
    pay('a');
    pay('b');
    pay('c');
    expect(t.value('unknownRecorded', { operation: PAY })).toBe(3);
    expect([reconcile('a', 'done'), reconcile('a', 'done'), reconcile('b', 'abandoned')]).toEqual([
      true,
      false,
      true,
    ]);
    expect(reconcile('never', 'done')).toBe(false);
    expect(t.value('unknownReconciled', { operation: PAY, result: 'done' })).toBe(1);
    expect(t.value('unknownReconciled', { operation: PAY, result: 'abandoned' })).toBe(1);
    expect(t.value('unknownReconciled', { operation: PAY, result: 'not_done' })).toBe(0);
  });

  test('what cannot be kept track of is counted as such', () => {
    const record = enter();
    runInScope(record, () => {
      for (let i = 0; i < MAX_OPEN; i++) expect(recordUnknown(String(i))).toBe(true);
      expect(recordUnknown('one too many')).toBe(false);
      expect(recordUnknown('')).toBe(false);
    });
    expect(t.value('unknownUntracked')).toBe(2);
    expect(t.value('unknownRecorded')).toBe(MAX_OPEN + 2);
    expect(open()[0]).toBe(MAX_OPEN);
  });

  test('plain JavaScript: a number is a key, an object and no operation are none, and nothing throws', () => {
    const parsed = JSON.parse('{"toString":1}');
    expect(recordUnknown(7 as unknown as string)).toBe(true);
    expect(reconcile(7 as unknown as string, 'done')).toBe(true);
    expect(recordUnknown(parsed, parsed)).toBe(false);
    expect(reconcile(parsed, parsed)).toBe(false);
    expect(t.value('unknownRecorded', { operation: 'other' })).toBe(1);
  });

  test('no key in a label: operations only, capped', () => {
    for (let i = 0; i < 200; i++) recordUnknown(`key-${i}`, `operation-${i}`);
    open();
    for (const key of ['unknownRecorded', 'unknownOpen', 'unknownOldest'] as const) {
      const { cells } = t.recorder.families[key];
      expect(cells.length, METRICS[key].name).toBeLessThanOrEqual(51);
      expect(JSON.stringify(cells.map(({ attributes }) => attributes))).not.toContain('key-');
    }
    expect(t.value('unknownOpen')).toBe(200);
  });
});

describe('the way back', () => {
  test('S-17: the request that found out is linked with the one that did not know, and says the result', async () => {
    const exporter = new InMemorySpanExporter();
    const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
    const tracer = provider.getTracer('test');
    const first = enter();
    first.span = tracer.startSpan('pay');
    const context = first.span.spanContext();
    runInScope(first, () => recordUnknown('secret-key'));
    first.span.end();
    clock.at = 4_000;
    const second = enter('reconcile');
    second.span = tracer.startSpan('reconcile');
    runInScope(second, () => reconcile('secret-key', 'done'));
    second.span.end();
    const [pay, found] = exporter.getFinishedSpans();
    expect(pay?.events.map(({ name }) => name)).toEqual(['time_budget.unknown']);
    expect(found?.links.map((link) => link.context.spanId)).toEqual([context.spanId]);
    expect(found?.events.map(({ name, attributes }) => [name, attributes])).toEqual([
      [
        'time_budget.reconciled',
        { 'time_budget.reconciled.result': 'done', 'time_budget.unknown.age_ms': 4_000 },
      ],
    ]);
    expect(JSON.stringify([pay?.attributes, pay?.events, found?.attributes, found?.events])).not.toContain(
      'secret',
    );
  });

  test('an unknown word is named and changes nothing', () => {
    const warn = vi.spyOn(diag, 'warn').mockImplementation(() => {});
    pay('a');
    // A service without types can pass anything.
    expect(reconcile('a', 'maybe' as 'done')).toBe(false);
    expect(warn.mock.calls[0]?.[0]).toContain('must be one of done, not_done, abandoned, got maybe');
    expect(open()[0]).toBe(1);
  });

  test('without the package nothing is kept and nothing throws', () => {
    deactivateRecorder(t.recorder);
    expect(recordUnknown('a')).toBe(false);
    expect(reconcile('a', 'done')).toBe(false);
  });
});
