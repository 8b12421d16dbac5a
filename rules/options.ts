/** What the rules are made with, read from texts as a command line gives them; every mistake is named, not only the first. */
import { nearestKey, oneLine, shorten, wrongValue } from '../src/telemetry/config-problem.ts';
import { ALERT_NAMES } from './alert-names.ts';
import { impossible } from './combinations.ts';
import { parseDuration } from './duration.ts';
import {
  type Numbers,
  optionName,
  PARAMETER_NAMES,
  PARAMETERS,
  type Parameter,
  type ParameterName,
} from './parameters.ts';

/** critical = page, warning = ticket or work-hours chat, info = dashboard. */
export const SEVERITIES = ['critical', 'warning', 'info'] as const;
export type Severity = (typeof SEVERITIES)[number];

export interface RuleOptions {
  readonly numbers: Numbers;
  /** Every duration is multiplied by it; below 1 only to see an alert fire without waiting for hours. */
  readonly scale: number;
  /** The label that holds the service's name. */
  readonly jobLabel: string;
  /** Labels beside it that every rule keeps, such as `cluster`. */
  readonly keepLabels: readonly string[];
  /** Put into every selector, such as `env="prod"`. */
  readonly matchers: readonly string[];
  /** The lower-case name of the alert is appended. */
  readonly runbookUrl: string;
  /** Where Grafana is, without a slash at the end. */
  readonly dashboardUrl: string;
  readonly severities: ReadonlyMap<string, Severity>;
  readonly without: ReadonlySet<string>;
}

/** Options that are not numbers, with what they mean. */
export const OTHER_OPTIONS = {
  'job-label': { value: 'LABEL', many: false, default: 'job', why: "Label that holds the service's name." },
  'keep-label': {
    value: 'LABEL',
    many: true,
    default: '',
    why: 'Further label that every rule keeps, such as cluster.',
  },
  match: { value: 'MATCHER', many: true, default: '', why: 'Put into every selector, such as env="prod".' },
  'runbook-url': {
    value: 'URL',
    many: false,
    default: 'https://runbooks.example.com/time-budget#',
    why: 'Where docs/runbooks.md is shown; the lower-case name of the alert is appended.',
  },
  'dashboard-url': {
    value: 'URL',
    many: false,
    default: 'https://grafana.example.com',
    why: 'Where Grafana is.',
  },
  severity: {
    value: 'ALERT=LEVEL',
    many: true,
    default: '',
    why: `Another severity for an alert: ${SEVERITIES.join(', ')}.`,
  },
  without: { value: 'ALERT', many: true, default: '', why: 'Leave an alert out.' },
  scale: {
    value: 'FACTOR',
    many: false,
    default: '1',
    why: 'Multiply every duration, to try the alerts out.',
  },
} as const;
export type OtherOption = keyof typeof OTHER_OPTIONS;

/** Only the escapes that PromQL knows, and nothing that ends a line of YAML or is none of its characters. */
const MATCHER =
  /^(?!__name__)[a-zA-Z_]\w*(=|!=|=~|!~)"([^"\\\p{Cc}\p{Cs}\p{Zl}\p{Zp}\uFEFF\uFFFE\uFFFF]|\\([abfnrtv\\"]|x[\da-fA-F]{2}|u[\da-fA-F]{4}))*"$/u;

/** One matcher as PromQL has it, beside the name of the metric. Whether a regular expression is one, Prometheus says. */
export function isMatcher(text: string): boolean {
  return MATCHER.test(text);
}

/** By option name, without the dashes in front. */
export type OptionTexts = Readonly<Record<string, readonly string[]>>;

/** Gives the options, or what is wrong with them. Unknown names are the caller's to refuse. */
export function readOptions(texts: OptionTexts): { options: RuleOptions } | { problems: readonly string[] } {
  const problems: string[] = [];
  const one = (name: OtherOption) => texts[name]?.at(-1) ?? OTHER_OPTIONS[name].default;
  const many = (name: OtherOption) => texts[name] ?? [];
  const options = {
    numbers: readNumbers(texts, problems),
    scale: readNumber('scale', one('scale'), [0.001, 1], problems),
    jobLabel: readLabel('job-label', one('job-label'), problems),
    keepLabels: many('keep-label').map((label) => readLabel('keep-label', label, problems)),
    matchers: many('match').map((matcher) => readMatcher(matcher, problems)),
    runbookUrl: readUrl('runbook-url', one('runbook-url'), problems),
    dashboardUrl: readUrl('dashboard-url', one('dashboard-url'), problems).replace(/\/+$/, ''),
    severities: readSeverities(many('severity'), problems),
    without: new Set(many('without').map((name) => readAlertName('without', name, problems))),
  };
  if (problems.length === 0) problems.push(...impossible(options.numbers));
  return problems.length === 0 ? { options } : { problems };
}

function readNumbers(texts: OptionTexts, problems: string[]): Numbers {
  const numbers: Partial<Record<ParameterName, number>> = {};
  for (const name of PARAMETER_NAMES) {
    const parameter: Parameter = PARAMETERS[name];
    const option = optionName(name);
    const text = texts[option]?.at(-1) ?? String(parameter.default);
    numbers[name] =
      parameter.kind === 'duration'
        ? readDuration(option, text, problems)
        : parameter.kind === 'share'
          ? readShare(option, text, problems)
          : readNumber(option, text, parameter.range ?? [0, Number.MAX_VALUE], problems);
  }
  // Every name was set just above, which the compiler cannot follow.
  return numbers as Numbers;
}

function readDuration(option: string, text: string, problems: string[]): number {
  const ms = parseDuration(text);
  if (ms === undefined)
    problems.push(wrongValue(`--${option}`, text, 'a duration above 0, such as 5m or 1h30m'));
  return ms ?? 0;
}

/** Decimal digits only: `Number` alone would take an empty text, blanks and 0x10. */
const DECIMAL = /^\d{1,12}(\.\d{1,12})?$/;

function readShare(option: string, text: string, problems: string[]): number {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  if (!(value > 0 && value < 1)) {
    problems.push(wrongValue(`--${option}`, text, 'a share above 0 and below 1, such as 0.99'));
  }
  return value;
}

function readNumber(
  option: string,
  text: string,
  [lowest, highest]: readonly [number, number],
  problems: string[],
): number {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  if (!(value >= lowest && value <= highest)) {
    problems.push(wrongValue(`--${option}`, text, `a number from ${lowest} to ${highest}`));
  }
  return value;
}

function readLabel(option: string, text: string, problems: string[]): string {
  if (!/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(text))
    problems.push(wrongValue(`--${option}`, text, 'the name of a label'));
  return text;
}

function readMatcher(text: string, problems: string[]): string {
  if (!isMatcher(text)) {
    problems.push(wrongValue('--match', text, 'one matcher as PromQL has it, such as env="prod"'));
  }
  return text;
}

function readUrl(option: string, text: string, problems: string[]): string {
  const protocol = URL.canParse(text) ? new URL(text).protocol : '';
  // What stands in an annotation is a template: braces would be run.
  if (!/^https?:$/.test(protocol) || /[{}\s]/.test(text)) {
    problems.push(wrongValue(`--${option}`, text, 'an address that begins with http:// or https://'));
  }
  return text;
}

function readAlertName(option: string, name: string, problems: string[]): string {
  if ((ALERT_NAMES as readonly string[]).includes(name)) return name;
  const near = nearestKey(name, ALERT_NAMES);
  const shown = JSON.stringify(shorten(oneLine(name)));
  const hint = near === undefined ? `known are ${ALERT_NAMES.join(', ')}` : `did you mean ${near}?`;
  problems.push(`--${option}: unknown alert ${shown}, ${hint}`);
  return name;
}

function readSeverities(texts: readonly string[], problems: string[]): ReadonlyMap<string, Severity> {
  const severities = new Map<string, Severity>();
  for (const text of texts) {
    const [name = '', level = ''] = text.split('=', 2);
    readAlertName('severity', name, problems);
    const severity = SEVERITIES.find((known) => known === level);
    if (severity === undefined) {
      problems.push(wrongValue('--severity', text, `ALERT=LEVEL with one of ${SEVERITIES.join(', ')}`));
    } else if (name === 'TimeBudgetBurn') {
      problems.push(
        '--severity: TimeBudgetBurn has one for each of its windows; leave out what should not page',
      );
    } else {
      severities.set(name, severity);
    }
  }
  return severities;
}
