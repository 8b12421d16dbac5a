/** Header lines that budgets may come in, of any bytes that Node lets through, and some that it does not. */

const NAMES = [
  'x-request-timeout-ms',
  'grpc-timeout',
  'connect-timeout-ms',
  'x-envoy-expected-rq-timeout-ms',
  'x-envoy-upstream-rq-timeout-ms',
  'time-budget',
  'Time-Budget',
  'X-REQUEST-TIMEOUT-MS',
];
const WORDS = [
  '',
  '0',
  '-0',
  '00',
  '1e3',
  '-1',
  '+5',
  '0x10',
  '1.5',
  'NaN',
  'Infinity',
  '99999999S',
  '100000000S',
  '5m',
  '1 S',
  '9007199254740993',
  '1'.repeat(400),
  'remaining=5',
  'remaining=5, attempt=99999999999999999',
  'remaining=?1, caller=:AAAA:, priority="high"',
  'remaining=(1 2);a=b',
  'caller=__proto__, priority=constructor',
  'remaining=1;remaining=2, remaining=3',
  '"\\"',
  ', ,',
  ';=',
];

/** Reproducible: the same numbers in every run (mulberry32). */
export class Dice {
  #state: number;

  constructor(seed: number) {
    this.#state = seed;
  }

  below(limit: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % limit;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.below(items.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }
}

/** Bytes that may stand in a header's value, as far as Node is concerned; with `any`, whatever does not end it. */
function bytes(dice: Dice, length: number, any: boolean): string {
  let text = '';
  while (text.length < length) {
    const code = dice.below(256);
    const isAllowed = any ? code !== 10 && code !== 13 : code === 9 || (code >= 32 && code !== 127);
    if (isAllowed) text += String.fromCharCode(code);
  }
  return text;
}

function value(dice: Dice, any: boolean): string {
  switch (dice.below(5)) {
    case 0:
      return bytes(dice, dice.below(40), any);
    case 1:
      return dice.pick(WORDS) + bytes(dice, dice.below(4), any);
    case 2:
      return `${dice.pick(WORDS)}, ${dice.pick(WORDS)}`;
    case 3:
      return String(dice.below(1_000_000));
    default:
      return dice.pick(WORDS);
  }
}

/** Up to four lines, now and then a long one. All of a head has to stay below 16 KB. */
export function oddHeaders(dice: Dice, any = false): string[] {
  const lines: string[] = [];
  for (let count = dice.below(4); count >= 0; count--) {
    lines.push(`${dice.pick(NAMES)}: ${value(dice, any)}`);
  }
  if (dice.below(50) === 0) lines.push(`${dice.pick(NAMES)}: ${bytes(dice, 8_000 + dice.below(7_500), any)}`);
  return lines;
}
