import { describe, expect, test } from 'vitest';
import { decideAllowance } from '../../src/core/allowance.ts';
import { decideEntry, type EntryLimits, type EntryTerms } from '../../src/core/entry.ts';
import { NOTHING_RECEIVED, type Received, readBudget } from '../../src/core/received.ts';
import type { HeaderFault } from '../../src/core/terms.ts';

/** What an entry goes by, in one. */
type EntryPolicy = EntryTerms & EntryLimits & { readonly trusted: boolean };

const HALF_HOUR_MS = 1_800_000;
const INTERNAL: EntryPolicy = { mode: 'enforce', role: 'internal', trusted: true };
const EDGE: EntryPolicy = { mode: 'enforce', role: 'edge', trusted: false };
const MODES = ['observe', 'propagate', 'enforce'] as const;

const decide = (received: Received, policy: EntryPolicy) =>
  decideEntry(received, policy, policy, policy.trusted);
const wish = (ms: number) => readBudget({ 'x-request-timeout-ms': String(ms) }, { trusted: true });
const decision = (
  receivedMs: number | undefined,
  effectiveMs: number | undefined,
  verdict: string,
  source: string | undefined,
) => ({ receivedMs, effectiveMs, verdict, source });
const faulty = (...faults: HeaderFault[]) => ({
  ...NOTHING_RECEIVED,
  findings: faults.map((fault) => ({ source: 'grpc_timeout' as const, fault })),
});

describe('no budget', () => {
  test.each(MODES)('B-07, T-01: the default applies, the received value stays absent (%s)', (mode) => {
    const policy = { ...INTERNAL, mode, defaultMs: 2_000, ceilingMs: 60_000 };
    expect(decide(NOTHING_RECEIVED, policy)).toEqual(decision(undefined, 2_000, 'defaulted', 'default'));
  });

  test.each(MODES)('X-11: without a default nothing is invented, not even from the ceiling (%s)', (mode) => {
    const absent = decision(undefined, undefined, 'absent', undefined);
    expect(decide(NOTHING_RECEIVED, { ...INTERNAL, mode })).toEqual(absent);
    expect(decide(NOTHING_RECEIVED, { ...INTERNAL, mode, ceilingMs: 60_000, floorMs: 50 })).toEqual(absent);
  });

  test('X-11: a default above the ceiling is held to it', () => {
    const policy = { ...INTERNAL, defaultMs: 90_000, ceilingMs: 60_000 };
    expect(decide(NOTHING_RECEIVED, policy).effectiveMs).toBe(60_000);
  });
});

describe('B-10: nothing usable', () => {
  test.each<HeaderFault>(['malformed', 'too_long', 'out_of_range'])(
    '%s is invalid; the default applies',
    (fault) => {
      expect(decide(faulty(fault), { ...INTERNAL, defaultMs: 2_000 })).toEqual(
        decision(undefined, 2_000, 'invalid', 'default'),
      );
      expect(decide(faulty(fault), INTERNAL)).toEqual(decision(undefined, undefined, 'invalid', undefined));
    },
  );

  test('P-09: only an absolute time outside its clock domain is untrusted', () => {
    expect(decide(faulty('untrusted'), { ...INTERNAL, defaultMs: 2_000 })).toEqual(
      decision(undefined, 2_000, 'untrusted', 'default'),
    );
    expect(decide(faulty('untrusted', 'malformed'), INTERNAL).verdict).toBe('invalid');
  });

  test('"no limit" twice is no budget, not an invalid one', () => {
    const received = readBudget({ 'x-envoy-expected-rq-timeout-ms': '0, 0' }, { trusted: true });
    expect(decide(received, { ...INTERNAL, defaultMs: 2_000 }).verdict).toBe('defaulted');
  });

  test('A9: a bad header beside a good one does not make the budget invalid', () => {
    const headers = { 'x-envoy-expected-rq-timeout-ms': '-1', 'x-request-timeout-ms': '20000' };
    expect(decide(readBudget(headers, { trusted: true }), INTERNAL)).toEqual(
      decision(20_000, 20_000, 'accepted', 'x_request_timeout_ms'),
    );
  });
});

describe('ceiling', () => {
  test.each(MODES)('B-08, T-02, N-19: 30 minutes become the ceiling (%s)', (mode) => {
    const policy = { ...INTERNAL, mode, ceilingMs: 60_000 };
    expect(decide(wish(HALF_HOUR_MS), policy)).toEqual(
      decision(HALF_HOUR_MS, 60_000, 'clamped_high', 'x_request_timeout_ms'),
    );
  });

  test('T-02: a call then gets at most ceiling - reserve', () => {
    const { effectiveMs } = decide(wish(HALF_HOUR_MS), { ...INTERNAL, ceilingMs: 60_000 });
    expect(decideAllowance({ remainingMs: effectiveMs, reserveMs: 75 }).allowanceMs).toBe(59_925);
  });

  test('A16: an absurd wish of an untrusted caller is held to the cap, and kept as received', () => {
    const policy = { ...EDGE, ceilingMs: 60_000 };
    expect(decide(wish(100_000_000), policy)).toEqual(
      decision(100_000_000, 60_000, 'clamped_high', 'x_request_timeout_ms'),
    );
  });

  test('P-06: under the ceiling an untrusted wish is accepted, also above the default', () => {
    const policy = { ...EDGE, defaultMs: 2_000, ceilingMs: 60_000 };
    expect(decide(wish(5_000), policy)).toEqual(decision(5_000, 5_000, 'accepted', 'x_request_timeout_ms'));
  });

  test('the last value accepted is the ceiling itself', () => {
    const policy = { ...INTERNAL, ceilingMs: 60_000 };
    expect([59_999, 60_000, 60_001].map((ms) => decide(wish(ms), policy).verdict)).toEqual([
      'accepted',
      'accepted',
      'clamped_high',
    ]);
  });

  test('X-11: a value above the default but under the ceiling is accepted', () => {
    const policy = { ...INTERNAL, defaultMs: 2_000, ceilingMs: 60_000 };
    expect(decide(wish(5_000), policy).effectiveMs).toBe(5_000);
  });
});

describe('floor', () => {
  test('B-09, X-03: inside, a budget under the floor is refused and never raised', () => {
    const policy = { ...INTERNAL, floorMs: 50 };
    expect(decide(wish(49), policy)).toEqual(decision(49, 49, 'refused_below_floor', 'x_request_timeout_ms'));
    expect(decide(wish(50), policy).verdict).toBe('accepted');
  });

  test('X-03: at the edge a value from outside is raised in enforce', () => {
    const policy = { ...EDGE, floorMs: 50, ceilingMs: 60_000 };
    expect(decide(wish(49), policy)).toEqual(decision(49, 50, 'clamped_low', 'x_request_timeout_ms'));
  });

  test.each(['observe', 'propagate'] as const)(
    'in %s the verdict is counted but nothing is lengthened',
    (mode) => {
      const policy = { ...EDGE, mode, floorMs: 50, ceilingMs: 60_000 };
      expect(decide(wish(49), policy)).toEqual(decision(49, 49, 'clamped_low', 'x_request_timeout_ms'));
    },
  );

  test('X-03: neither for an edge with a trusted sender nor for an untrusted one inside', () => {
    expect(decide(wish(49), { ...EDGE, trusted: true, floorMs: 50 }).verdict).toBe('refused_below_floor');
    expect(decide(wish(49), { ...INTERNAL, trusted: false, floorMs: 50 }).verdict).toBe(
      'refused_below_floor',
    );
  });

  test('an expired budget is not raised, the smallest other one is', () => {
    const policy = { ...EDGE, floorMs: 50 };
    expect(decide(wish(0), policy)).toEqual(decision(0, 0, 'refused_below_floor', 'x_request_timeout_ms'));
    const tiny = readBudget({ 'grpc-timeout': '1n' }, { trusted: false });
    expect(decide(tiny, policy).effectiveMs).toBe(50);
  });

  test('a floor above the ceiling does not raise beyond it', () => {
    expect(decide(wish(10), { ...EDGE, floorMs: 500, ceilingMs: 100 }).effectiveMs).toBe(100);
  });
});

describe('rule 9: zero', () => {
  test('without a floor 0 is accepted as what it is, expired, and not defaulted', () => {
    expect(decide(wish(0), { ...INTERNAL, defaultMs: 2_000 })).toEqual(
      decision(0, 0, 'accepted', 'x_request_timeout_ms'),
    );
  });
});

describe('P-06: an untrusted sender and no ceiling', () => {
  test('its value may shorten the default', () => {
    expect(decide(wish(2_000), { ...EDGE, defaultMs: 2_000 })).toEqual(
      decision(2_000, 2_000, 'accepted', 'x_request_timeout_ms'),
    );
  });

  test('and not lengthen it', () => {
    expect(decide(wish(2_001), { ...EDGE, defaultMs: 2_000 })).toEqual(
      decision(2_001, 2_000, 'untrusted', 'x_request_timeout_ms'),
    );
  });

  test('without a default it holds, since no limit would be longer, and is marked', () => {
    expect(decide(wish(5_000), EDGE)).toEqual(decision(5_000, 5_000, 'untrusted', 'x_request_timeout_ms'));
  });
});
