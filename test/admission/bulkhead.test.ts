/** cockatiel's own bulkhead, in front of a real server. */
import http from 'node:http';
import { BulkheadRejectedError, bulkhead, TimeoutStrategy, timeout, wrap } from 'cockatiel';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { httpClient } from '../../instrumentation/http-client/http-client.ts';
import { activateRecorder, deactivateRecorder } from '../../src/active.ts';
import { watchBulkhead } from '../../src/admission/index.ts';
import { createTestHooks, type TestHooks } from '../support/hooks.ts';
import { close, listen, until } from '../support/loopback.ts';

let t: TestHooks;
let server: http.Server;
let port: number;
/** Requests that the server has not answered yet. */
const open: http.ServerResponse[] = [];

beforeEach(async () => {
  server = http.createServer((_request, response) => void open.push(response));
  port = await listen(server);
  const config = { dependencies: { stock: { match: [`127.0.0.1:${port}`] } } };
  t = createTestHooks({ config, adapters: [httpClient] });
  activateRecorder(t.recorder);
});

afterEach(async () => {
  t.stop();
  deactivateRecorder(t.recorder);
  open.splice(0);
  await close(server);
});

async function call(): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = http.get({ port, host: '127.0.0.1', agent: false }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode));
    });
    request.on('error', reject);
  });
}

function counts(): Record<string, number> {
  t.recorder.families.concurrencyUsed.refresh?.();
  const stock = { dependency: 'stock' };
  return {
    limit: t.value('concurrencyLimit', stock),
    held: t.value('concurrencyUsed', stock),
    executing: t.value('executing', stock),
    queued: t.value('queueDepth', { queue: 'stock' }),
    rejected: t.value('refused', { ...stock, reason: 'overloaded' }),
  };
}

describe('L-02: a bulkhead for one dependency', () => {
  test('limit, in use, queued and rejected; every one of them as cockatiel has it', async () => {
    const policy = watchBulkhead('stock', bulkhead(2, 1));
    expect(counts()).toEqual({ limit: 2, held: 0, executing: 0, queued: 0, rejected: 0 });
    const calls = [policy.execute(call), policy.execute(call), policy.execute(call)];
    await expect(policy.execute(call)).rejects.toThrow(BulkheadRejectedError);
    await until(() => open.length === 2);
    expect(counts()).toEqual({ limit: 2, held: 2, executing: 2, queued: 1, rejected: 1 });
    open.shift()?.end();
    await until(() => open.length === 2);
    expect(counts()).toMatchObject({ held: 2, queued: 0 });
    for (const response of open.splice(0)) response.end();
    await Promise.all(calls);
    expect(counts()).toEqual({ limit: 2, held: 0, executing: 0, queued: 0, rejected: 1 });
  });

  test('C-08: a timeout inside it gives the permit back while the dependency is kept busy: both are shown', async () => {
    const policy = watchBulkhead('stock', bulkhead(1, 0));
    const impatient = wrap(policy, timeout(20, TimeoutStrategy.Aggressive));
    const late: Promise<unknown>[] = [];
    const work = () => {
      const made = call();
      late.push(made);
      return made;
    };
    await expect(impatient.execute(work)).rejects.toThrow();
    await expect(impatient.execute(work)).rejects.toThrow();
    await until(() => open.length === 2);
    expect(counts()).toMatchObject({ limit: 1, held: 0, executing: 2 });
    for (const response of open.splice(0)) response.end();
    await Promise.all(late);
    expect(counts()).toMatchObject({ held: 0, executing: 0 });
  });

  test('it is the very same object, and one of cockatiel’s policies', async () => {
    const policy = bulkhead(1);
    expect(watchBulkhead('stock', policy)).toBe(policy);
    expect(await wrap(timeout(1_000, TimeoutStrategy.Aggressive), policy).execute(() => 7)).toBe(7);
  });
});
