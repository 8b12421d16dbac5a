import { describe, expect, test } from 'vitest';
import { compileTrust, parseTrust } from '../../src/telemetry/trust.ts';

function trusts(given: string | string[], address: string | undefined): boolean {
  const result = parseTrust(given);
  if ('invalid' in result) throw new Error(`invalid: ${result.invalid}`);
  return compileTrust(result.trust)(address);
}

describe('parse', () => {
  test.each([
    ['all', 'all'],
    [' none ', 'none'],
    ['private', ['private']],
    ['10.0.0.0/8, ::1', ['10.0.0.0/8', '::1']],
    [
      ['private', '203.0.113.7'],
      ['private', '203.0.113.7'],
    ],
    ['10.0.0.0/0', ['10.0.0.0/0']],
    ['10.0.0.0/32', ['10.0.0.0/32']],
    ['::/128', ['::/128']],
  ])('%j', (given, trust) => {
    expect(parseTrust(given)).toEqual({ trust });
  });

  test.each([
    ['', ''],
    ['everyone', 'everyone'],
    ['all, 10.0.0.1', 'all'],
    ['10.0.0.1,,', ''],
    ['10.0.0.0/33', '10.0.0.0/33'],
    ['::/129', '::/129'],
    ['10.0.0.0/', '10.0.0.0/'],
    ['10.0.0.0/-1', '10.0.0.0/-1'],
    ['10.0.0.0/8/8', '10.0.0.0/8/8'],
    ['10.0.0', '10.0.0'],
    ['010.0.0.1', '010.0.0.1'],
    ['fe80::1%eth0', 'fe80::1%eth0'],
    ['localhost', 'localhost'],
  ])('%j is refused, and %j is what is wrong', (given, invalid) => {
    expect(parseTrust(given)).toEqual({ invalid });
  });

  test('an empty list, and lists at their last accepted and first rejected length', () => {
    expect(parseTrust([])).toEqual({ invalid: '' });
    expect(parseTrust(Array(500).fill('::1'))).toHaveProperty('trust');
    expect(parseTrust(Array(501).fill('::1'))).toHaveProperty('invalid');
  });
});

describe('P-07: the address of the peer decides', () => {
  const inside = [
    ...['127.0.0.1', '127.255.255.255', '10.0.0.0', '10.255.255.255', '172.16.0.0', '172.31.255.255'],
    ...[
      '192.168.0.0',
      '192.168.255.255',
      '169.254.0.1',
      '::1',
      'fe80::1',
      'fe80::1%eth0',
      'febf::1',
      'fc00::1',
      'fdff::1',
    ],
    ...['::ffff:10.1.2.3', '::ffff:a01:203', '::FFFF:192.168.1.1'],
  ];
  test.each(inside)('private: %s', (address) => {
    expect(trusts('private', address)).toBe(true);
  });

  const outside = [
    ...[
      '126.255.255.255',
      '128.0.0.0',
      '9.255.255.255',
      '11.0.0.0',
      '172.15.255.255',
      '172.32.0.0',
      '192.167.255.255',
    ],
    ...[
      '192.169.0.0',
      '169.253.255.255',
      '169.255.0.0',
      '::2',
      'fec0::1',
      'fbff::1',
      'fe00::1',
      '2001:db8::1',
    ],
    ...['::ffff:203.0.113.7', '', 'nonsense', '::zz', '10.0.0.256', '10.0.0.1, 203.0.113.7'],
  ];
  test.each(outside)('not private: %s', (address) => {
    expect(trusts('private', address)).toBe(false);
  });

  test('a list', () => {
    const list = 'private, 203.0.113.0/24, 2001:db8::5, 100.64.9.9/10';
    for (const address of [
      '10.0.0.1',
      '203.0.113.255',
      '::ffff:203.0.113.1',
      '2001:db8::5',
      '100.127.255.255',
    ]) {
      expect(trusts(list, address), address).toBe(true);
    }
    for (const address of ['203.0.114.0', '2001:db8::6', '100.128.0.0']) {
      expect(trusts(list, address), address).toBe(false);
    }
  });

  test('a range in IPv4-mapped form', () => {
    expect(trusts('::ffff:203.0.113.0/120', '203.0.113.9')).toBe(true);
    expect(trusts('::ffff:203.0.113.0/120', '::ffff:203.0.113.9')).toBe(true);
    expect(trusts('::ffff:203.0.113.0/120', '203.0.114.9')).toBe(false);
  });

  test('no address is trusted by all only', () => {
    expect(trusts('all', undefined)).toBe(true);
    for (const given of ['none', 'private', '0.0.0.0/0']) expect(trusts(given, undefined)).toBe(false);
    expect(trusts('none', '127.0.0.1')).toBe(false);
  });
});
