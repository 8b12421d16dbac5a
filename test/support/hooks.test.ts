import { expect, test } from 'vitest';
import { createTestHooks } from './hooks.ts';

test('value sums the cells with the given labels and refuses a label that the metric has not', () => {
  const { recorder, value, histogram } = createTestHooks();
  recorder.families.cancellations.cell('GET /a', 'client_disconnect').add(2);
  recorder.families.cancellations.cell('GET /b', 'client_disconnect').add(1);
  expect(value('cancellations', { source: 'client_disconnect' })).toBe(3);
  expect(value('cancellations', { operation: 'GET /b' })).toBe(1);
  expect(value('cancellations', { operation: 'GET /c' })).toBe(0);
  expect(() => value('cancellations', { cancel_source: 'shutdown' })).toThrow('no label cancel_source');
  recorder.families.queue.cell('GET /a').recordMs(250);
  expect(histogram('queue')).toEqual({ count: 1, sum: 0.25 });
  expect(() => value('queue')).toThrow('histogram');
});
