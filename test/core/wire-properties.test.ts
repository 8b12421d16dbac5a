/** What holds for every duration and along every chain of hops, shown by random ones. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decideAllowance, isReset } from '../../src/core/allowance.ts';
import {
  formatConnectTimeout,
  formatEnvoyTimeout,
  formatRequestTimeout,
  parseConnectTimeout,
  parseEnvoyTimeout,
  parseRequestTimeout,
} from '../../src/core/wire.ts';
import { formatGrpcTimeout, parseGrpcTimeout } from '../../src/core/wire-grpc.ts';
import { formatTimeBudget, parseTimeBudget } from '../../src/core/wire-time-budget.ts';

interface Format {
  readonly name: string;
  readonly format: (ms: number) => string | undefined;
  readonly parse: (text: string) => { readonly ms: number | undefined };
  /** Coarsest step at `ms`: what rounding down may take away. */
  readonly stepMs: (ms: number) => number;
  readonly maxMs: number;
}

const parseOwn = (text: string) => {
  const { remainingMs, fault } = parseTimeBudget(text);
  return { ms: remainingMs, fault };
};
const wholeMs = () => 1;
const grpcStepMs = (ms: number) => {
  if (ms < 0.001) return 1e-6;
  if (ms < 1) return 1e-3;
  if (ms < 1e8) return 1;
  if (ms < 1e11) return 1_000;
  return ms < 6e12 ? 60_000 : 3_600_000;
};
const FORMATS: readonly Format[] = [
  {
    name: 'time-budget',
    format: (ms) => formatTimeBudget({ remainingMs: ms, attempt: 1, caller: 'a' }),
    parse: parseOwn,
    stepMs: wholeMs,
    maxMs: 3e11,
  },
  {
    name: 'x-request-timeout-ms',
    format: formatRequestTimeout,
    parse: parseRequestTimeout,
    stepMs: wholeMs,
    maxMs: 3e11,
  },
  {
    name: 'grpc-timeout',
    format: formatGrpcTimeout,
    parse: parseGrpcTimeout,
    stepMs: grpcStepMs,
    maxMs: 3e14,
  },
  {
    name: 'connect-timeout-ms',
    format: formatConnectTimeout,
    parse: parseConnectTimeout,
    stepMs: wholeMs,
    maxMs: 9e9,
  },
  { name: 'Envoy', format: formatEnvoyTimeout, parse: parseEnvoyTimeout, stepMs: wholeMs, maxMs: 3e11 },
];

/** Durations of every size: whole, fractional, tiny, huge, next to the powers of ten. */
const durations = fc.oneof(
  fc.double({ min: 0, max: 1e6, noNaN: true }),
  fc.double({ min: 0, max: 1, noNaN: true }),
  fc.double({ min: 0, noNaN: true, noDefaultInfinity: true }),
  fc.nat(1e9),
  fc
    .tuple(fc.integer({ min: -6, max: 15 }), fc.integer({ min: -2, max: 2 }))
    .map(([power, ulps]) => Math.max(0, 10 ** power * (1 + ulps * Number.EPSILON))),
);

describe.each(FORMATS)('$name: every duration', ({ format, parse, stepMs, maxMs }) => {
  test('B-43: what is read back is never more, and at most one step less', () => {
    fc.assert(
      fc.property(durations, (ms) => {
        const text = format(ms);
        if (text === undefined) {
          expect(ms).toBeLessThan(1);
          return;
        }
        const read = parse(text).ms;
        expect(read).toBeLessThanOrEqual(ms);
        if (ms <= maxMs) expect(ms - (read ?? NaN)).toBeLessThanOrEqual(stepMs(ms));
      }),
      { numRuns: 5_000 },
    );
  });

  test('what was read is written back as it was', () => {
    fc.assert(
      fc.property(fc.nat(99_999_999), (ms) => {
        const read = parse(format(ms) ?? '').ms;
        expect(ms === 0 ? (read ?? 0) : read).toBe(ms);
      }),
    );
  });
});

test('B4: grpc-timeout never has more than eight digits', () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (ms) => {
      expect(formatGrpcTimeout(ms)).toMatch(/^\d{1,8}[HMSmun]$/);
    }),
    { numRuns: 2_000 },
  );
});

describe('along every chain of hops', () => {
  const hops = fc.array(
    fc.record({
      format: fc.constantFrom(...FORMATS),
      reserveMs: fc.double({ min: 0, max: 200, noNaN: true }),
      elapsedMs: fc.double({ min: 0, max: 500, noNaN: true }),
      capMs: fc.option(fc.double({ min: 1, max: 10_000, noNaN: true }), { nil: undefined }),
    }),
    { minLength: 1, maxLength: 8 },
  );

  test('B-43, T-09, P-10: sent values never grow and are never a reset', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 10_000, noNaN: true }), hops, (startMs, chain) => {
        let receivedMs = startMs;
        for (const { format, reserveMs, elapsedMs, capMs } of chain) {
          const terms = { remainingMs: receivedMs - elapsedMs, reserveMs, dependencyCapMs: capMs };
          const { allowanceMs = Infinity, refusal } = decideAllowance(terms);
          const text = format.format(allowanceMs);
          if (text === undefined) return;
          const sentMs = format.parse(text).ms ?? Infinity;
          expect(sentMs).toBeLessThanOrEqual(Math.max(0, receivedMs - elapsedMs - reserveMs));
          expect(isReset(sentMs, Math.max(0, allowanceMs))).toBe(false);
          if (refusal !== undefined) {
            expect(sentMs).toBe(0);
            return;
          }
          receivedMs = sentMs;
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
