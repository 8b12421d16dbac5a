import { InstrumentationBase, isWrapped } from '@opentelemetry/instrumentation';
import { describe, expect, test } from 'vitest';
import { isClaimed, wrapMethods } from '../../instrumentation/shared/plain-wrap.ts';

class Library {
  log: string[] = [];
  work(what: string): string {
    this.log.push(what);
    return what.toUpperCase();
  }
}

function fresh() {
  return class extends Library {
    override work(what: string): string {
      return super.work(what);
    }
  };
}

/** As OpenTelemetry patches a method: its own wrapper, on top or in place of one that it finds. */
class Theirs extends InstrumentationBase {
  init() {
    return [];
  }
  patch(prototype: { work(what: string): string }): void {
    if (isWrapped(prototype.work)) this._unwrap(prototype, 'work');
    this._wrap(prototype, 'work', (original) => {
      return function (this: Library, what: string) {
        this.log.push('theirs');
        return original.call(this, what);
      };
    });
  }
  unpatch(prototype: { work(what: string): string }): void {
    if (isWrapped(prototype.work)) this._unwrap(prototype, 'work');
  }
}

function wrapOurs(prototype: object, name = 'ours') {
  return wrapMethods(prototype, {
    around: {
      work(self, args, inner) {
        (self as Library).log.push(name);
        return inner.apply(self, args);
      },
    },
  });
}

function run(Type: new () => Library): string[] {
  const library = new Type();
  expect(library.work('a')).toBe('A');
  return library.log;
}

describe('wrapMethods', () => {
  test('runs around the method and can be taken off', () => {
    const Type = fresh();
    const before = Object.getOwnPropertyDescriptor(Type.prototype, 'work');
    const undo = wrapOurs(Type.prototype);
    expect(run(Type)).toEqual(['ours', 'a']);
    expect(Type.prototype.work.name).toBe('work');
    expect(Type.prototype.work.length).toBe(1);
    undo();
    expect(Object.getOwnPropertyDescriptor(Type.prototype, 'work')).toEqual(before);
  });

  test('runs before a method, which gets its object and all its arguments, and can be taken off', () => {
    const log: unknown[] = [];
    class Counting {
      count(...args: unknown[]): number {
        log.push(this, ...args);
        return args.length;
      }
    }
    const undo = wrapMethods(Counting.prototype, {
      before: { count: (self, first) => log.push('ours', self, first) },
    });
    expect(Counting.prototype.count.name).toBe('count');
    expect(Counting.prototype.count.length).toBe(0);
    const counting = new Counting();
    expect(counting.count('a', 'b', 'c')).toBe(3);
    expect(log.splice(0)).toEqual(['ours', counting, 'a', counting, 'a', 'b', 'c']);
    expect(counting.count()).toBe(0);
    expect(log.splice(0)).toEqual(['ours', counting, undefined, counting]);
    expect(Reflect.apply(counting.count, undefined, ['a'])).toBe(1);
    expect(log.splice(0)).toEqual([undefined, 'a']);
    undo();
    expect(counting.count('a')).toBe(1);
    expect(log).toEqual([counting, 'a']);
  });

  test('runs after a method that has returned, which gets its object and all its arguments, and can be taken off', () => {
    const log: unknown[] = [];
    class Counting {
      count(...args: unknown[]): number {
        if (args.length === 0) throw new TypeError('nothing to count');
        log.push(this, ...args);
        return args.length;
      }
    }
    const undo = wrapMethods(Counting.prototype, {
      after: { count: (self, result, first, second) => log.push('ours', self, result, first, second) },
    });
    const counting = new Counting();
    expect(counting.count('a', 'b', 'c')).toBe(3);
    expect(log.splice(0)).toEqual([counting, 'a', 'b', 'c', 'ours', counting, 3, 'a', 'b']);
    expect(() => counting.count()).toThrow('nothing to count');
    expect(Reflect.apply(counting.count, undefined, ['a'])).toBe(1);
    expect(log.splice(0)).toEqual([undefined, 'a']);
    undo();
    expect(counting.count('a')).toBe(1);
    expect(log).toEqual([counting, 'a']);
  });

  test('J5: a second one finds it claimed, and its undo takes nothing off', () => {
    const Type = fresh();
    const undo = wrapOurs(Type.prototype);
    const undoSecond = wrapOurs(Type.prototype, 'second');
    expect(run(Type)).toEqual(['ours', 'a']);
    undoSecond();
    expect(run(Type)).toEqual(['ours', 'a']);
    undo();
    wrapOurs(Type.prototype, 'third');
    expect(run(Type)).toEqual(['third', 'a']);
  });

  test('a class is claimed through what it extends', () => {
    const Type = fresh();
    class Extended extends Type {}
    expect(isClaimed(Extended.prototype)).toBe(false);
    const undo = wrapOurs(Type.prototype);
    expect(isClaimed(Extended.prototype)).toBe(true);
    undo();
    expect(isClaimed(Extended.prototype)).toBe(false);
    expect(isClaimed(undefined)).toBe(false);
  });

  test('a method that is not there is not made', () => {
    const Type = fresh();
    wrapMethods(Type.prototype, { around: { other: () => 'made' } });
    expect('other' in Type.prototype).toBe(false);
  });

  test('without its object a method fails as the library’s own does', () => {
    const Type = fresh();
    wrapOurs(Type.prototype);
    const { work } = Type.prototype;
    expect(() => Reflect.apply(work, undefined, ['a'])).toThrow(TypeError);
  });

  test('theirs before ours and again after: once each, ours inside', () => {
    const Type = fresh();
    const theirs = new Theirs('theirs', '1', {});
    theirs.patch(Type.prototype);
    wrapOurs(Type.prototype);
    theirs.patch(Type.prototype);
    expect(run(Type)).toEqual(['theirs', 'ours', 'a']);
  });

  test('theirs twice before ours: once each, ours outside', () => {
    const Type = fresh();
    const theirs = new Theirs('theirs', '1', {});
    theirs.patch(Type.prototype);
    theirs.patch(Type.prototype);
    wrapOurs(Type.prototype);
    expect(run(Type)).toEqual(['ours', 'theirs', 'a']);
  });

  test('theirs can be switched off and on under ours', () => {
    const Type = fresh();
    const theirs = new Theirs('theirs', '1', {});
    theirs.patch(Type.prototype);
    wrapOurs(Type.prototype);
    theirs.unpatch(Type.prototype);
    expect(run(Type)).toEqual(['ours', 'a']);
    theirs.patch(Type.prototype);
    expect(run(Type)).toEqual(['theirs', 'ours', 'a']);
    theirs.unpatch(Type.prototype);
    expect(run(Type)).toEqual(['ours', 'a']);
  });

  test('taken off under theirs, it does nothing any more', () => {
    const Type = fresh();
    const undo = wrapOurs(Type.prototype);
    new Theirs('theirs', '1', {}).patch(Type.prototype);
    expect(run(Type)).toEqual(['theirs', 'ours', 'a']);
    undo();
    expect(run(Type)).toEqual(['theirs', 'a']);
  });
});
