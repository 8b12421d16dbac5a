import { BlockList, isIP } from 'node:net';
import type { Trust } from './config-settings.ts';

/** Whose word counts at the entry: decided by the peer of the socket, never by another header. */

/** What trust may be, in the words of a message. */
export const TRUST_FORMS = 'all, none, private, or IP addresses and CIDR ranges';

/** Loopback, RFC 1918, link local and unique local (RFC 4193) addresses. */
const PRIVATE_RANGES = [
  '127.0.0.0/8',
  '10.0.0.0/8',
  '172.16.0.0/12',
  '192.168.0.0/16',
  '169.254.0.0/16',
  '::1/128',
  'fe80::/10',
  'fc00::/7',
];
const PREFIX = /^[0-9]{1,3}$/;
const MAX_ITEMS = 500;

export type TrustResult = { readonly trust: Trust } | { readonly invalid: string };

/** Reads a word or a list (or its comma form). `private` may stand in a list, `all` and `none` alone only. */
export function parseTrust(given: string | readonly string[]): TrustResult {
  const items = (typeof given === 'string' ? given.split(',') : given).map((item) => item.trim());
  const [first] = items;
  if (items.length === 1 && (first === 'all' || first === 'none')) return { trust: first };
  if (items.length > MAX_ITEMS) return { invalid: `at most ${MAX_ITEMS} items` };
  const wrong = items.find((item) => item !== 'private' && rangeOf(item) === undefined);
  if (wrong !== undefined) return { invalid: wrong };
  return items.length === 0 ? { invalid: '' } : { trust: Object.freeze(items) };
}

/**
 * Compiles trust into a predicate on `socket.remoteAddress`. IPv4 addresses in IPv6 form
 * (`::ffff:10.0.0.1`) are matched as IPv4. No address (a closed or a UNIX socket) is trusted by `all` only.
 */
export function compileTrust(trust: Trust): (remoteAddress: string | undefined) => boolean {
  if (trust === 'all') return () => true;
  if (trust === 'none') return () => false;
  const list = new BlockList();
  for (const item of trust.flatMap((each) => (each === 'private' ? PRIVATE_RANGES : [each]))) {
    const range = rangeOf(item);
    if (range !== undefined) list.addSubnet(range.address, range.prefix, range.family);
  }
  // A service is mostly asked by the same few peers, one after the other on the same connection.
  let last: string | undefined;
  let isLastTrusted = false;
  return (remoteAddress) => {
    if (remoteAddress !== last) {
      isLastTrusted =
        remoteAddress !== undefined &&
        list.check(remoteAddress, remoteAddress.includes(':') ? 'ipv6' : 'ipv4');
      last = remoteAddress;
    }
    return isLastTrusted;
  };
}

interface Range {
  readonly address: string;
  readonly prefix: number;
  readonly family: 'ipv4' | 'ipv6';
}

function rangeOf(text: string): Range | undefined {
  const slash = text.indexOf('/');
  const address = slash === -1 ? text : text.slice(0, slash);
  const version = isIP(address);
  // A zone (`fe80::1%eth0`) belongs to one host's interface and is no part of a range.
  if (version === 0 || address.includes('%')) return undefined;
  const longest = version === 4 ? 32 : 128;
  const written = slash === -1 ? String(longest) : text.slice(slash + 1);
  if (!PREFIX.test(written) || Number(written) > longest) return undefined;
  return { address, prefix: Number(written), family: version === 4 ? 'ipv4' : 'ipv6' };
}
