import { describe, expect, test } from 'vitest';
import { compileHosts, MAX_CACHED_HOSTS, parseHostPattern } from '../../src/telemetry/host-pattern.ts';

function table(entries: Record<string, string>): ReturnType<typeof compileHosts<string>> {
  return compileHosts(
    Object.entries(entries).map(([text, value]) => [parseHostPattern(text), value] as const),
  );
}

describe('patterns', () => {
  test.each([
    ['orders', 'orders', undefined],
    ['Orders.Internal', 'orders.internal', undefined],
    ['orders.internal.', 'orders.internal', undefined],
    ['my_db-1', 'my_db-1', undefined],
    ['127.0.0.1:4001', '127.0.0.1', 4001],
    ['a:1', 'a', 1],
    ['a:65535', 'a', 65_535],
    ['::1', '::1', undefined],
    ['[::1]', '::1', undefined],
    ['[FE80::1]:80', 'fe80::1', 80],
    ['postgresql/Orders', 'postgresql/Orders', undefined],
    ['x'.repeat(253), 'x'.repeat(253), undefined],
  ])('%s', (text, host, port) => {
    expect(parseHostPattern(text)).toEqual({ kind: 'host', host, port });
  });

  test('*.suffix', () => {
    expect(parseHostPattern('*.SVC.cluster.local')).toEqual({ kind: 'suffix', suffix: 'svc.cluster.local' });
  });

  test.each([
    ...[
      '',
      ' ',
      'a b',
      '.a',
      '-a',
      'a:',
      'a:0',
      'a:65536',
      'a:1x',
      'a:-1',
      ':80',
      '[::1',
      '[::1]:',
      '[::1]x',
      '[a]:1',
    ],
    ...[
      '*',
      '*.',
      '*.a:80',
      'a.*',
      '**.a',
      'http://a',
      'a/b/c',
      'Postgresql/a',
      '/a',
      'postgresql/',
      'ö.example',
    ],
    ...['postgresql/a b', 'x'.repeat(254), `postgresql/${'x'.repeat(129)}`, 'a\nb'],
  ])('%j is refused', (text) => {
    expect(parseHostPattern(text).kind).toBe('invalid');
  });
});

describe('lookup', () => {
  test('host:port before host before the longest suffix', () => {
    const find = table({
      'a.b.c:1': 'port',
      'a.b.c': 'host',
      '*.c': 'short',
      '*.b.c': 'long',
      'x.b.c:1': 'x',
    });
    expect(find('a.b.c', 1)).toBe('port');
    expect(find('a.b.c', 2)).toBe('host');
    expect(find('a.b.c', undefined)).toBe('host');
    expect(find('z.b.c', 1)).toBe('long');
    expect(find('q.z.b.c', 1)).toBe('long');
    expect(find('z.c', 1)).toBe('short');
    expect(find('b.c', 1)).toBe('short');
    expect(find('c', 1)).toBeUndefined();
    expect(find('bc', 1)).toBeUndefined();
    expect(find('x.b.c', 1)).toBe('x');
    expect(find('x.b.c', 2)).toBe('long');
    expect(find('d', 1)).toBeUndefined();
  });

  test('the order of patterns does not matter, except between equal ones', () => {
    const find = table({ '*.b.c': 'long', 'a.b.c': 'host', '*.c': 'short', 'A.B.C': 'again' });
    expect(find('a.b.c', 1)).toBe('host');
    expect(find('z.b.c', 1)).toBe('long');
  });

  test('letter case, the final dot and brackets do not matter for hosts, case matters for names', () => {
    const find = table({ 'orders.internal': 'o', '[::1]:5': 'six', 'postgresql/Orders': 'db' });
    for (const host of ['orders.internal', 'ORDERS.internal', 'orders.internal.']) {
      expect(find(host, 80)).toBe('o');
      expect(find(host, 80)).toBe('o');
    }
    expect(find('::1', 5)).toBe('six');
    expect(find('[::1]', 5)).toBe('six');
    expect(find('[::1]', 6)).toBeUndefined();
    expect(find('postgresql/Orders', undefined)).toBe('db');
    expect(find('postgresql/orders', undefined)).toBeUndefined();
  });

  test('a suffix needs a label, and is not for names', () => {
    const find = table({ '*.example': 's' });
    expect(find('.example', 1)).toBeUndefined();
    expect(find('postgresql/a.example', undefined)).toBeUndefined();
    expect(find('', undefined)).toBeUndefined();
  });

  test('names such as constructor and __proto__ are only names', () => {
    const find = table({ constructor: 'c' });
    expect(find('constructor', 1)).toBe('c');
    expect(find('__proto__', 1)).toBeUndefined();
    expect(find('toString', 1)).toBeUndefined();
  });

  test('more hosts than are remembered, and very long ones, are still found', () => {
    const find = table({ '*.example': 's', 'a.example': 'a' });
    for (let at = 0; at < MAX_CACHED_HOSTS * 2 + 1; at += 1) expect(find(`h${at}.example`, 1)).toBe('s');
    expect(find('h0.example', 1)).toBe('s');
    expect(find('A.example', 1)).toBe('a');
    expect(find(`${'x'.repeat(300)}.example`, 1)).toBeUndefined();
  });
});
