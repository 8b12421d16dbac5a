import { readFileSync } from 'node:fs';
import net from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Child, REGISTER } from '../support/child.ts';
import { listen } from '../support/loopback.ts';
import { hasRabbitMq, RabbitMq } from '../support/rabbitmq.ts';

const page = readFileSync(new URL('../../docs/manual-instrumentation.md', import.meta.url), 'utf8');
const examples = [...page.matchAll(/^```js\n(.*?)^```$/gms)].map(([, code = '']) => code);
const [amqp = '', kafka = '', redis = ''] = examples;

/** Enough of a Redis: what a client sends, and what it is answered. */
const COMMAND = /\*\d+\r\n\$\d+\r\n(\w+)/g;
const REPLIES: Readonly<Record<string, string>> = {
  hello: '%1\r\n+server\r\n+redis\r\n',
  info: '$20\r\nredis_version:7.0.15\r\n',
  get: '$8\r\nsix eggs\r\n',
};

/** As a service would run it: from the built package, with the flag, in this folder's libraries. */
function run(code: string, env: Readonly<Record<string, string>> = {}): Child {
  return new Child(['--import', REGISTER, '--input-type=module', '--eval', code], {
    OTEL_SDK_DISABLED: 'true',
    ...env,
  });
}

describe('the examples of docs/manual-instrumentation.md', () => {
  test('there are three', () => {
    expect(examples).toHaveLength(3);
  });

  test('Kafka: the age by the broker is deducted, and that of a producer is not looked at', async () => {
    const before = `import { remainingMs } from 'otel-time-budget';
      const seen = [];
      const handle = async () => void seen.push(Math.round(remainingMs() / 100) * 100);
      const headers = { 'time-budget': [Buffer.from('remaining=90000')] };
      const timestamp = String(Date.now() - 60000);
      const consumer = { async run({ eachMessage }) {
        await eachMessage({ message: { headers, timestamp, batchContext: { timestampType: 1 } } });
        await eachMessage({ message: { headers, timestamp, batchContext: { timestampType: 0 } } });
      } };`;
    const { stdout, stderr } = await run(`${before}${kafka}console.log(JSON.stringify(seen))`).output();
    expect({ stdout, stderr }).toEqual({ stdout: '[30000,90000]\n', stderr: '' });
  });

  test('Redis: the value is read, and the process ends', async () => {
    const server = net.createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => {
        for (const [, name = ''] of data.toString().matchAll(COMMAND)) {
          socket.write(REPLIES[name.toLowerCase()] ?? '+OK\r\n');
          if (name === 'quit') socket.end();
        }
      });
    });
    const env = { REDIS_URL: `redis://127.0.0.1:${await listen(server)}` };
    const { stdout, stderr } = await run(redis, env).output();
    server.close();
    expect({ stdout, stderr }).toEqual({ stdout: 'six eggs\n', stderr: '' });
  });
});

describe.skipIf(!hasRabbitMq)('the example of RabbitMQ', () => {
  let rabbit: RabbitMq;

  beforeAll(async () => {
    rabbit = await RabbitMq.start();
  }, 120_000);

  afterAll(() => rabbit.stop(), 60_000);

  test('what is sent is handled, within its time', async () => {
    const child = run(amqp, { AMQP_URL: rabbit.url });
    expect(await child.says(/^(.*)\n/)).toBe('handled hello');
    await child.stop();
    expect(child.stderr).toBe('');
  });
});
