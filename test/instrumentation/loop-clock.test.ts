import { AsyncLocalStorage } from 'node:async_hooks';
import { spawnSync } from 'node:child_process';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterEach, describe, expect, it } from 'vitest';
import { loopIdleMs, loopWaitMs, watchLoop } from '../../instrumentation/process/loop-clock.ts';

type WatchHooks = Parameters<typeof watchLoop>[0];

let undo = (): void => {};
afterEach(async () => {
  undo();
  // The look that was still armed.
  await nextTurn();
});

/** Hooks that note what was subscribed to and call `onLook` before every look. */
function hooksWith(onLook: () => void, channels: string[] = []): WatchHooks {
  return {
    guard:
      (hook) =>
      (...args) => {
        onLook();
        hook(...args);
      },
    subscribe(channel) {
      channels.push(channel);
      return () => {
        channels.splice(channels.indexOf(channel), 1);
      };
    },
  };
}

/** Runs TypeScript in a process of its own, with the binding imported; gives what it printed. */
function run(code: string): string {
  const url = new URL('../../instrumentation/process/loop-clock.ts', import.meta.url).href;
  const source = `import { loopIdleMs, loopWaitMs, watchLoop } from ${JSON.stringify(url)};
    const hooks = { guard: (hook) => hook, subscribe: () => () => {} };
    const burn = (forMs) => { const until = performance.now() + forMs; while (performance.now() < until); };
    ${code}`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', source], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect(stderr).toBe('');
  expect(status).toBe(0);
  return stdout;
}

describe('watchLoop', () => {
  it('listens for accepted connections until it is undone', () => {
    const channels: string[] = [];
    undo = watchLoop(hooksWith(() => {}, channels));
    expect(channels).toEqual(['net.server.socket']);
    undo();
    expect(channels).toEqual([]);
  });

  it('looks again and again while it is on, and no more after', async () => {
    let looks = 0;
    undo = watchLoop(hooksWith(() => (looks += 1)));
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
    expect(looks).toBeGreaterThanOrEqual(10);
    undo();
    await nextTurn();
    const looksUntilUndone = looks;
    for (let turn = 0; turn < 5; turn += 1) await nextTurn();
    expect(looks).toBe(looksUntilUndone);
  });

  it('holds no request: a look that was armed inside one runs outside', async () => {
    const storage = new AsyncLocalStorage<string>();
    const seen = new Set<string | undefined>();
    storage.run('watching', () => {
      undo = watchLoop(hooksWith(() => seen.add(storage.getStore())));
    });
    await nextTurn();
    for (let turn = 0; turn < 3; turn += 1) {
      storage.run('request', () => loopWaitMs(performance.now()));
      await nextTurn();
    }
    expect([...seen]).toEqual([undefined]);
  });

  it('keeps no process alive and wakes no loop', () => {
    const printed = run(`
      watchLoop(hooks);
      setTimeout(() => {
        const { loopCount } = performance.nodeTiming.uvMetricsInfo;
        console.log(loopCount < 10, process.getActiveResourcesInfo().includes('Immediate'));
      }, 200);`);
    expect(printed).toBe('true false\n');
  });
});

describe('loopWaitMs', () => {
  it('claims nothing before the loop has slept, and what the loop was busy after', () => {
    const printed = run(`
      burn(30);
      console.log(loopIdleMs(performance.now()), loopWaitMs(performance.now()));
      setTimeout(() => {
        console.log(loopIdleMs(performance.now()) > 10, loopWaitMs(performance.now()));
        burn(50);
        const waitMs = loopWaitMs(performance.now());
        console.log(waitMs >= 50, waitMs < 1000);
      }, 50);`);
    expect(printed).toBe('0 0\ntrue 0\ntrue true\n');
  });

  it('measures the loop of its own thread', () => {
    const printed = run(`
      const { isMainThread, Worker } = await import('node:worker_threads');
      new Worker(\`
        import(\${JSON.stringify(${JSON.stringify(new URL('../../instrumentation/process/loop-clock.ts', import.meta.url).href)})})
          .then(({ loopIdleMs, loopWaitMs }) => {
            const first = [loopIdleMs(performance.now()), loopWaitMs(performance.now())];
            setTimeout(() => {
              loopWaitMs(performance.now());
              const until = performance.now() + 50;
              while (performance.now() < until);
              console.log(...first, loopIdleMs(performance.now()) > 10, loopWaitMs(performance.now()) >= 50);
            }, 100);
          });
      \`, { eval: true });
      burn(300);`);
    expect(printed).toMatch(/^\S+ 0 true true\n$/);
  });

  it('stays a number in this process, whatever it did before', () => {
    for (const socket of [undefined, { bytesWritten: 0 }, { bytesWritten: 1 }]) {
      const waitMs = loopWaitMs(performance.now(), socket);
      expect(waitMs).toBeGreaterThanOrEqual(0);
      expect(waitMs).toBeLessThanOrEqual(performance.now());
    }
    expect(loopIdleMs(performance.now())).toBeGreaterThanOrEqual(0);
  });
});
