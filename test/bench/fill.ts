/** Makes the series that a service of some size has, through the recorder that `register` started. */

export interface SeriesShape {
  readonly operations: number;
  readonly callers: number;
  readonly dependencies: number;
}

/** The modules that the running product uses, not copies: the current scope is theirs. */
const DIST = '../../dist/src';

/** One request of each caller to each operation, with one call to each dependency. */
export async function fillSeries({ operations, callers, dependencies }: SeriesShape): Promise<void> {
  // Built by `npm run bench` before; the compiler sees the sources they are made of.
  const { activeRecorder } = (await import(`${DIST}/active.js`)) as typeof import('../../src/active.ts');
  const { runInScope } = (await import(`${DIST}/current.js`)) as typeof import('../../src/current.ts');
  const recorder = activeRecorder();
  if (recorder === undefined) throw new Error('no recorder is active: was register loaded?');
  const targets = Array.from({ length: dependencies }, (_, i) =>
    recorder.calls.target(`dependency-${i}`, undefined, 'http'),
  );
  for (let caller = 0; caller < callers; caller++) {
    for (let operation = 0; operation < operations; operation++) {
      const now = performance.now();
      const headers = { 'time-budget': `remaining=1000, attempt=1, caller=caller-${caller}` };
      const facts = { headers, remoteAddress: '127.0.0.1', method: 'GET', path: '/' };
      const request = recorder.enter(facts, now);
      recorder.handling(request, `GET /operation-${operation}/:id`, now);
      runInScope(request, () => {
        for (const target of targets) {
          const call = recorder.calls.begin(target, now);
          call.enter('pool_wait', now);
          call.enter('connect', now + 1);
          call.enter('request', now + 2);
          call.enter('response', now + 3);
          recorder.calls.end(call, 'answered', now + 4);
        }
      });
      recorder.finish(request, { completed: true, status: 200 }, now + 5);
    }
  }
}
