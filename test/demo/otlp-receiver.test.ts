import { afterEach, expect, test } from 'vitest';
import { OtlpReceiver, readSpans } from '../../demo/otlp-receiver.ts';

const TRACE = 'a'.repeat(32);
const CALLER = 'c'.repeat(16);

function otlp(service: string, ...spans: object[]): string {
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: service } }] };
  return JSON.stringify({ resourceSpans: [{ resource, scopeSpans: [{ spans }] }] });
}

function span(spanId: string, parentSpanId: string, kind: number): object {
  const times = { startTimeUnixNano: '1796000000123456789', endTimeUnixNano: '1796000000623456789' };
  return { traceId: TRACE, spanId, parentSpanId, kind, name: spanId, ...times };
}

test('one export taken apart', () => {
  const attributes = [
    { key: 'text', value: { stringValue: 'late' } },
    { key: 'whole', value: { intValue: '600' } },
    { key: 'part', value: { doubleValue: -0.5 } },
    { key: 'yes', value: { boolValue: true } },
    { key: 'list', value: { arrayValue: { values: [] } } },
  ];
  expect(readSpans(otlp('orders', { ...span('s1', CALLER, 2), attributes }))).toEqual([
    {
      service: 'orders',
      name: 's1',
      kind: 'server',
      traceId: TRACE,
      spanId: 's1',
      parentId: CALLER,
      startedAt: 1796000000123.456,
      endedAt: 1796000000623.456,
      attributes: { text: 'late', whole: 600, part: -0.5, yes: true },
    },
  ]);
});

const receiver = new OtlpReceiver();
afterEach(() => receiver.stop());

test('a trace is handed out when the last parent has come, and only if it was asked for', async () => {
  const url = await receiver.start();
  const post = (body: string) => fetch(url, { method: 'POST', body });
  receiver.expect(TRACE);
  await post(otlp('gateway', span('g', CALLER, 2)));
  await post(otlp('orders', span('o', 'call', 2)));
  await expect(receiver.take(TRACE, CALLER, ['gateway', 'inventory'], 1)).rejects.toThrow(
    'the trace is not complete: no server span of inventory',
  );
  await expect(receiver.take(TRACE, CALLER, ['gateway', 'orders'], 1)).rejects.toThrow(
    'the trace is not complete: the parent of o of orders',
  );
  const taking = receiver.take(TRACE, CALLER, ['gateway', 'orders'], 5000);
  await post(otlp('gateway', span('call', 'g', 3), { ...span('x', '', 2), traceId: 'b'.repeat(32) }));
  expect((await taking).map(({ spanId }) => spanId)).toEqual(['g', 'o', 'call']);
});
