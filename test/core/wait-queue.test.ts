import { describe, expect, test } from 'vitest';
import type { Priority } from '../../src/core/terms.ts';
import { type Waiting, WaitQueue } from '../../src/core/wait-queue.ts';

interface Item extends Waiting {
  readonly id: string;
}

function item(id: string, priority: Priority = 'unset', enteredAt = 0, dueAt = Infinity): Item {
  return { id, priority, enteredAt, dueAt };
}

function drain(queue: WaitQueue<Item>): string[] {
  const ids: string[] = [];
  for (let next = queue.shift(); next !== undefined; next = queue.shift()) ids.push(next.id);
  return ids;
}

describe('WaitQueue', () => {
  test('L-11: the highest class first, in each the order of arrival; what nobody set ranks with normal', () => {
    const queue = new WaitQueue<Item>(10);
    const order: [string, Priority][] = [
      ['a', 'low'],
      ['b', 'unset'],
      ['c', 'normal'],
      ['d', 'critical'],
      ['e', 'critical'],
      ['f', 'low'],
    ];
    for (const [id, priority] of order) expect(queue.push(item(id, priority))).toBe(true);
    expect(drain(queue)).toEqual(['d', 'e', 'b', 'c', 'a', 'f']);
  });

  test('S-19: full, the last of a lower class is replaced, and an equal one is not', () => {
    const queue = new WaitQueue<Item>(2);
    queue.push(item('low 1', 'low'));
    queue.push(item('low 2', 'low'));
    expect(queue.push(item('low 3', 'low'))).toBe(false);
    expect(queue.push(item('unset'))).toMatchObject({ id: 'low 2' });
    expect(queue.push(item('normal', 'normal'))).toMatchObject({ id: 'low 1' });
    expect(queue.push(item('unset 2'))).toBe(false);
    expect(drain(queue)).toEqual(['unset', 'normal']);
  });

  test('a size of 0 takes nobody, a size of 1 one', () => {
    expect(new WaitQueue<Item>(0).push(item('a', 'critical'))).toBe(false);
    const queue = new WaitQueue<Item>(1);
    expect([queue.push(item('a')), queue.push(item('b')), queue.depth]).toEqual([true, false, 1]);
  });

  test('what is due is taken out at its instant and not before', () => {
    const queue = new WaitQueue<Item>(3);
    queue.push(item('a', 'unset', 0, 20));
    queue.push(item('b', 'critical', 0, 10));
    queue.push(item('c'));
    expect(queue.nextDueAt()).toBe(10);
    expect(queue.takeDue(9.99)).toEqual([]);
    expect(queue.takeDue(10).map(({ id }) => id)).toEqual(['b']);
    expect(queue.takeDue(1e9).map(({ id }) => id)).toEqual(['a']);
    expect([queue.nextDueAt(), queue.depth]).toEqual([Infinity, 1]);
  });

  test('whoever comes or goes looks at nobody else, however many wait', () => {
    let looks = 0;
    class Watched implements Item {
      readonly id = '';
      readonly enteredAt = 0;
      readonly dueAt = Infinity;
      readonly #priority: Priority;
      constructor(priority: Priority) {
        this.#priority = priority;
      }
      get priority(): Priority {
        looks++;
        return this.#priority;
      }
    }
    const queue = new WaitQueue<Item>(2_000);
    const waiting = Array.from({ length: 2_000 }, (_, i) => new Watched(i % 2 === 0 ? 'low' : 'normal'));
    for (const each of waiting) queue.push(each);
    expect(queue.push(new Watched('critical'))).toBe(waiting[1_998]);
    for (const each of waiting.toReversed()) queue.remove(each);
    expect(looks).toBeLessThanOrEqual(2 * 2_001);
    expect(queue.depth).toBe(1);
  });

  test('one that leaves from the middle, from either end, and what has left is not in there', () => {
    const queue = new WaitQueue<Item>(9);
    const items = ['a', 'b', 'c', 'd', 'e'].map((id) => item(id));
    for (const each of items) queue.push(each);
    const [a, , c, , e] = items;
    for (const each of [c, a, e]) expect(each && queue.remove(each)).toBe(true);
    expect(c && queue.remove(c)).toBe(false);
    queue.push(item('f'));
    expect(drain(queue)).toEqual(['b', 'd', 'f']);
    expect([queue.depth, queue.shift(), queue.oldestAt('unset')]).toEqual([0, undefined, undefined]);
  });

  test('L-13: the oldest of each class', () => {
    const queue = new WaitQueue<Item>(3);
    queue.push(item('a', 'low', 1));
    queue.push(item('b', 'low', 2));
    queue.push(item('c', 'critical', 3));
    expect([queue.oldestAt('low'), queue.oldestAt('critical'), queue.oldestAt('normal')]).toEqual([
      1,
      3,
      undefined,
    ]);
    queue.remove(item('stranger'));
    expect(queue.depth).toBe(3);
  });
});
