// A service that gets into one situation that an alert on its process is about, named by PART. `/begin?` has how much
// of it, `/end` ends it. It knows nothing of metrics.
import { closeSync, openSync, readdirSync } from 'node:fs';
import http from 'node:http';
import { getHeapSpaceStatistics } from 'node:v8';
import { watchQueue } from 'otel-time-budget/admission';
import { replay } from 'otel-time-budget/recovery';
import pg from 'pg';

const BLOCK_MS = 5000;
const FREE_MS = 3000;

const parts = {
  // Connections of a pool; while it is there, each request has a statement that holds one.
  pool() {
    let pool;
    return {
      begin(max) {
        pool = new pg.Pool({ ...JSON.parse(process.env.DATABASE), max, connectionTimeoutMillis: 20_000 });
      },
      end: () => (pool = undefined),
      work: () => pool?.query({ text: 'SELECT pg_sleep(0.3)', query_timeout: 20_000 }),
    };
  },

  // What live calls take, ms, while old messages are let run again: from 101 on they have to wait.
  replay() {
    let latencyMs = 20;
    const old = replay('messages', { maxPerSecond: 10, latencyLimitMs: 100, read: () => ({ latencyMs }) });
    setInterval(() => old.tryRelease(), 100);
    return { begin: (ms) => (latencyMs = ms), end: () => (latencyMs = 20) };
  },

  // A queue whose store is gone (1), or counts from 0 again and again (0).
  faults() {
    let isGone = false;
    let entered = 0;
    watchQueue('jobs', () => {
      if (isGone) throw new Error('the store is gone');
      return { depth: 7, entered: entered++ % 3 };
    });
    return { begin: (gone) => (isGone = gone === 1), end: () => (isGone = false) };
  },

  // Blocks of the loop. They leave the processor to the others on this machine.
  loop() {
    const never = new Int32Array(new SharedArrayBuffer(4));
    let left = 0;
    function block() {
      if (left-- <= 0) return;
      Atomics.wait(never, 0, 0, BLOCK_MS);
      setTimeout(block, FREE_MS);
    }
    return {
      begin(count) {
        left = count;
        setTimeout(block, 100);
      },
      end: () => (left = 0),
    };
  },

  // MiB of the heap.
  heap() {
    let held = [];
    const used = () =>
      getHeapSpaceStatistics()
        .filter(({ space_name: name }) => !name.startsWith('new_'))
        .reduce((sum, space) => sum + space.space_used_size, 0);
    return {
      begin(mebibytes) {
        globalThis.gc();
        const missing = mebibytes - used() / 2 ** 20;
        for (let i = 0; i < missing; i++) held.push(new Array(2 ** 17).fill(0));
      },
      end() {
        held = [];
        globalThis.gc();
      },
    };
  },

  // Open files.
  files() {
    const held = [];
    return {
      begin(count) {
        for (let open = readdirSync('/proc/self/fd').length; open < count; open++)
          held.push(openSync('/dev/null'));
      },
      end() {
        for (const file of held.splice(0)) closeSync(file);
      },
    };
  },
};

const { begin, end, work } = parts[process.env.PART]();

// Longer than a block: a connection that is idle so long would be closed before what came on it is read.
const server = http.createServer({ keepAliveTimeout: 60_000 }, async (request, response) => {
  const [path, amount] = request.url.split('?');
  if (path === '/begin') begin(Number(amount));
  else if (path === '/end') end();
  else await work?.();
  response.end();
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
