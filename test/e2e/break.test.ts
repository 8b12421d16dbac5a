/** Attempts to break a service through us: odd input, things that go away, and faults of our own. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Child, REGISTER, testFile } from '../support/child.ts';
import { until } from '../support/loopback.ts';
import { Dice, oddHeaders } from '../support/odd-headers.ts';
import { usePostgres } from '../support/postgres.ts';
import { Service } from '../support/service.ts';
import { Stage, Wire } from '../support/stage.ts';
import { versionsFolder } from '../support/variants.ts';
import { EXPRESS } from './scenes/express.ts';
import { INCOMING } from './scenes/incoming.ts';
import { OUTGOING } from './scenes/outgoing.ts';
import { pgPlays } from './scenes/pg.ts';

const postgres = usePostgres();

describe('odd requests', () => {
  let ours: Service;
  let plain: Service;
  beforeAll(async () => {
    [ours, plain] = await Promise.all([
      Service.start('apps/plain.mjs', { env: { TIME_BUDGET_TRUST: 'all' } }),
      Service.start('apps/plain.mjs', { flag: false }),
    ]);
  });
  afterAll(async () => {
    await Promise.all([ours.stop(), plain.stop()]);
  });

  test('10,000 requests with budget headers of any bytes: all are answered, nothing fails, nothing grows', async () => {
    const dice = new Dice(1);
    let series = 0;
    for (let round = 0; round < 10; round++) {
      const wires = Array.from({ length: 10 }, () => new Wire(ours.port));
      for (const wire of wires) {
        for (let i = 0; i < 100; i++) {
          const lines = [...oddHeaders(dice), ...(i === 99 ? ['Connection: close'] : [])];
          wire.send(`GET /${dice.below(1_000_000)} HTTP/1.1\r\nHost: a\r\n${lines.join('\r\n')}\r\n\r\n`);
        }
      }
      for (const wire of wires) {
        await wire.ends();
        expect(wire.text.split('HTTP/1.1 200 OK').length - 1).toBe(100);
      }
      const metrics = await ours.until(
        (each) => each.value('time_budget_outcomes_total') === (round + 1) * 1000,
      );
      expect(metrics.value('time_budget_internal_errors_total')).toBe(0);
      if (round === 4) series = metrics.own.length;
      // By the fifth round every label has had its chance; a later one may still fill a series that was empty.
      if (round === 9) expect(metrics.own.length).toBeLessThan(series * 1.2);
    }
    const metrics = await ours.metrics();
    expect(metrics.value('time_budget_offered_total')).toBe(10_000);
    expect(metrics.value('time_budget_header_invalid_total')).toBeGreaterThan(1000);
    expect(ours.child.stderr).toBe('');
  });

  test('500 requests that Node may refuse get the same answers as without us', async () => {
    const seed = 7;
    const play = async (service: Service) => {
      const dice = new Dice(seed);
      const answers: string[] = [];
      for (let round = 0; round < 10; round++) {
        const wires = Array.from({ length: 50 }, () => {
          const lines = ['Connection: close', ...oddHeaders(dice, true)];
          return new Wire(service.port).send(`GET / HTTP/1.1\r\nHost: a\r\n${lines.join('\r\n')}\r\n\r\n`);
        });
        for (const wire of wires) answers.push((await wire.ends()).transcript);
      }
      return answers;
    };
    const [withUs, without] = await Promise.all([play(ours), play(plain)]);
    expect(withUs).toEqual(without);
    expect(new Set(without.map((answer) => answer.slice(0, 12)))).toEqual(
      new Set(['HTTP/1.1 200', 'HTTP/1.1 400']),
    );
  });

  test('200 clients that reset in the middle of a body: each is one cancelled request, and nothing stays open', async () => {
    const before = await ours.metrics();
    const count = 200;
    const wires = Array.from({ length: count }, () =>
      new Wire(ours.port).send('POST /upload HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\nhalf'),
    );
    const offered = before.value('time_budget_outcomes_total') + count;
    // Nothing tells from outside that all of them are being read.
    await new Promise((resolve) => setTimeout(resolve, 100));
    for (const wire of wires) wire.leave('reset');
    const metrics = await ours.until(
      (each) => each.value('time_budget_outcomes_total') >= offered - count / 2,
    );
    expect(metrics.value('time_budget_outcomes_total', { outcome: 'cancelled' })).toBeGreaterThan(0);
    await until(() => wires.every(({ socket }) => socket.closed));
    // Those that were reset before Node had read their head are no requests; all others have ended.
    const after = await ours.until(
      (each) => each.value('time_budget_outcomes_total') === each.value('time_budget_offered_total'),
    );
    expect(after.value('time_budget_cancellations_total')).toBe(
      after.value('time_budget_outcomes_total', { outcome: 'cancelled' }),
    );
    expect(after.value('time_budget_internal_errors_total')).toBe(0);
    expect(ours.child.stderr).toBe('');
  });
});

describe('configuration that is not allowed', () => {
  const folder = mkdtempSync(join(tmpdir(), 'time-budget-'));
  afterAll(() => rmSync(folder, { recursive: true }));
  const file = (name: string, text: string) => {
    const path = join(folder, name);
    writeFileSync(path, text);
    return path;
  };

  test.each([
    [
      'a file that is missing',
      () => join(folder, 'nowhere.yaml'),
      /nowhere\.yaml: cannot be read: .*no such file/i,
    ],
    ['a folder', () => folder, /cannot be read: it is not a regular file/],
    ['no YAML', () => file('broken.yaml', 'version: 1\n  entry: {'), /broken\.yaml: .*line/i],
    ['bytes', () => file('bytes.yaml', '\0\x01\x02'), /bytes\.yaml: is not UTF-8 text/],
    ['a list', () => file('list.yaml', '- 1\n- 2\n'), /list\.yaml: /],
    [
      'an unknown key',
      () => file('key.yaml', 'version: 1\nentry:\n  defualt_ms: 5\n'),
      /key\.yaml: entry: unknown key "defualt_ms", did you mean "default_ms"\?/,
    ],
    [
      'a wrong type',
      () => file('type.yaml', 'version: 1\nentry:\n  default_ms: soon\n'),
      /type\.yaml: entry\.default_ms: "soon" is not allowed/,
    ],
  ])('%s: one line says so, and the service runs without us', async (_name, path, message) => {
    const service = await Service.start('apps/plain.mjs', { env: { TIME_BUDGET_CONFIG: path() } });
    try {
      expect(await (await fetch(service.origin)).text()).toBe('ok');
      const [first, ...rest] = service.child.stderr.trimEnd().split('\n');
      expect(first).toMatch(/^otel-time-budget: /);
      expect(first).toMatch(message);
      expect(rest).toEqual(['otel-time-budget: not started; the service runs without it']);
    } finally {
      await service.stop();
    }
  });

  test.skipIf(process.getuid?.() === 0)('a file that may not be read', async () => {
    const path = file('secret.yaml', 'version: 1\n');
    chmodSync(path, 0);
    const service = await Service.start('apps/plain.mjs', { env: { TIME_BUDGET_CONFIG: path } });
    expect(service.child.stderr).toMatch(/secret\.yaml: cannot be read: .*permission/i);
    await service.stop();
  });
});

describe('a database that goes away', () => {
  test('mid-statement, and comes back: every call has ended, and the metrics add up', async () => {
    const service = await Service.start('apps/equivalence/main.mjs', { env: { PACKAGES: versionsFolder() } });
    try {
      const stage = new Stage(service.child, { incoming: service.port });
      const plays = pgPlays(() => postgres.connection.port);
      const wanted = ['pg: the database goes away and comes back', 'pg: an idle connection is lost'];
      const scenes = Object.fromEntries(Object.entries(plays).filter(([name]) => wanted.includes(name)));
      for (let round = 0; round < 5; round++) await stage.perform(scenes, ` #${round}`);
      for (const [scene, seen] of await stage.seen()) {
        expect(JSON.stringify(seen), scene).not.toMatch(/"failed/);
      }
      const metrics = await service.until((each) => each.value('time_budget_outcomes_total') === 10);
      expect(metrics.value('time_budget_executing')).toBe(0);
      expect(metrics.value('time_budget_calls_total')).toBe(
        metrics.value('time_budget_call_duration_seconds_count'),
      );
      expect(metrics.value('time_budget_internal_errors_total')).toBe(0);
    } finally {
      await service.stop();
    }
  });
});

/** Scenes that reach every hook: each kind of arrival, end, call and error once. */
const KINDS =
  /^(get|post|pipelined|keep-alive|upgrade|100-continue|own storage|patched reply|handler that throws|chunked body|pieces of a body|gone (before|in) the (reply|upload): reset|gone, and the handler writes|express [45]: (route|throws|rejects|sub-app|handlers one after another|client leaves a handler: FIN)|http: (get a text|get with headers as a list|post in pieces|post with its head flushed|a slow name|a connection of its own|an agent of its own|keep-alive, all at once over one socket|refused|reset in the answer|destroyed in the queue|aborted with a reason|upgrade|nobody reads the answer)|fetch: (a text|post a stream|redirects|refused|aborted in the body|a signal that many calls share)|undici [68]: (a pool of one connection|a pool with someone who gives up|errors)|pg: (a client by (promises|callbacks)|a cursor|a transaction|a pool|waiters of a pool|nobody there|an idle connection is lost))$/;

/** What every hook uses. */
const FAULTS = [
  'clock.now',
  'clock.waitMs',
  'clock.idleMs',
  'recorder.enter',
  'recorder.handling',
  'recorder.admit',
  'recorder.cancel',
  'recorder.finish',
  'recorder.handlerEnded',
  'request.handling',
  'request.begin',
  'request.close',
  'calls.target',
  'calls.begin',
  'calls.dispatch',
  'calls.end',
  'call.enter',
  'call.end',
  'carriage.headersFor',
  'carriage.render',
  'series.who',
  'series.dependency',
  'attempts.begin',
  'attempts.head',
];

describe('faults of our own', () => {
  const env = () => ({
    OTEL_SERVICE_NAME: 'service',
    OTEL_METRICS_EXPORTER: 'none',
    PACKAGES: versionsFolder(),
  });
  const MAIN = testFile('apps/equivalence/main.mjs');
  const INJECTOR = new URL('../support/inject-faults.mjs', import.meta.url).href;

  function scenes() {
    const all = { ...INCOMING, ...EXPRESS, ...OUTGOING, ...pgPlays(() => postgres.connection.port) };
    return Object.fromEntries(Object.entries(all).filter(([name]) => KINDS.test(name)));
  }

  async function tell(port: number, target: string): Promise<string> {
    const socket = net.connect(port, '127.0.0.1');
    socket.setEncoding('utf8').write(target);
    return (await socket.toArray()).join('');
  }

  /** Gives how many faults there have been so far, each counted once. */
  async function inject(port: number, target: string): Promise<number> {
    const answer = await tell(port, target);
    const [, thrown, counted] = /^thrown (\d+) counted (\d+)$/.exec(answer) ?? [];
    expect(counted, answer).toBe(thrown);
    return Number(counted);
  }

  const comparable = (seen: unknown) => JSON.stringify(seen).replaceAll(/(?: |%20|\+)(?:#|%23)\d\d/g, '');

  async function playWith(faults: readonly string[]) {
    const child = new Child(['--import', REGISTER, '--import', INJECTOR, MAIN], env());
    try {
      const stage = await Stage.open(child);
      const port = Number(await child.says(/^faults (\d+)$/m));
      const counts: number[] = [];
      for (const [index, fault] of faults.entries()) {
        const before = await inject(port, fault);
        await stage.perform(scenes(), ` #${10 + index}`);
        counts.push((await inject(port, 'none')) - before);
      }
      await stage.perform(scenes(), ' #99');
      expect(await inject(port, 'none')).toBe(counts.reduce((sum, count) => sum + count, 0));
      return { seen: await stage.seen(), counts, stderr: child.stderr };
    } finally {
      await child.stop('SIGKILL');
    }
  }

  test('where the page of metrics fails, its scraper is told, and the service goes on', async () => {
    const service = await Service.start('apps/plain.mjs', { after: [INJECTOR] });
    try {
      await service.metrics();
      const port = Number(await service.child.says(/^faults (\d+)$/m));
      await tell(port, 'offered.cells');
      const page = await fetch(service.page);
      expect([page.status, await page.text()]).toEqual([500, '# injected into offered.cells\n']);
      await tell(port, 'none');
      expect(await (await fetch(service.origin)).text()).toBe('ok');
      expect((await service.metrics()).value('time_budget_offered_total')).toBe(1);
    } finally {
      await service.stop();
    }
  });

  test('whatever of ours throws: the service does what it does without us; each is counted, the first is logged', async () => {
    const half = FAULTS.length / 2;
    const playWithout = async () => {
      const child = new Child([MAIN], env());
      try {
        const stage = await Stage.open(child);
        await stage.perform(scenes(), ' #00');
        return await stage.seen();
      } finally {
        await child.stop('SIGKILL');
      }
    };
    const [expected, ...runs] = await Promise.all([
      playWithout(),
      playWith(FAULTS.slice(0, half)),
      playWith(FAULTS.slice(half)),
    ]);
    for (const { seen, counts, stderr } of runs) {
      expect(seen.size).toBe(expected.size * (half + 1));
      for (const [scene, each] of seen) {
        const without = expected.get(scene.replace(/\d\d$/, '00'));
        expect(comparable(each), scene).toBe(comparable(without));
        expect(comparable(each), scene).not.toContain('"failed');
      }
      for (const count of counts) expect(count).toBeGreaterThan(0);
      expect(stderr.split('otel-time-budget: a hook failed').length - 1).toBe(1);
    }
  }, 120_000);
});
