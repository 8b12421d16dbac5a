/**
 * Gates on real servers in processes of their own, before a dependency that counts what reaches it: who is let in, what
 * the others are told, and that the load counters add up while clients leave.
 */
import http from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { Counted } from '../support/counted.ts';
import { ask, type Reply } from '../support/loopback.ts';
import { type Metrics, Service } from '../support/service.ts';

const started: { stop(): Promise<void> }[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((each) => each.stop()));
});

async function serve(server: string, env: Readonly<Record<string, string>>, holdMs?: number) {
  const dependency = await Counted.start(holdMs);
  started.push(dependency);
  const service = await Service.start('apps/admission.mjs', {
    env: { TIME_BUDGET_MODE: 'enforce', SERVER: server, NEXT_URL: dependency.url, ...env },
  });
  started.push(service);
  return { dependency, service };
}

/** What must hold at every moment, and what in flight is then. */
function identities(metrics: Metrics) {
  const value = (name: string, labels?: Record<string, string>) =>
    metrics.value(`time_budget_${name}`, labels);
  const shed = value('shed_total');
  const refused = value('outcomes_total', { outcome: 'refused' });
  const undecided = value('in_flight', { state: 'undecided' });
  const admitted = value('in_flight', { state: 'admitted' });
  expect(value('offered_total')).toBe(value('admitted_total') + shed + refused + undecided);
  expect(value('admitted_total')).toBe(value('outcomes_total') - shed - refused + admitted);
  return { shed, refused, undecided, admitted, arriving: value('in_flight', { state: 'arriving' }) };
}

/** A client that sends a request and can leave. */
class Client {
  status: number | undefined;
  readonly #request: http.ClientRequest;

  constructor(service: Service, path: string) {
    this.#request = http.get({ port: service.port, host: '127.0.0.1', path, agent: false }, (response) => {
      this.status = response.statusCode;
      response.resume();
    });
    this.#request.on('error', () => {});
  }

  leave(): void {
    this.#request.destroy();
  }
}

function problem({ status, headers, body }: Reply): unknown {
  return { status, type: headers['content-type']?.split(';')[0], reason: JSON.parse(body).reason };
}

const SERVERS = ['plain', 'express', 'express-route', 'fastify'] as const;

describe.each(SERVERS)('a gate on %s', (server) => {
  test('L-03, L-04: the limit works, the queue waits, the rest is told 503 and reaches nothing', async () => {
    const { dependency, service } = await serve(server, { LIMIT: '2', QUEUE: '1 60000' });
    const clients = [new Client(service, '/work/1'), new Client(service, '/work/2')];
    await dependency.until(({ working }) => working === 2);
    const waiting = new Client(service, '/work/3');
    await service.until((each) => each.value('time_budget_queue_depth', { queue: 'front' }) === 1);
    const refused = await ask(service.port, { path: '/work/4' });
    expect(problem(refused)).toEqual({ status: 503, type: 'application/problem+json', reason: 'overloaded' });
    expect(refused.headers['retry-after']).toBeUndefined();
    const during = await service.until((each) => each.value('time_budget_shed_total') === 1);
    identities(during);
    expect(during.value('time_budget_shed_total', { reason: 'concurrency' })).toBe(1);
    expect(during.value('time_budget_concurrency_used', { dependency: 'front' })).toBe(2);
    expect(during.value('time_budget_concurrency_limit', { dependency: 'front' })).toBe(2);
    expect((await dependency.state()).arrivals).toBe(2);
    await dependency.open();
    await dependency.until(({ arrivals }) => arrivals === 3);
    await dependency.open();
    const after = await service.until(
      (each) => each.value('time_budget_outcomes_total', { outcome: 'useful' }) === 3,
    );
    expect(identities(after)).toEqual({ shed: 1, refused: 0, undecided: 0, admitted: 0, arriving: 0 });
    expect((await dependency.state()).most).toBe(2);
    expect([...clients, waiting].map(({ status }) => status)).toEqual([200, 200, 200]);
  });

  test('S-25: what a timeout of the service answers while it waits was never let in, and nobody has left', async () => {
    const { dependency, service } = await serve(server, { LIMIT: '1', QUEUE: '1 60000' });
    const first = new Client(service, '/work/1');
    await dependency.until(({ working }) => working === 1);
    expect(await ask(service.port, { path: '/work/late' })).toMatchObject({ status: 503, body: 'too late' });
    const during = await service.until((each) => each.value('time_budget_outcomes_total') === 1);
    const { admitted, arriving, ...others } = identities(during);
    // Only a framework has told the operation of the first one by now.
    expect([others, admitted + arriving]).toEqual([{ shed: 1, refused: 0, undecided: 0 }, 1]);
    expect(during.value('time_budget_shed_total', { reason: 'capacity' })).toBe(1);
    expect(during.value('time_budget_queue_left_total', { queue: 'front', result: 'deleted' })).toBe(1);
    expect(during.value('time_budget_queue_left_total')).toBe(1);
    expect(during.value('time_budget_gate_refused_total')).toBe(0);
    await dependency.open();
    const after = await service.until(
      (each) => each.value('time_budget_outcomes_total', { outcome: 'useful' }) === 1,
    );
    expect(identities(after)).toEqual({ shed: 1, refused: 0, undecided: 0, admitted: 0, arriving: 0 });
    expect([first.status, (await dependency.state()).arrivals]).toEqual([200, 1]);
  });

  test('C-08, S-25: the client has left, its call goes on: the permit is held until the dependency is free', async () => {
    const { dependency, service } = await serve(server, { LIMIT: '1' });
    const client = new Client(service, '/work/1');
    await dependency.until(({ working }) => working === 1);
    client.leave();
    const held = await service.until(
      (each) => each.value('time_budget_outcomes_total', { outcome: 'cancelled' }) === 1,
    );
    identities(held);
    expect(held.value('time_budget_concurrency_used', { dependency: 'front' })).toBe(1);
    expect(held.value('time_budget_executing', { dependency: 'front' })).toBe(1);
    expect(problem(await ask(service.port, { path: '/work/2' }))).toMatchObject({ status: 503 });
    await dependency.open();
    await service.until((each) => each.value('time_budget_concurrency_used', { dependency: 'front' }) === 0);
    const next = new Client(service, '/work/3');
    await dependency.until(({ working }) => working === 1);
    await dependency.open();
    await service.until((each) => each.value('time_budget_outcomes_total', { outcome: 'useful' }) === 1);
    expect(next.status).toBe(200);
  });

  test('T-33, I: what waited hands on the shorter, later time; what waited too long is told 504', async () => {
    const { dependency, service } = await serve(server, { LIMIT: '1', QUEUE: '2 60000' });
    const budget = (ms: number) => ({ headers: { 'x-request-timeout-ms': String(ms) } });
    const first = new Client(service, '/work/1');
    await dependency.until(({ working }) => working === 1);
    const sentAt = performance.now();
    const waiting = ask(service.port, { path: '/work/2', ...budget(30_000) });
    const expired = await ask(service.port, { path: '/work/3', ...budget(300) });
    expect(problem(expired)).toEqual({
      status: 504,
      type: 'application/problem+json',
      reason: 'deadline_exceeded_before_dispatch',
    });
    // Less than 300: a busy service may count its own busy time before the arrival as waited.
    expect(performance.now() - sentAt).toBeGreaterThanOrEqual(200);
    await dependency.open();
    await dependency.until(({ arrivals }) => arrivals === 2);
    const waitedMs = performance.now() - sentAt;
    await dependency.open();
    const handedDown = Number(/remaining=(\d+)/.exec((await waiting).body)?.[1]);
    expect(handedDown).toBeLessThanOrEqual(30_000 - 200);
    expect(handedDown).toBeGreaterThanOrEqual(30_000 - waitedMs - 1_000);
    const after = await service.until((each) => each.value('time_budget_outcomes_total') === 3);
    expect(identities(after)).toMatchObject({ shed: 0, refused: 1 });
    expect(after.value('time_budget_queue_left_total', { queue: 'front', result: 'expired' })).toBe(1);
    expect(first.status).toBe(200);
  });

  test('T-34: under load, with clients that leave, every request has one disposition', async () => {
    const { dependency, service } = await serve(server, { LIMIT: '4', QUEUE: '4 50' }, 5);
    let sent = 0;
    const clients: Client[] = [];
    for (let round = 0; round < 15; round++) {
      const batch = Array.from({ length: 20 }, () => new Client(service, `/work/${sent++}`));
      clients.push(...batch);
      await service.until((each) => {
        identities(each);
        return each.value('time_budget_offered_total') >= sent / 2;
      });
      for (const [index, client] of batch.entries()) if (index % 5 === 0) client.leave();
    }
    const rest = await service.until((each) => {
      const { undecided, admitted, arriving } = identities(each);
      return undecided + admitted + arriving === 0 && each.value('time_budget_concurrency_used') === 0;
    });
    service.child.signal('SIGUSR2');
    const seen = JSON.parse(await service.child.says(/seen (.*)\./));
    const { shed, refused } = identities(rest);
    // A client may leave before its request is there at all.
    expect(rest.value('time_budget_offered_total')).toBe(seen.asked);
    expect(rest.value('time_budget_outcomes_total')).toBe(seen.asked);
    expect(rest.value('time_budget_admitted_total')).toBe(seen.worked);
    expect(shed + refused + seen.worked).toBe(seen.asked);
    expect(shed).toBeGreaterThan(0);
    expect((await dependency.state()).most).toBeLessThanOrEqual(4);
    expect(rest.value('time_budget_queue_entered_total')).toBe(rest.value('time_budget_queue_left_total'));
    expect(clients.filter(({ status }) => status === 503).length).toBeLessThanOrEqual(shed);
    expect(rest.value('time_budget_internal_errors_total')).toBe(0);
  });

  test('observe: all are let in at once, and what would have been is counted', async () => {
    const { dependency, service } = await serve(server, { LIMIT: '1', TIME_BUDGET_MODE: 'observe' });
    const clients = Array.from({ length: 3 }, (_, i) => new Client(service, `/work/${i}`));
    await dependency.until(({ working }) => working === 3);
    const refused = { reason: 'concurrency', enforced: 'no' };
    await service.until((each) => each.value('time_budget_gate_refused_total', refused) === 2);
    await dependency.open();
    const after = await service.until(
      (each) => each.value('time_budget_outcomes_total', { outcome: 'useful' }) === 3,
    );
    expect(identities(after)).toMatchObject({ shed: 0, refused: 0 });
    expect(after.value('time_budget_admitted_total')).toBe(3);
    expect(clients.map(({ status }) => status)).toEqual([200, 200, 200]);
  });
});

describe('P-15: what a client says of its own priority', () => {
  const claim = { 'time-budget': 'remaining=60000, attempt=1, caller=gateway, priority=critical' };

  test.each([
    ['internal', 'critical', 'gateway'],
    ['edge', 'unset', 'unknown'],
  ])('at an entry that is %s it is %s', async (role, priority, caller) => {
    const { dependency, service } = await serve('plain', { LIMIT: '1', TIME_BUDGET_ENTRY_ROLE: role });
    const first = new Client(service, '/work/1');
    await dependency.until(({ working }) => working === 1);
    const refused = await ask(service.port, { path: '/work/2', headers: claim });
    expect(refused.status).toBe(503);
    const metrics = await service.until((each) => each.value('time_budget_shed_total') === 1);
    expect(metrics.value('time_budget_shed_total', { priority, caller, reason: 'concurrency' })).toBe(1);
    first.leave();
  });
});
