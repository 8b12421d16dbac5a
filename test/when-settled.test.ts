/** What work may give beside a value and a promise: nothing of it is begun by us, begun twice, or changed. */
import { describe, expect, test } from 'vitest';
import { withBudget } from '../src/index.ts';
import { whenSettled } from '../src/when-settled.ts';

const THEN = 'then';

/** Runs anew with each `then`, as the queries of knex and drizzle do. */
class Query {
  runs = 0;
  readonly error: Error | undefined;
  constructor(error?: Error) {
    this.error = error;
  }
}
Reflect.defineProperty(Query.prototype, THEN, {
  configurable: true,
  writable: true,
  value(this: Query, onFulfilled: () => void, onRejected: () => void) {
    this.runs += 1;
    const { runs, error } = this;
    return (error === undefined ? Promise.resolve(runs) : Promise.reject(error)).then(
      onFulfilled,
      onRejected,
    );
  },
});

function watched<T>(value: T) {
  const ends: (readonly [boolean, unknown?])[] = [];
  return {
    ends,
    value: whenSettled(
      () => value,
      (...end) => ends.push(end),
    ),
  };
}

async function settled(value: unknown): Promise<unknown> {
  return value;
}

describe('a query that runs with each `then`', () => {
  test('comes back as it is, runs once for one await, and is told as ended then', async () => {
    const query = new Query();
    const { ends, value } = watched(query);
    expect(value).toBe(query);
    await settled(undefined);
    expect({ runs: query.runs, ends }).toEqual({ runs: 0, ends: [] });
    expect(await settled(value)).toBe(1);
    expect(ends).toEqual([[false, undefined]]);
    expect(Object.getOwnPropertyNames(query)).not.toContain(THEN);
    expect(await settled(value)).toBe(2);
    expect(ends).toHaveLength(1);
  });

  test('gives its error to whoever awaits it', async () => {
    const error = new Error('constraint');
    const { ends, value } = watched(new Query(error));
    await expect(settled(value)).rejects.toBe(error);
    expect(ends).toEqual([[true, error]]);
  });

  test('runs once in two budgets', async () => {
    const query = new Query();
    await settled(withBudget(1_000, () => withBudget(500, () => query)));
    expect(query.runs).toBe(1);
  });

  test('that nothing can be put on is told at once, and runs once', async () => {
    const query = { runs: 0 };
    const frozen = Object.freeze(
      Object.setPrototypeOf(
        { inner: query },
        {
          [THEN](onFulfilled: (value: string) => void) {
            query.runs += 1;
            onFulfilled('rows');
          },
        },
      ),
    );
    const { ends, value } = watched(frozen);
    expect(ends).toEqual([[false]]);
    expect(await settled(value)).toBe('rows');
    expect(query.runs).toBe(1);
  });
});

describe('odd ones', () => {
  test('a `then` that cannot be read, or throws, is the caller’s to meet', async () => {
    const error = new Error('no');
    const unreadable = Object.defineProperty({}, THEN, {
      get() {
        throw error;
      },
    });
    expect(watched(unreadable)).toMatchObject({ ends: [[false]] });
    const throwing = Object.defineProperty({}, THEN, {
      configurable: true,
      value() {
        throw error;
      },
    });
    const { ends, value } = watched(throwing);
    expect(ends).toEqual([]);
    await expect(settled(value)).rejects.toBe(error);
    expect(ends).toEqual([[true, error]]);
  });

  test('a promise of a class of its own comes back as it is and is told without anybody’s `then`', async () => {
    class Own extends Promise<number> {}
    const own = Own.resolve(1);
    const { ends, value } = watched(own);
    expect(value).toBe(own);
    await settled(undefined);
    await settled(undefined);
    expect(ends).toEqual([[false]]);
  });
});
