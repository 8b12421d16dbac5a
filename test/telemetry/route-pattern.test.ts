import { describe, expect, test } from 'vitest';
import { compileRoutes, isPathPattern } from '../../src/telemetry/route-pattern.ts';

describe('patterns', () => {
  test.each([
    '/',
    '/items',
    '/items/',
    '/items/:id',
    '/a/:b/c',
    '/*',
    '/a/*',
    '/a.b_c-d~',
    `/${'x'.repeat(511)}`,
  ])('%s', (text) => {
    expect(isPathPattern(text)).toBe(true);
  });

  test.each([
    ...['', 'items', '/items?x', '/a#b', '/a b', '/a\nb', '/:', '/:1', '/:a-b', '/a:b', '/*/a', '/a*', '/**'],
    `/${'x'.repeat(512)}`,
  ])('%j is refused', (text) => {
    expect(isPathPattern(text)).toBe(false);
  });
});

describe('lookup', () => {
  const operation = compileRoutes([
    { method: 'GET', path: '/items/new', operation: 'new' },
    { method: 'GET', path: '/items/:id', operation: 'one' },
    { path: '/items/:id/parts/:part', operation: 'part' },
    { path: '/files/*', operation: 'file' },
    { path: '/', operation: 'root' },
  ]);

  test.each([
    ['GET', '/items/new', 'new'],
    ['GET', '/items/7', 'one'],
    ['GET', '/items/7/', 'one'],
    ['GET', '/items/7?a=/b/c', 'one'],
    ['GET', '/items/%2F', 'one'],
    ['POST', '/items/7', undefined],
    ['get', '/items/7', undefined],
    ['GET', '/items/', undefined],
    ['GET', '/items//', undefined],
    ['GET', '/Items/7', undefined],
    ['GET', '/items/7/8', undefined],
    ['DELETE', '/items/7/parts/8', 'part'],
    ['GET', '/items//parts/8', undefined],
    ['GET', '/files/a', 'file'],
    ['GET', '/files/a/b', 'file'],
    ['GET', '/files', undefined],
    ['GET', '/', 'root'],
    ['GET', '/?x', 'root'],
    ['GET', '', undefined],
    ['OPTIONS', '*', undefined],
    ['GET', 'http://a/items/7', undefined],
  ])('%s %s is %s', (method, path, expected) => {
    expect(operation(method, path)).toBe(expected);
  });

  test('the first match holds', () => {
    const first = compileRoutes([
      { path: '/:a', operation: 'a' },
      { path: '/b', operation: 'b' },
    ]);
    expect(first('GET', '/b')).toBe('a');
  });

  test('/* is everything', () => {
    const all = compileRoutes([{ path: '/*', operation: 'all' }]);
    for (const path of ['/', '/a', '/a/b/']) expect(all('GET', path)).toBe('all');
  });

  test('a path is looked at up to 4096 characters', () => {
    const all = compileRoutes([{ path: '/*', operation: 'all' }]);
    expect(all('GET', `/${'x'.repeat(4095)}`)).toBe('all');
    expect(all('GET', `/${'x'.repeat(4096)}`)).toBeUndefined();
  });
});
