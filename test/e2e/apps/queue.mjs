// A service with a queue of its own in memory, whose worker lets old messages run again. Messages come over HTTP:
// POST /messages?id=..&lifeMs=..; a broker that delivers one again says so with &redelivered=1.
import http from 'node:http';
import { recordDuplicate, setRepeated, withBudget } from 'otel-time-budget';
import { watchQueue } from 'otel-time-budget/admission';
import { reconcile, recordUnknown, replay } from 'otel-time-budget/recovery';

const { MAX_PER_SECOND } = process.env;

const waiting = [];
const left = { started: 0, expired: 0 };
let entered = 0;
let repeats = 0;
let isThrottled = false;
/** Ids of what has had its effect, and when. */
const done = new Map();
const doneAt = [];

watchQueue('messages', () => ({
  depth: waiting.length,
  oldestAt: waiting[0]?.cameAt,
  entered,
  repeats,
  left,
}));
const drain = replay('messages', {
  maxPerSecond: Number(MAX_PER_SECOND),
  read: () => ({ isThrottled }),
});

async function work({ id, redelivered, acknowledged }) {
  if (redelivered) setRepeated('broker');
  if (done.has(id)) {
    recordDuplicate('recognised', 'prevented');
    return;
  }
  done.set(id, 'effect');
  doneAt.push(performance.now());
  // The effect has happened and its acknowledgement is lost: the broker will deliver it again.
  if (!acknowledged) recordUnknown(id);
}

function next() {
  const head = waiting[0];
  if (head === undefined) return void setTimeout(next, 5);
  if (performance.now() - head.cameAt >= head.lifeMs) {
    waiting.shift();
    left.expired++;
    return next();
  }
  const { isAllowed, waitMs } = drain.tryRelease();
  if (!isAllowed) return void setTimeout(next, Math.min(waitMs, 20));
  waiting.shift();
  left.started++;
  withBudget(1_000, () => work(head), { operation: 'message', workload: 'replay' }).then(next);
}
next();

const server = http.createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, 'http://localhost');
  if (pathname === '/messages') {
    const redelivered = searchParams.has('redelivered');
    entered++;
    if (redelivered) repeats++;
    waiting.push({
      id: searchParams.get('id'),
      cameAt: performance.now(),
      lifeMs: Number(searchParams.get('lifeMs') ?? Infinity),
      redelivered,
      acknowledged: !searchParams.has('unacknowledged'),
    });
  } else if (pathname === '/reconcile') {
    reconcile(searchParams.get('id'), done.has(searchParams.get('id')) ? 'done' : 'not_done');
  } else if (pathname === '/throttle') {
    isThrottled = searchParams.get('on') === '1';
  }
  response.end(JSON.stringify({ effects: done.size, doneAt, depth: waiting.length }));
});
server.listen(0, '127.0.0.1', () => console.log(`listening on ${server.address().port}`));
