import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { failureOf } from '../../src/core/attempt-failure.ts';
import {
  type Attempt,
  attemptOutside,
  type CallIdentity,
  MAX_OPERATIONS,
  Operations,
} from '../../src/core/operations.ts';

const ITEM: CallIdentity = { origin: 'stock', method: 'GET', path: '/items/1' };
const UNAVAILABLE = failureOf('answered', 503, true);
const REFUSED = failureOf('failed', undefined, false);
const LOST = failureOf('failed', undefined, true);

/** Begins and fails one after the other. */
function failing(operations: Operations, failures: readonly (typeof UNAVAILABLE)[]): Attempt[] {
  return failures.map((failure, index) => {
    const attempt = operations.begin(ITEM, undefined, index * 100);
    operations.end(attempt, failure, index * 100 + 30);
    return attempt;
  });
}

const ASKED = { owner: 'service', permitted: 4 } as const;

describe('what is detected', () => {
  test('R-02: three attempts are the original and two repeats', () => {
    const attempts = failing(new Operations(), [UNAVAILABLE, UNAVAILABLE, UNAVAILABLE]);
    expect(attempts.map(({ kind, ordinal, source, owner }) => [kind, ordinal, source, owner])).toEqual([
      ['original', 1, undefined, 'none'],
      ['reexecute', 2, 'detected', 'unknown'],
      ['reexecute', 3, 'detected', 'unknown'],
    ]);
    expect(attempts.map(({ reason, waitMs }) => [reason, waitMs])).toEqual([
      [undefined, undefined],
      ['error_answer', 70],
      ['error_answer', 70],
    ]);
  });

  test('T-27: a repeat that somebody asked for is theirs and declared; a call that is no repeat is nobody’s', () => {
    const operations = new Operations();
    const first = operations.begin(ITEM, undefined, 0, ASKED);
    expect(first).toMatchObject({ kind: 'original', owner: 'none', source: undefined });
    operations.end(first, UNAVAILABLE, 10);
    const second = operations.begin(ITEM, undefined, 20, ASKED);
    expect(second).toMatchObject({
      kind: 'reexecute',
      owner: 'service',
      source: 'declared',
      ordinal: 2,
      permitted: 4,
    });
    operations.end(second, UNAVAILABLE, 30);
    // What a library says of its own attempt comes first.
    const declared = operations.begin(ITEM, { owner: 'got', attempt: 3 }, 40, ASKED);
    expect(declared).toMatchObject({ owner: 'got', source: 'declared', ordinal: 3 });
  });

  test('after a success the same call is a new original', () => {
    const operations = new Operations();
    failing(operations, [UNAVAILABLE, undefined]);
    expect(operations.size).toBe(0);
    expect(operations.begin(ITEM, undefined, 900)).toMatchObject({ kind: 'original', ordinal: 1 });
  });

  test('while one is in flight another is its own, whatever comes of it', () => {
    const operations = new Operations();
    const one = operations.begin(ITEM, undefined, 0);
    const two = operations.begin(ITEM, undefined, 0);
    expect(two).toMatchObject({ kind: 'original', ordinal: 1 });
    operations.end(one, UNAVAILABLE, 10);
    expect(operations.begin(ITEM, undefined, 20)).toMatchObject({ kind: 'original', ordinal: 1 });
  });

  test('when the last of several has failed, the next call is its next attempt', () => {
    const operations = new Operations();
    const one = operations.begin(ITEM, undefined, 0);
    const two = operations.begin(ITEM, undefined, 0);
    operations.end(one, UNAVAILABLE, 10);
    operations.end(two, UNAVAILABLE, 20);
    expect(operations.begin(ITEM, undefined, 25)).toMatchObject({ kind: 'reexecute', ordinal: 2, waitMs: 5 });
  });

  test('the loser of a race says nothing: neither failure nor success', () => {
    const operations = new Operations();
    const attempt = operations.begin(ITEM, undefined, 0);
    operations.end(attempt, 'ignored', 10);
    expect(operations.size).toBe(0);
    expect(operations.begin(ITEM, undefined, 20).kind).toBe('original');
  });

  test('a repeat that loses a race takes the failure before it along', () => {
    const operations = new Operations();
    failing(operations, [UNAVAILABLE]);
    operations.end(operations.begin(ITEM, undefined, 100), 'ignored', 110);
    expect(operations.size).toBe(0);
  });

  test.each([
    ['another item', { ...ITEM, path: '/items/2' }],
    ['another query', { ...ITEM, path: '/items/1?page=2' }],
    ['another method', { ...ITEM, method: 'PUT' }],
    ['another dependency', { ...ITEM, origin: 'price' }],
    ['another length of the body', { ...ITEM, size: 12 }],
    ['another idempotency key', { ...ITEM, key: 'b' }],
  ])('a loop over different items is no repeat: %s', (_, other) => {
    const operations = new Operations();
    failing(operations, [UNAVAILABLE]);
    expect(operations.begin(other, undefined, 500)).toMatchObject({ kind: 'original', ordinal: 1 });
    expect(operations.begin({ ...ITEM }, undefined, 500)).toMatchObject({ kind: 'reexecute', ordinal: 2 });
  });
});

describe('S-13: what kind of repeat', () => {
  test('T-30: a reconnect has the ordinal of the attempt that was never sent', () => {
    const attempts = failing(new Operations(), [REFUSED, REFUSED, UNAVAILABLE, REFUSED, undefined]);
    expect(attempts.map(({ kind, ordinal, triesBefore }) => [kind, ordinal, triesBefore])).toEqual([
      ['original', 1, 0],
      ['reconnect', 1, 1],
      ['reconnect', 1, 2],
      ['reexecute', 2, 3],
      ['reconnect', 2, 4],
    ]);
  });

  test('sent and never answered: resend', () => {
    expect(failing(new Operations(), [LOST, undefined])[1]).toMatchObject({
      kind: 'resend',
      reason: 'no_answer',
    });
  });

  test.each([
    ['answered', 200, true, undefined, undefined],
    ['answered', undefined, true, undefined, undefined],
    ['answered', 407, true, undefined, undefined],
    ['answered', 408, true, 'error_answer', 'reexecute'],
    ['answered', 409, true, undefined, undefined],
    ['answered', 428, true, undefined, undefined],
    ['answered', 429, true, 'throttled', 'reexecute'],
    ['answered', 430, true, undefined, undefined],
    ['answered', 499, true, undefined, undefined],
    ['answered', 500, true, 'error_answer', 'reexecute'],
    ['timed_out', undefined, true, 'timed_out', 'resend'],
    ['timed_out', undefined, false, 'timed_out', 'reconnect'],
    ['timed_out', 200, true, 'timed_out', 'reexecute'],
    ['aborted', undefined, true, 'aborted', 'resend'],
    ['failed', undefined, false, 'not_sent', 'reconnect'],
    ['failed', undefined, true, 'no_answer', 'resend'],
    ['failed', 200, true, 'broken_answer', 'reexecute'],
    ['failed', 503, true, 'error_answer', 'reexecute'],
  ] as const)('%s, status %s, sent %s: %s, then %s', (ending, status, wasSent, reason, next) => {
    expect(failureOf(ending, status, wasSent)).toEqual(reason === undefined ? undefined : { reason, next });
  });
});

describe('what is declared comes first', () => {
  test('a repeat, with its owner; kind, reason and ordinal are from what was seen', () => {
    const operations = new Operations();
    failing(operations, [REFUSED, UNAVAILABLE]);
    expect(operations.begin(ITEM, { owner: 'got', attempt: 3 }, 200)).toMatchObject({
      kind: 'reexecute',
      owner: 'got',
      source: 'declared',
      // The library counts the connection that was refused as an attempt; the dependency saw one.
      ordinal: 2,
      triesBefore: 2,
      waitMs: 70,
    });
  });

  test('a first attempt is an original, although one like it has failed', () => {
    const operations = new Operations();
    failing(operations, [UNAVAILABLE]);
    expect(operations.begin(ITEM, { owner: 'aws_sdk', attempt: 1 }, 200)).toMatchObject({
      kind: 'original',
      source: undefined,
      ordinal: 1,
    });
  });

  test('a repeat is one while another is in flight, and without any that was seen', () => {
    const operations = new Operations();
    operations.begin(ITEM, undefined, 0);
    const declared = { kind: 'resend', owner: 'undici', source: 'declared', ordinal: 3, triesBefore: 2 };
    expect(operations.begin(ITEM, { owner: 'undici', attempt: 3 }, 5)).toMatchObject(declared);
    expect(attemptOutside({ owner: 'undici', attempt: 3 }, 5)).toMatchObject(declared);
    expect(attemptOutside(undefined, 5)).toMatchObject({ kind: 'original', ordinal: 1 });
  });
});

describe('bounded', () => {
  test('the oldest that failed is forgotten, never one in flight', () => {
    const operations = new Operations();
    const inFlight = operations.begin({ ...ITEM, path: '/open' }, undefined, 0);
    for (let i = 1; i < MAX_OPERATIONS; i++) {
      operations.end(operations.begin({ ...ITEM, path: `/${i}` }, undefined, i), UNAVAILABLE, i);
    }
    expect(operations.size).toBe(16);
    expect(operations.begin({ ...ITEM, path: '/1' }, undefined, 20).ordinal).toBe(2);
    operations.begin({ ...ITEM, path: '/new' }, undefined, 21);
    expect(operations.size).toBe(16);
    expect(operations.begin({ ...ITEM, path: '/2' }, undefined, 22).ordinal).toBe(1);
    operations.end(inFlight, UNAVAILABLE, 23);
    expect(operations.begin({ ...ITEM, path: '/open' }, undefined, 24).ordinal).toBe(2);
  });

  test('with all in flight the next one is an original, and its end does no harm', () => {
    const operations = new Operations();
    for (let i = 0; i < MAX_OPERATIONS; i++) operations.begin({ ...ITEM, path: `/${i}` }, undefined, i);
    const over = operations.begin(ITEM, undefined, 20);
    expect(over.operation).toBeUndefined();
    operations.end(over, UNAVAILABLE, 21);
    expect(operations.begin(ITEM, undefined, 22)).toMatchObject({ kind: 'original', ordinal: 1 });
    expect(operations.size).toBe(16);
  });

  test('I13: over any order of begins and ends nothing stays open, and every try is counted once', () => {
    const step = fc.record({
      path: fc.nat(30),
      failure: fc.constantFrom(UNAVAILABLE, REFUSED, undefined, 'ignored' as const),
      ends: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const operations = new Operations();
        const open: [Attempt, (typeof steps)[number]['failure']][] = [];
        for (const [at, { path, failure, ends }] of steps.entries()) {
          const attempt = operations.begin({ ...ITEM, path: `/${path}` }, undefined, at);
          expect(attempt.ordinal).toBeGreaterThanOrEqual(1);
          expect(attempt.ordinal).toBeLessThanOrEqual(attempt.triesBefore + 1);
          expect(attempt.source === undefined).toBe(attempt.kind === 'original');
          if (ends) operations.end(attempt, failure, at);
          else open.push([attempt, failure]);
          expect(operations.size).toBeLessThanOrEqual(MAX_OPERATIONS);
        }
        for (const [attempt] of open) operations.end(attempt, undefined, 1_000);
        // What is left has failed last; a call of each is a repeat of an ordinal that follows.
        for (let path = 0; path <= 30; path++) {
          operations.end(operations.begin({ ...ITEM, path: `/${path}` }, undefined, 2_000), undefined, 2_001);
        }
        expect(operations.size).toBe(0);
      }),
    );
  });
});
