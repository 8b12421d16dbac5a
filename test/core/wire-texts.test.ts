/** What holds for every text, shown by random ones up to 16 KB. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decideEntry } from '../../src/core/entry.ts';
import { readBudget } from '../../src/core/received.ts';
import { BUDGET_SOURCES, HEADER_FAULTS, PRIORITIES, WORKLOADS } from '../../src/core/terms.ts';
import { parseConnectTimeout, parseEnvoyTimeout, parseRequestTimeout } from '../../src/core/wire.ts';
import { parseGrpcTimeout } from '../../src/core/wire-grpc.ts';
import {
  parseMiskDeadline,
  parsePulseDeadline,
  parsePulseTimeout,
  parseUserverTimeout,
  parseYarpcTtl,
} from '../../src/core/wire-peers.ts';
import { callerToken, formatTimeBudget, parseTimeBudget } from '../../src/core/wire-time-budget.ts';

const WALL_NOW_MS = 1_764_410_400_000;
const MAX_TEXT = 16_384;

const parseOwn = (text: string) => {
  const { remainingMs, fault } = parseTimeBudget(text);
  return { ms: remainingMs, fault };
};

const PARSERS = {
  ours: parseOwn,
  'x-request-timeout-ms': parseRequestTimeout,
  'grpc-timeout': parseGrpcTimeout,
  'connect-timeout-ms': parseConnectTimeout,
  Envoy: parseEnvoyTimeout,
  Pulse: parsePulseTimeout,
  'Pulse deadline': (text: string) => parsePulseDeadline(text, WALL_NOW_MS),
  Misk: parseMiskDeadline,
  userver: parseUserverTimeout,
  YARPC: parseYarpcTtl,
};

const grammarLike = fc.string({
  unit: fc.constantFrom(...'0123456789,;= \t"()?-+.eEmMuSHnPTDpt:abx*%@é\u0000\u00a0'.split('')),
  maxLength: 300,
});
const nearlyOwn = fc
  .array(
    fc.constantFrom(
      'remaining',
      '=',
      '749',
      ', ',
      ',',
      'attempt=2',
      'repeated',
      ';',
      '"',
      '-',
      'caller=a',
      '?1',
      '(',
    ),
    { maxLength: 20 },
  )
  .map((parts) => parts.join(''));
const texts = fc.oneof(
  fc.string({ unit: 'binary', maxLength: MAX_TEXT }),
  fc.string({ unit: 'grapheme', maxLength: 2_000 }),
  fc.string({ unit: 'binary-ascii', maxLength: 300 }),
  grammarLike,
  nearlyOwn,
);

describe('every text', () => {
  test.each(Object.entries(PARSERS))(
    '%s: never throws; a value is finite and >= 0, a fault from the list',
    (_, parse) => {
      fc.assert(
        fc.property(texts, (text) => {
          const result: { ms: number | undefined; fault: string | undefined } = parse(text);
          if (result.ms !== undefined) expect(Number.isFinite(result.ms) && result.ms >= 0).toBe(true);
          expect([undefined, ...HEADER_FAULTS]).toContain(result.fault);
          if (result.ms !== undefined) expect([undefined, 'repeated']).toContain(result.fault);
        }),
        { numRuns: 500 },
      );
    },
  );

  test.each(Object.entries(PARSERS))(
    '%s: 16 KB of one character are too long, and looked at no further',
    (_, parse) => {
      for (const character of ['0', ',', ' ', 'a', '"', '(', '\u0000', '\ud800', '😀']) {
        const text = character.repeat(MAX_TEXT / character.length);
        expect(parse(text)).toEqual({ ms: undefined, fault: 'too_long' });
      }
    },
  );

  test('all headers at once: never throws, and the entry always decides', () => {
    const names = [
      'time-budget',
      'x-request-timeout-ms',
      'grpc-timeout',
      'x-envoy-expected-rq-timeout-ms',
      'pulse-timeout-deadline-ms',
      'x-request-deadline',
    ];
    const headers = fc.dictionary(fc.constantFrom(...names), fc.oneof(texts, fc.array(grammarLike)), {
      noNullPrototype: false,
    });
    const policies = fc.record({
      mode: fc.constantFrom('observe' as const, 'propagate' as const, 'enforce' as const),
      role: fc.constantFrom('edge' as const, 'internal' as const),
      trusted: fc.boolean(),
      defaultMs: fc.option(fc.nat(10_000), { nil: undefined }),
      ceilingMs: fc.option(fc.nat(60_000), { nil: undefined }),
      floorMs: fc.option(fc.nat(100), { nil: undefined }),
    });
    fc.assert(
      fc.property(headers, policies, (given, policy) => {
        const received = readBudget(given, { trusted: policy.trusted, wallNowMs: WALL_NOW_MS });
        if (received.source !== undefined) expect(BUDGET_SOURCES).toContain(received.source);
        expect(received.source === undefined).toBe(received.remainingMs === undefined);
        const { receivedMs, effectiveMs, verdict } = decideEntry(received, policy, policy, policy.trusted);
        expect(receivedMs).toBe(received.remainingMs);
        if (effectiveMs === undefined) return;
        expect(Number.isFinite(effectiveMs) && effectiveMs >= 0).toBe(true);
        // B-43: only the declared edge, in enforce, gives more than was asked for.
        const raised = verdict === 'clamped_low' && policy.mode === 'enforce' && policy.role === 'edge';
        if (receivedMs !== undefined && !raised) expect(effectiveMs).toBeLessThanOrEqual(receivedMs);
      }),
      { numRuns: 1_000 },
    );
  });
});

describe('our header as we write it', () => {
  // A blank in front is not how we write it, so the same text takes the way through the general parser.
  const bothWays = (text: string) => {
    expect(parseTimeBudget(text)).toEqual(parseTimeBudget(` ${text}`));
  };

  test('is read by the short way as by the general parser', () => {
    const members = fc.record(
      {
        remainingMs: fc.double({ min: -10, max: 1e12, noNaN: true }),
        attempt: fc.nat(20_000),
        repeated: fc.boolean(),
        caller: fc.string({ maxLength: 70 }).map((name) => callerToken(name) ?? 'a'),
        priority: fc.constantFrom(...PRIORITIES),
        workload: fc.constantFrom(...WORKLOADS),
        sentWallMs: fc.maxSafeNat(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(members, (given) => bothWays(formatTimeBudget(given) ?? '')),
      { numRuns: 1_000 },
    );
  });

  test('and so is every text that comes near it', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          nearlyOwn,
          grammarLike.map((text) => text.slice(0, 255)),
        ),
        bothWays,
      ),
      {
        numRuns: 5_000,
      },
    );
  });
});
