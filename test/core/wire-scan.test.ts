/** The scanner of our own header takes the same texts, with the same results, as the regular expression before it. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PRIORITIES, TOLD_WORKLOADS } from '../../src/core/terms.ts';
import { TEN_YEARS_MS } from '../../src/core/wire.ts';
import { scanTimeBudget } from '../../src/core/wire-scan.ts';
import { parseTimeBudget, type TimeBudgetHeader } from '../../src/core/wire-time-budget.ts';

const NEXT = '(?:^|(?!^), )';
/** What is written as formatTimeBudget writes it. */
const AS_WRITTEN = new RegExp(
  `^(?:remaining=(\\d{1,15}))?(?:${NEXT}attempt=([1-9]\\d{0,3}))?(${NEXT}repeated)?` +
    `(?:${NEXT}caller=([A-Za-z*][\\w!#$%&'*+\\-.^\`|~:/]{0,63}))?` +
    `(?:${NEXT}priority=([a-z]+))?(?:${NEXT}workload=([a-z]+))?(?:${NEXT}sent=(\\d{1,15}))?$`,
);

function byExpression(text: string): TimeBudgetHeader | undefined {
  const match = AS_WRITTEN.exec(text);
  if (match === null) return undefined;
  const [, remaining, attempt, repeated, caller, priority, workload, sent] = match;
  const number = (digits: string | undefined) => (digits === undefined ? undefined : Number(digits));
  const remainingMs = number(remaining);
  const outOfRange = remainingMs !== undefined && remainingMs >= TEN_YEARS_MS;
  return {
    remainingMs: outOfRange ? undefined : remainingMs,
    fault: outOfRange ? 'out_of_range' : undefined,
    attempt: number(attempt),
    repeated: repeated !== undefined,
    caller,
    priority: PRIORITIES.find((one) => one === priority),
    workload: TOLD_WORKLOADS.find((one) => one === workload),
    sentWallMs: number(sent),
  };
}

/** The general parser alone: a blank in front means nothing to it, and is nothing that we write. */
const general = (text: string) => parseTimeBudget(` ${text}`);

const digits = fc.oneof(
  fc.nat(99_999).map(String),
  fc.stringMatching(/^[0-9]{1,17}$/),
  fc.constantFrom('0', '00', '1', '9999', '10000', '315359999999', '315360000000', '999999999999999'),
);
const names = fc.oneof(
  fc.constantFrom('bench', 'a', '*', '*1', 'web/eu:1', 'A-_.b', '1a', '', 'a=b', 'a"b', 'é', 'a\u0080'),
  fc.string({ maxLength: 4 }),
  fc.integer({ min: 62, max: 66 }).map((length) => 'a'.repeat(length)),
);
const words = fc.oneof(
  fc.constantFrom(...PRIORITIES, ...TOLD_WORKLOADS, '', 'Critical', 'unheardofword'),
  fc.stringMatching(/^[a-z]{1,11}$/),
);
const members = fc.oneof(
  digits.map((text) => `remaining=${text}`),
  digits.map((text) => `attempt=${text}`),
  fc.constantFrom('repeated', 'repeated=?1', 'repeated=?0', 'repeat', 'remaining', 'attempt=', 'x=1'),
  names.map((text) => `caller=${text}`),
  words.map((text) => `priority=${text}`),
  words.map((text) => `workload=${text}`),
  digits.map((text) => `sent=${text}`),
);
/** In the order in which we write them, each there or not. */
const inOrder = fc
  .tuple(
    fc.option(digits.map((text) => `remaining=${text}`)),
    fc.option(digits.map((text) => `attempt=${text}`)),
    fc.option(fc.constant('repeated')),
    fc.option(names.map((text) => `caller=${text}`)),
    fc.option(words.map((text) => `priority=${text}`)),
    fc.option(words.map((text) => `workload=${text}`)),
    fc.option(digits.map((text) => `sent=${text}`)),
  )
  .map((all) => all.filter((member) => member !== null));
const separators = fc.oneof(
  { weight: 6, arbitrary: fc.constant(', ') },
  fc.constantFrom(',', ' ', ',  ', '', ', , '),
);
const texts = fc.oneof(
  inOrder.map((all) => all.join(', ')),
  fc.tuple(fc.array(members, { maxLength: 6 }), separators).map(([all, separator]) => all.join(separator)),
);
/** One character put in, taken out or replaced. */
const broken = fc
  .tuple(texts, fc.nat(255), fc.string({ maxLength: 1 }), fc.boolean())
  .map(([text, place, character, replaces]) => {
    const at = place % (text.length + 1);
    return text.slice(0, at) + character + text.slice(at + (replaces ? 1 : 0));
  });

describe('every text, valid and broken', () => {
  test('the scanner takes what the expression takes, and reads the same', () => {
    let taken = 0;
    fc.assert(
      fc.property(fc.oneof(texts, broken), (text) => {
        const expected = byExpression(text);
        if (expected !== undefined) taken++;
        expect(scanTimeBudget(text)).toEqual(expected);
      }),
      { numRuns: 20_000 },
    );
    // Enough of both kinds, or the test shows nothing.
    expect(taken).toBeGreaterThan(2_000);
    expect(taken).toBeLessThan(18_000);
  });

  test('both ways of reading give the same, so that it does not matter which is taken', () => {
    fc.assert(
      fc.property(fc.oneof(texts, broken), (text) => {
        fc.pre(text.length < 256);
        expect(parseTimeBudget(text)).toEqual(general(text));
      }),
      { numRuns: 20_000 },
    );
  });
});

describe('limits', () => {
  test.each([
    ['remaining=999999999999999', 'remaining=1000000000000000'],
    ['attempt=9999', 'attempt=10000'],
    ['attempt=1', 'attempt=0'],
    [`caller=${'a'.repeat(64)}`, `caller=${'a'.repeat(65)}`],
    ['sent=999999999999999', 'sent=1000000000000000'],
  ])('%s is read here, %s is left to the general parser', (last, first) => {
    expect(scanTimeBudget(last)).toEqual(byExpression(last));
    expect(scanTimeBudget(last)).toBeDefined();
    expect(scanTimeBudget(first)).toBeUndefined();
  });

  test('every ASCII character, at the start of a caller and inside one', () => {
    for (let code = 0; code < 256; code++) {
      const character = String.fromCharCode(code);
      for (const text of [`caller=${character}`, `caller=a${character}`, `caller=a${character}b, sent=1`])
        expect(scanTimeBudget(text)).toEqual(byExpression(text));
    }
  });
});
