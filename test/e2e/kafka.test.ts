/** H6: kafkajs has warnings of its own on Node 24, and we add none. */
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { refusedPort } from '../../demo/free-port.ts';
import { listen } from '../support/loopback.ts';
import { type Metrics, Service } from '../support/service.ts';

const UNSUPPORTED_VERSION = 35;

/** Answers every request with "not in this version", which is enough for the client to say its warning. */
const broker = net.createServer((socket) => {
  socket.on('error', () => {});
  socket.on('data', (request) => {
    const answer = Buffer.alloc(14);
    answer.writeInt32BE(answer.length - 4, 0);
    request.copy(answer, 4, 8, 12);
    answer.writeInt16BE(UNSUPPORTED_VERSION, 8);
    socket.write(answer);
  });
});
let brokers: Record<string, string>;

beforeAll(async () => {
  const [answering, closed] = await Promise.all([listen(broker), refusedPort()]);
  brokers = { answering: `127.0.0.1:${answering}`, closed: `127.0.0.1:${closed}` };
});

afterAll(() => {
  broker.close();
});

interface Produced {
  readonly answer: string;
  readonly stderr: string;
  /** How often the call was counted; undefined without the flag. */
  readonly calls: number | undefined;
}

async function produce(kind: string, flag: boolean): Promise<Produced> {
  const service = await Service.start('apps/producing.mjs', {
    flag,
    env: { BROKER: brokers[kind] ?? '' },
  });
  let answer: string;
  let calls: number | undefined;
  try {
    answer = await (await fetch(service.origin)).text();
    const isOver = (page: Metrics) =>
      page.value('time_budget_call_duration_seconds_count', { dependency: 'kafka' }) > 0;
    if (flag) calls = (await service.until(isOver)).value('time_budget_calls_total', { dependency: 'kafka' });
  } finally {
    await service.stop();
  }
  // The process, and by how much kafkajs's timer was below 0: the time of day.
  const stderr = service.child.stderr.replaceAll(/node:\d+/g, 'node').replaceAll(/-\d+ is/g, '-1 is');
  return { answer, stderr, calls };
}

describe('H6: a producer connects on Node 24', () => {
  test.each(['answering', 'closed'])('to a port that is %s: no further warning, one call', async (kind) => {
    const [without, withUs] = await Promise.all([produce(kind, false), produce(kind, true)]);
    expect(withUs.answer).toBe(without.answer);
    expect(withUs.stderr).toBe(without.stderr);
    expect(without.stderr.includes('TimeoutNegativeWarning')).toBe(kind === 'answering');
    expect(withUs.calls).toBe(1);
  });
});
