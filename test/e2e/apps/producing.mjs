// A service that produces to Kafka, whose client has no adapter here: its calls are recorded by hand.
import http from 'node:http';
import { Kafka, logLevel } from 'kafkajs';
import { withBudget } from 'otel-time-budget';
import { recordCall } from 'otel-time-budget/manual';

const kafka = new Kafka({
  brokers: [process.env.BROKER],
  retry: { retries: 1, initialRetryTime: 20 },
  connectionTimeout: 1_000,
  logLevel: logLevel.NOTHING,
});

async function produce() {
  const producer = kafka.producer();
  try {
    await producer.connect();
    await producer.send({ topic: 'mails', messages: [{ value: 'one' }] });
  } finally {
    await producer.disconnect();
  }
}

const server = http.createServer(async (_, response) => {
  const error = await withBudget(30_000, () => recordCall('kafka', produce)).catch((reason) => reason);
  response.end(`${error?.name}: ${error?.message}`);
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
