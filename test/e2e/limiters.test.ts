/** Refusals of well-known limiters, seen without code: the services import nothing of this package. */
import { afterEach, describe, expect, test } from 'vitest';
import { ask } from '../support/loopback.ts';
import { Service } from '../support/service.ts';

let service: Service;

afterEach(() => service.stop());

async function statuses(path: (id: number) => string, count: number): Promise<Record<number, number>> {
  const seen: Record<number, number> = {};
  for (let id = 0; id < count; id++) {
    const { status } = await ask(service.port, { path: path(id) });
    seen[status] = (seen[status] ?? 0) + 1;
  }
  return seen;
}

async function counted(total: number) {
  const metrics = await service.until((each) => each.value('time_budget_outcomes_total') === total);
  const value = (name: string, labels?: Record<string, string>) =>
    metrics.value(`time_budget_${name}`, labels);
  expect(value('offered_total')).toBe(
    value('admitted_total') + value('shed_total') + value('outcomes_total', { outcome: 'refused' }),
  );
  return value;
}

describe('express-rate-limit', () => {
  test.each([
    // Refused before its route is known.
    ['before the routes', '/all', 'unmatched'],
    ['in the route', '/one', 'GET /one/:id'],
  ])('L-09, M-02: %s: 429 is shed by quota, and not admitted', async (_, path, operation) => {
    service = await Service.start('apps/limited.mjs', { env: { LIMITER: 'express-rate-limit' } });
    expect(await statuses((id) => `${path}/${id}`, 12)).toEqual({ 200: 5, 429: 7 });
    const value = await counted(12);
    expect(value('shed_total', { reason: 'quota' })).toBe(7);
    expect(value('shed_total', { operation })).toBe(7);
    expect(value('admitted_total')).toBe(5);
    expect(value('outcomes_total', { outcome: 'useful' })).toBe(5);
    expect(value('outcomes_total', { outcome: 'shed' })).toBe(7);
  });

  test('a 503 of a handler that says nothing of coming again is a failure', async () => {
    service = await Service.start('apps/limited.mjs', { env: { LIMITER: 'express-rate-limit' } });
    expect(await statuses(() => '/broken', 3)).toEqual({ 503: 3 });
    const value = await counted(3);
    expect([
      value('outcomes_total', { outcome: 'failed' }),
      value('shed_total'),
      value('admitted_total'),
    ]).toEqual([3, 0, 3]);
  });
});

test('@fastify/under-pressure: L-07, L-18: its 503 is shed for capacity, and never goodput', async () => {
  service = await Service.start('apps/limited.mjs', { env: { LIMITER: 'under-pressure' } });
  // Until its first look it lets in.
  let before = 0;
  for (;;) {
    const { status, headers } = await ask(service.port, { path: '/work' });
    before++;
    if (status === 503) {
      expect(headers['retry-after']).toBe('10');
      break;
    }
  }
  expect(await statuses(() => '/work', 9)).toEqual({ 503: 9 });
  expect(await statuses(() => '/free', 4)).toEqual({ 200: 4 });
  const value = await counted(before + 13);
  expect(value('shed_total', { reason: 'capacity' })).toBe(10);
  expect(value('shed_total')).toBe(10);
  expect(value('outcomes_total', { outcome: 'useful' })).toBe(before - 1 + 4);
});
