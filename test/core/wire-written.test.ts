/** However a text of our own header is read: by its rest, by the expression or by the general parser, it says the same. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PRIORITIES, TOLD_WORKLOADS } from '../../src/core/terms.ts';
import { TEN_YEARS_MS } from '../../src/core/wire.ts';
import { parseTimeBudget, type TimeBudgetHeader } from '../../src/core/wire-time-budget.ts';
import { readWritten } from '../../src/core/wire-written.ts';

const NEXT = '(?:^|(?!^), )';
/** What is written as formatTimeBudget writes it. */
const AS_WRITTEN = new RegExp(
  `^(?:remaining=(\\d{1,15}))?(?:${NEXT}attempt=([1-9]\\d{0,3}))?(${NEXT}repeated)?` +
    `(?:${NEXT}caller=([A-Za-z*][\\w!#$%&'*+\\-.^\`|~:/]{0,63}))?` +
    `(?:${NEXT}priority=([a-z]{1,8}))?(?:${NEXT}workload=([a-z]{1,10}))?(?:${NEXT}sent=(\\d{1,15}))?$`,
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

/** The rests that are known when a text is read are those of the texts before it. */
const sequences = fc.tuple(fc.array(fc.oneof(texts, broken), { maxLength: 3 }), digits);

describe('every text, valid and broken', () => {
  test('is read as the expression reads it, whatever was read before', () => {
    let taken = 0;
    fc.assert(
      fc.property(sequences, ([sequence, other]) => {
        // Each again with another number, and as it was.
        const again = sequence.map((text) => text.replace(/^remaining=\d+/, `remaining=${other}`));
        for (const text of [...sequence, ...again, ...sequence]) {
          const expected = byExpression(text);
          if (expected !== undefined) taken++;
          expect(readWritten(text)).toEqual(expected);
        }
      }),
      { numRuns: 10_000 },
    );
    // Enough of those that are taken, or the test shows nothing.
    expect(taken).toBeGreaterThan(5_000);
  });

  test('says the same to the general parser, so that it does not matter which is asked', () => {
    fc.assert(
      fc.property(fc.oneof(texts, broken), (text) => {
        fc.pre(text.length < 256);
        expect(parseTimeBudget(text)).toEqual(general(text));
      }),
      { numRuns: 10_000 },
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
    expect(readWritten(last)).toBeDefined();
    expect(readWritten(last)).toEqual(byExpression(last));
    expect(readWritten(first)).toBeUndefined();
  });

  test('of a number beside a rest that is known', () => {
    const rest = ', attempt=2, repeated, caller=web, priority=critical, workload=replay';
    const said = { ...byExpression(`remaining=1${rest}`) };
    const read = (number: string) => readWritten(`remaining=${number}${rest}`);
    expect(read('1')).toEqual({ ...said, remainingMs: 1 });
    expect(read('0')).toEqual({ ...said, remainingMs: 0 });
    expect(read('000000000000007')).toEqual({ ...said, remainingMs: 7 });
    expect(read('0000000000000007')).toBeUndefined();
    expect(read('')).toBeUndefined();
    expect(read('-1')).toBeUndefined();
    expect(read('1.5')).toBeUndefined();
    expect(read('315359999999')).toEqual({ ...said, remainingMs: TEN_YEARS_MS - 1 });
    expect(read('315360000000')).toEqual({ ...said, remainingMs: undefined, fault: 'out_of_range' });
    expect(readWritten(`remaining=1${rest},`)).toBeUndefined();
    expect(readWritten(`remaining=1${rest.slice(0, -1)}`)).toEqual({ ...said, workload: undefined });
  });

  test('more callers than are remembered, in turn', () => {
    for (let round = 1; round < 4; round++) {
      for (let i = 0; i < 20; i++) {
        const text = `remaining=${round * 100 + i}, attempt=${round}, caller=service-${i}`;
        expect(readWritten(text)).toEqual(byExpression(text));
        expect(readWritten(text)?.caller).toBe(`service-${i}`);
      }
    }
  });
});
