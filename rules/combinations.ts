/** Settings that are each allowed and that together make a rule which can never fire, or fires for no reason. */
import { formatDuration } from './duration.ts';
import { type Numbers, optionName, type ParameterName } from './parameters.ts';

export const BURNS = ['Fast', 'Medium', 'Slow', 'Slowest'] as const;

/** Prometheus' own habit: a window that holds four scrapes still has two when one is missed. */
const LEAST_SCRAPES = 4;

/** Each line names the option, the values and why it cannot work. */
export function impossible(numbers: Numbers): readonly string[] {
  return [...sleepingBurns(numbers), ...sameBurns(numbers), ...shortWindows(numbers), ...orders(numbers)];
}

function sleepingBurns(numbers: Numbers): string[] {
  return BURNS.flatMap((burn) => {
    const factor = numbers[`burn${burn}Factor`];
    const limit = round(factor * (1 - numbers.objective));
    if (limit < 1) return [];
    return [
      `--${optionName(`burn${burn}Factor`)}: ${factor} × (1 − ${numbers.objective}) = ${limit}, and no share is ` +
        'above 1: the rule would sleep for ever; use a smaller factor or a higher --objective',
    ];
  });
}

/** `window` is what tells them apart: two alerts with the same would be one series. */
function sameBurns(numbers: Numbers): string[] {
  return BURNS.flatMap((burn, i) => {
    const name = `burn${burn}Window` as const;
    const twin = BURNS.slice(0, i).find((other) => numbers[`burn${other}Window`] === numbers[name]);
    if (twin === undefined) return [];
    return [
      `--${optionName(name)}: ${formatDuration(numbers[name])} is --${optionName(`burn${twin}Window`)} too, and ` +
        'alerts of one window could not be told apart; use another',
    ];
  });
}

function shortWindows(numbers: Numbers): string[] {
  const least = LEAST_SCRAPES * numbers.scrapeInterval;
  const windows = [
    'rateWindow',
    'exhaustedRecentWindow',
    'waveWindow',
    'violationWindow',
    'faultWindow',
  ] as const;
  return windows.flatMap((name) => {
    if (numbers[name] >= least) return [];
    const interval = formatDuration(numbers.scrapeInterval);
    return [
      `--${optionName(name)}: ${formatDuration(numbers[name])} is less than ${LEAST_SCRAPES} × --scrape-interval ` +
        `${interval}: one missed scrape would leave no rate; use at least ${formatDuration(least)}`,
    ];
  });
}

/** The first must be above the second. */
const ABOVE: readonly (readonly [ParameterName, ParameterName, string])[] = [
  ...BURNS.map(
    (burn) =>
      [
        `burn${burn}Window`,
        `burn${burn}ShortWindow`,
        'the short window is there to end the alert early',
      ] as const,
  ),
  [
    'missingOffset',
    'missingFor',
    'after that long nothing is missing any more, and the rule would sleep for ever',
  ],
  [
    'amplificationOffset',
    'amplificationFor',
    'by then the fault is its own past, and the rule would sleep for ever',
  ],
  ['violationWindow', 'violationFor', 'one finding is gone from the window by then'],
  ['faultWindow', 'faultFor', 'one finding is gone from the window by then'],
  ['waveWindow', 'waveFor', 'one close is gone from the window by then'],
  ['shedOffset', 'shedFor', 'what is ordinary would have learned the fault before it is told'],
  ['slowOffset', 'slowFor', 'the incident would be in its own baseline before it is told'],
];

/** The first must not be below the second. */
const AT_LEAST: readonly (readonly [ParameterName, ParameterName, string])[] = [
  ...BURNS.map(
    (burn) =>
      [`burn${burn}ShortWindow`, 'rateWindow', 'burn rates are made of rates over that window'] as const,
  ),
  ['rateWindow', 'evaluationInterval', 'what lies between two runs would be in no rate'],
];

function orders(numbers: Numbers): string[] {
  const line = (name: ParameterName, other: ParameterName, relation: string, why: string) =>
    `--${optionName(name)}: ${formatDuration(numbers[name])} must be ${relation} --${optionName(other)} ` +
    `${formatDuration(numbers[other])}: ${why}`;
  const trend = 2 * numbers.evaluationInterval;
  return [
    ...(numbers.backlogWindow >= trend
      ? []
      : [
          `--${optionName('backlogWindow')}: ${formatDuration(numbers.backlogWindow)} is less than 2 × ` +
            `--evaluation-interval: one value has no trend; use at least ${formatDuration(trend)}`,
        ]),
    ...ABOVE.filter(([name, other]) => numbers[name] <= numbers[other]).map(([name, other, why]) =>
      line(name, other, 'above', why),
    ),
    ...AT_LEAST.filter(([name, other]) => numbers[name] < numbers[other]).map(([name, other, why]) =>
      line(name, other, 'at least', why),
    ),
  ];
}

/** 14.4 × 0.010000000000000009 is 0.144. */
export function round(value: number): number {
  return Number(value.toPrecision(10));
}
